"""What breaks, and what is left of it: the table of all faults that are tested.

Every fault is made by a test in tests/faults, which adds the sentence that was printed.
docs/reliability.md is what this prints, with short names for folders. A fault without a
sentence, because its test was skipped or failed, is an error. Change no file of the
working tree meanwhile: predictions name the commit, and whether files differ from it.

    python bench/faults.py --write
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
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


class Fault(NamedTuple):
    """What a fault does to runs."""

    happens: str
    lost: str = "none"
    """Work that has to be done again."""


FAULTS = {
    "worker killed at 30 random points": Fault(
        "the run is tried again, from its last checkpoint", "the current epoch"
    ),
    "Ray worker lost in mid-epoch": Fault(
        "the run is tried again, from its last checkpoint", "the current epoch"
    ),
    "Ray node lost in mid-epoch": Fault(
        "its runs are tried again on other nodes, from their last checkpoints",
        "the current epoch",
    ),
    "Ray driver lost in mid-epoch": Fault(
        "processes on all nodes end; the same command goes on from the last"
        " checkpoints",
        "the current epoch",
    ),
    "disk full": Fault(
        "the run fails, others go on; it resumes once there is space",
        "the current epoch",
    ),
    "read-only output": Fault("nothing starts; finished runs can still be read"),
    "output removed during a run": Fault(
        "the run fails, and is made anew", "what was removed"
    ),
    "clock jump": Fault("nothing: durations do not depend on the machine's clock"),
    "truncated cache": Fault("nothing is trained on it"),
    "changed byte in a cache of equal size": Fault("nothing is trained on it"),
    "damaged checkpoint": Fault(
        "the run goes on from the checkpoint before", "one epoch"
    ),
    "out of memory": Fault("the run fails, others go on", "the current epoch"),
    "loss is NaN": Fault(
        "the run fails without predictions, others go on", "the current epoch"
    ),
    "Ctrl-C twice": Fault(
        "workers are asked to stop, and killed at the second Ctrl-C",
        "the current epoch",
    ),
    "SIGTERM": Fault("workers are asked to stop, as at Ctrl-C", "the current epoch"),
    "two launchers on one folder": Fault("each run is made by one of them"),
    "dataset changed under a cache": Fault(
        "a run that has begun is refused; it resumes with the former files"
    ),
    "included part changed between start and resume": Fault(
        "code that was not planned is never run; with the new code it is another run,"
        " in a folder of its own"
    ),
    "predictions swapped between runs": Fault(
        "they are made again from the checkpoints, without training"
    ),
}
_NAMES = (
    (r"/\S*/pytest-\d+/[^/\s]+/", ""),
    (r"\.qualms-[\w.]+-\d+-[0-9a-f]{32}", "archive"),
    (r"\b[0-9a-f]{16}\b", "HASH"),
    (r"-[0-9a-f]{8}\b", "-HASH"),
    (r"\b\d+\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"; \d+ s$", ""),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        code = run_tests(rows)
        sentences = read_sentences(rows)
    missing = FAULTS.keys() - sentences.keys()
    page = page_of(sentences)
    print(page)
    if code or missing:
        without = f"; no sentence for: {', '.join(sorted(missing))}" if missing else ""
        print(f"pytest ended with code {code}{without}: the table is not complete")
        return code or 1
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


def read_sentences(rows: Path) -> dict[str, str]:
    """Read what was said at each fault, with short names for folders."""
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    return {fault: plain(sentence) for fault, sentence in map(json.loads, lines)}


def plain(sentence: str) -> str:
    """Return a sentence without what differs from one machine to another."""
    for pattern, name in _NAMES:
        sentence = re.sub(pattern, name, sentence)
    return sentence


def page_of(sentences: Mapping[str, str]) -> str:
    """Return the page of all faults with a sentence in Markdown."""
    rows = [
        (name, fault.happens, sentences[name], fault.lost)
        for name, fault in FAULTS.items()
        if name in sentences
    ]
    lines = [_line(HEADINGS), "|---" * len(HEADINGS) + "|", *map(_line, rows)]
    return BEGINNING + "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
