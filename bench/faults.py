"""What breaks, and what is left of it: the table of all faults that are tested.

Every fault is made by a test in tests/faults, which says what happened.
docs/reliability.md is what this prints. Sentences are as they were printed, with short
names for folders.

    python bench/faults.py --write
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
BEGINNING = """# What breaks, and what is left of it

Made by `python bench/faults.py --write`, which runs `tests/faults`. Each of these tests
makes a fault in tiny runs that really train. After it, finished runs are untouched, and
the run that was hit ends in the same predictions, byte for byte on a CPU, as one that
nothing happened to. `make faults` prints this table.

"""
HEADINGS = ("fault", "what happens", "what it says", "lost work")
_NAMES = (
    (r"/\S*/pytest-\d+/[^/\s]+/", ""),
    (r"\.qualms-[\w.]+-\d+-[0-9a-f]{32}", "archive"),
    (r"\b[0-9a-f]{16}\b", "HASH"),
    (r"-[0-9a-f]{8}\b", "-HASH"),
)


class Fault(NamedTuple):
    """One row of the table."""

    fault: str
    happens: str
    sentence: str
    lost: str


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        code = run_tests(rows)
        faults = sorted(read_faults(rows))
    page = page_of(faults)
    print(page)
    if code:
        print("a test failed, so the table is not complete")
        return code
    if arguments.write:
        PAGE.write_text(page, encoding="utf-8")
        print(f"wrote {PAGE}")
    return 0


def run_tests(rows: Path) -> int:
    """Make all faults; each adds a line to `rows`. Return the exit code of pytest."""
    command = [sys.executable, "-m", "pytest", "tests/faults", "-m", "faults"]
    environment = os.environ | {"QUALMS_FAULTS": str(rows)}
    ended = subprocess.run(
        [*command, "-q", "-rs"], cwd=ROOT, env=environment, check=False
    )
    return ended.returncode


def read_faults(rows: Path) -> Iterator[Fault]:
    """Read the rows, with short names for folders."""
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    for line in lines:
        fault = Fault(**json.loads(line))
        yield fault._replace(sentence=plain(fault.sentence))


def plain(sentence: str) -> str:
    """Return a sentence without what differs from one machine to another."""
    for pattern, name in _NAMES:
        sentence = re.sub(pattern, name, sentence)
    return sentence


def page_of(faults: Sequence[Fault]) -> str:
    """Return the page of all faults in Markdown."""
    rows = [_line(HEADINGS), "|---" * len(HEADINGS) + "|", *map(_line, faults)]
    return BEGINNING + "\n".join(rows) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
