"""Build a release and try it in empty environments.

`python .ci/release.py [3.11 3.12 ...]` builds the wheel, the source archive and a bill
of materials in `dist/`, installs the wheel beside nothing else for every version of
Python, and runs the smoke test. It prints a table, and writes it to dist/matrix.md. A
Python that cannot be had is named there. The result is 1 where a smoke test failed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
UV = ROOT / ".venv" / "bin" / "uv"
PYTHONS = ("3.11", "3.12", "3.13")
# All extras need torch, of which 3.12 and later have the CUDA build only: 5.5 GB.
WITH_TORCH = "3.11"
RESULTS = ROOT / "bench" / "RESULTS.md"
FIGURES = "## Every test"
"""The section of `make test-all`."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An environment in which the wheel is tried."""

    python: str
    extras: tuple[str, ...]

    @property
    def words(self) -> str:
        """Name what is installed beside the core."""
        return ", ".join(self.extras) or "core dependencies only"


def trials(pythons: list[str], extras: list[str]) -> list[Trial]:
    """List the environments: each Python bare, then with extras."""
    bare = [Trial(python=python, extras=()) for python in pythons]
    more = [
        Trial(
            python=python,
            extras=tuple(extras) if python == WITH_TORCH else ("report", "tables"),
        )
        for python in pythons
    ]
    return bare + more


def run(*words: object, **environment: str) -> str:
    """Return what a command prints; raise CalledProcessError where it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def build() -> Path:
    """Build wheel and source archive, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(UV, "build", "--out-dir", DIST)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def wrong_tag(wheel_name: str, tags: list[str]) -> str:
    """Return what is wrong with the tags of this commit, or ''.

    A tag that names a version names that of the wheel.

    >>> wrong_tag("qualms_bench-0.2.0-py3-none-any.whl", ["v0.1.0", "nice"])
    'this commit has the tag v0.1.0, and the wheel is 0.2.0; tag it v0.2.0'
    """
    version = wheel_name.split("-")[1]
    for tag in tags:
        if re.fullmatch(r"v[0-9].*", tag) and tag != f"v{version}":
            return (
                f"this commit has the tag {tag}, and the wheel is {version}; tag it"
                f" v{version}"
            )
    return ""


def fingerprint() -> str:
    """Hash all files but those that a release itself writes, or return ''.

    There is none where files differ from what is committed.
    """
    kept = (".", ":!bench/RESULTS.md", ":!docs/public_names.txt")
    if run("git", "status", "--porcelain", "--", *kept):
        return ""
    files = run("git", "ls-tree", "-r", "--full-tree", "HEAD").splitlines()
    written = tuple(name.removeprefix(":!") for name in kept[1:])
    lines = "\n".join(line for line in files if not line.endswith(written))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def untested(results: str, contents: str) -> str:
    """Return that `make test-all` has not passed with these contents, or ''."""
    section = results.partition(f"{FIGURES}\n")[2].partition("\n## ")[0]
    if contents and contents in section:
        return ""
    return (
        "`make test-all` has not passed with these files: run it, and commit"
        " bench/RESULTS.md, where it writes its figures"
    )


def write_bill() -> Path:
    """Write the bill of materials: every locked package with its hashes."""
    path = DIST / "bill-of-materials.json"
    run(
        *(UV, "tool", "run", "--from", "cyclonedx-bom", "cyclonedx-py"),
        *("requirements", ROOT / "requirements.lock", "--output-file", path),
        *("--pyproject", ROOT / "pyproject.toml", "--output-reproducible"),
    )
    return path


def extras_of(wheel: Path) -> list[str]:
    """List the extras that a wheel declares, without those for developers."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    found = [line.split(": ")[1] for line in lines if line.startswith("Provides-Extra")]
    return [extra for extra in found if extra not in ("dev", "browser", "docs")]


def attempt(trial: Trial, wheel: Path) -> str:
    """Install the wheel in an empty environment, use it, and say what happened."""
    with tempfile.TemporaryDirectory() as name:
        python = Path(name, "env", "bin", "python")
        try:
            run(UV, "venv", "-q", "--python", trial.python, python.parents[1])
        except subprocess.CalledProcessError:
            return "this Python is not here and cannot be fetched"
        start = time.monotonic()
        target = f"{wheel}[{','.join(trial.extras)}]" if trial.extras else wheel
        smoke = [extra for extra in trial.extras if extra in ("report", "tables")]
        try:
            run(UV, "pip", "install", "-q", "--python", python, target)
            run(python, ROOT / ".ci" / "smoke.py", *smoke, PYTHONPATH="")
        except subprocess.CalledProcessError as problem:
            return f"failed: {problem.output.strip()}"
        size = json.loads(run(python, "-c", _SIZE))
        return f"passed in {time.monotonic() - start:.0f} s, {size:,} MB installed"


_SIZE = """
import pathlib, sysconfig
files = pathlib.Path(sysconfig.get_path("purelib")).rglob("*")
print(sum(f.stat().st_size for f in files if f.is_file()) // 2**20)
"""


def table(answers: dict[Trial, str]) -> str:
    """Write what happened in every environment as a table."""
    lines = ["| Python | installed beside the core | smoke test |", "|---|---|---|"]
    for trial, answer in answers.items():
        lines.append(f"| {trial.python} | {trial.words} | {answer.splitlines()[-1]} |")
    return "\n".join(lines) + "\n"


def main(pythons: list[str]) -> int:
    """Build a release, try it everywhere, and return 1 where that failed."""
    wheel = build()
    print(f"built {wheel.name}, {wheel.stat().st_size // 1024:,} kB")
    tags = run("git", "tag", "--points-at").split()
    if problem := wrong_tag(wheel.name, tags):
        sys.exit(problem)
    if problem := untested(RESULTS.read_text("utf-8"), fingerprint()):
        print(problem)
        if any(re.fullmatch(r"v[0-9].*", tag) for tag in tags):
            return 1
    print(f"wrote {write_bill().relative_to(ROOT)}")
    answers: dict[Trial, str] = {}
    for trial in trials(pythons, extras_of(wheel)):
        answers[trial] = attempt(trial, wheel)
        print(f"Python {trial.python}, {trial.words}: {answers[trial]}", flush=True)
    (DIST / "matrix.md").write_text(table(answers), "utf-8")
    print(table(answers))
    return int(any(answer.startswith("failed") for answer in answers.values()))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or list(PYTHONS)))
    except subprocess.CalledProcessError as problem:
        sys.exit(f"{' '.join(map(str, problem.cmd))} failed:\n{problem.output}")
