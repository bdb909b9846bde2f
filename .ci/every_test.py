"""Run every test but those of a GPU; a test that is skipped fails.

`make test-all` sets up what they need, and calls this. Where all pass, the figures are
written to bench/RESULTS.md with the fingerprint that a release asks for.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from release import FIGURES, RESULTS, ROOT, fingerprint

PARTS = {
    "those of `make test`, in two processes": (
        *("-m", "not slow and not gpu", "-n", "2", "--dist", "worksteal"),
    ),
    "those that are slow, one after another": ("-m", "slow and not gpu"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run of pytest came to."""

    passed: int
    seconds: float
    skipped: tuple[str, ...]
    status: int


def run_pytest(arguments: Sequence[str], folder: Path = ROOT) -> Figures:
    """Run pytest in `folder`, and count."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name, "report.xml")
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, f"--junitxml={report}"],
            cwd=folder,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ).returncode
        empty = Figures(passed=0, seconds=0.0, skipped=(), status=status)
        return replace(empty, **counted(report)) if report.is_file() else empty


def counted(report: Path) -> dict[str, object]:
    """Count tests in what pytest reports as XML; expected failures do not count."""
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    skips = [
        f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}"
        for case in suite.iter("testcase")
        for skip in case.iter("skipped")
        if skip.get("type") != "pytest.xfail"
    ]
    lost = sum(int(suite.get(name, 0)) for name in ("failures", "errors", "skipped"))
    return {
        "passed": int(suite.get("tests", 0)) - lost,
        "seconds": float(suite.get("time", 0)),
        "skipped": tuple(skips),
    }


def section(parts: dict[str, Figures], contents: str) -> str:
    """Write the figures as a section of bench/RESULTS.md."""
    lines = [
        f"{FIGURES}\n",
        f"`make test-all` on {os.cpu_count()} cores ({platform.machine()}), Python"
        f" {platform.python_version()}, torch {version('torch')}, Ray"
        f" {version('ray')}: no test",
        "was skipped. Tests that need a GPU are not among them (`make gpu-check`).",
        f"Fingerprint of what was tested: {contents}.\n",
        "| tests | passed | minutes |",
        "|---|---:|---:|",
    ]
    rows = (
        f"| {words} | {figures.passed:,} | {figures.seconds / 60:.1f} |"
        for words, figures in parts.items()
    )
    return "\n".join([*lines, *rows]) + "\n"


def renewed(results: str, new: str) -> str:
    """Return the text of bench/RESULTS.md with a new section of these figures."""
    old = re.search(rf"^{FIGURES}\n.*?(?=^## |\Z)", results, re.DOTALL | re.MULTILINE)
    if old:
        return results.replace(old[0], f"{new}\n" if old.end() < len(results) else new)
    before, heading, rest = results.partition("\n## ")
    return f"{before}\n{new}{heading}{rest}"


def main() -> int:
    """Run all parts, and return 1 where a test failed or was skipped."""
    parts = {words: run_pytest(arguments) for words, arguments in PARTS.items()}
    for words, figures in parts.items():
        print(f"{words}: {figures.passed:,} passed in {figures.seconds:.0f} s")
        print(*(f"skipped: {line}\n" for line in figures.skipped), sep="", end="")
    if any(figures.status or figures.skipped for figures in parts.values()):
        print("make test-all failed: every test must run and pass")
        return 1
    contents = fingerprint()
    if not contents:
        print("the figures are not written: commit your changes first")
        return 0
    RESULTS.write_text(
        renewed(RESULTS.read_text("utf-8"), section(parts, contents)), "utf-8"
    )
    print(f"wrote the figures to {RESULTS.relative_to(ROOT)}: commit it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
