"""Run the tests that the changes of the working tree touch, for at most SECONDS.

First tests that changed, then those of changed modules, then those that import them.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SECONDS = 40.0
OF_PAGES = ("test_docs.py", "test_readme.py", "test_public.py")
OF_SOURCES = ("test_structure.py", "test_public.py")


class Deadline:
    """Stops a run of pytest after some seconds, between two tests."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, which is stopped later."""
        self.session = session

    def pytest_runtest_logfinish(self) -> None:
        """Stop after this test where the time is over."""
        if self.session is not None and time.monotonic() > self.end:
            self.session.shouldstop = (
                f"{SECONDS:.0f} seconds are over; `make test` runs all tests"
            )


def changed_files(since: str) -> list[Path]:
    """List the files that differ from a commit, and those that git does not know."""
    commands = (
        ["git", "diff", "--name-only", "--diff-filter=d", since],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    texts = [
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
        for words in commands
    ]
    return sorted({Path(line) for text in texts for line in text.stdout.splitlines()})


def tests_of(changed: list[Path]) -> list[Path]:
    """List the test files to run, those nearest to the change first."""
    chosen = [
        *(path for path in changed if _is_test(path)),
        *(test for path in changed for test in _mirrors(path)),
        *(test for path in changed for test in _importers(path)),
    ]
    if any(path.suffix == ".py" and path.parts[0] == "src" for path in changed):
        chosen += [Path("tests", name) for name in OF_SOURCES]
    if any(path.suffix == ".md" for path in changed):
        chosen += [Path("tests", name) for name in OF_PAGES]
    return [path for path in dict.fromkeys(chosen) if (ROOT / path).is_file()]


def _is_test(path: Path) -> bool:
    return path.parts[0] == "tests" and path.match("test_*.py")


def _mirrors(path: Path) -> Iterator[Path]:
    """Yield the tests that have the name and folder of a source file."""
    if path.suffix != ".py" or path.parts[:2] != ("src", "qualms"):
        return
    folder = TESTS.joinpath(*path.parts[2:-1])
    name = "*" if path.stem == "__init__" else f"{path.stem.strip('_')}*"
    yield from (
        test.relative_to(ROOT) for test in sorted(folder.glob(f"test_{name}.py"))
    )


def _importers(path: Path) -> Iterator[Path]:
    """Yield the tests that import a source file, or a helper of the tests, by name."""
    if path.suffix != ".py" or path.parts[0] not in ("src", "tests"):
        return
    words = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
    package, _, name = words.rpartition(".")
    pattern = re.compile(
        rf"^\s*(?:from|import) {re.escape(words)}\b"
        rf"|^\s*from {re.escape(package or words)} import [^\n]*\b{name}\b",
        re.M,
    )
    for test in sorted(TESTS.rglob("test_*.py")):
        if pattern.search(test.read_text("utf-8")):
            yield test.relative_to(ROOT)


def main(since: str) -> int:
    """Run the tests that the changes since a commit touch."""
    tests = tests_of(changed_files(since))
    if not tests:
        print("no test is touched by the changes of the working tree")
        return 0
    print(f"{len(tests)} test files are touched: {', '.join(map(str, tests))}")
    marks = "not slow and not gpu and not browser"
    return pytest.main([*map(str, tests), "-m", marks, "-x"], [Deadline(SECONDS)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
