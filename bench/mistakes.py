"""How plausible mistakes of users are answered: refused, said or accepted.

Every mistake is made in a folder of its own, with the files that it is about, through
the command line or in Python. docs/mistakes.md is what this prints.

    python bench/mistakes.py --write
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Neighbours of this file must not hide modules of the same names.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
sys.path.insert(0, str(_HERE.parent))

from bench.mistaken import (
    files,
    further,
    models,
    options,
    own_data,
    python,
    strangers,
)
from bench.mistaken.mistake import Answer, Mistake, answer_to

PAGE = _HERE.parent / "docs" / "mistakes.md"
SECTIONS: Mapping[str, Sequence[Mistake]] = {
    "Predictions files": (*files.MISTAKES, *further.FILES, *strangers.FILES),
    "Commands and their options": (
        *options.MISTAKES,
        *further.OPTIONS,
        *strangers.OPTIONS,
    ),
    "Data of your own": (*own_data.MISTAKES, *further.DATA, *strangers.DATA),
    "Python, and parts of your own": (
        *python.MISTAKES,
        *further.PYTHON,
        *strangers.PYTHON,
    ),
    "Models": (*models.MISTAKES, *further.MODELS, *strangers.MODELS),
}
BEGINNING = """# Mistakes, and how they are answered

Made by `python bench/mistakes.py --write`. A mistake is **refused** (exit code 2, or an
error in Python, in a sentence that names what must hold), **said** (the work is done,
and a note or an answer of the verdict tells what is odd), or **accepted** where it does
no harm. Long answers are cut. `p.npz` and other names are those of small files that the
mistake is made with.
"""


class AnsweredMistake(NamedTuple):
    """A mistake with its answer."""

    mistake: Mistake
    answer: Answer


def answered(
    sections: Mapping[str, Sequence[Mistake]] = SECTIONS,
) -> dict[str, list[AnsweredMistake]]:
    """Make all mistakes, and return the answers by section."""
    return {
        title: [AnsweredMistake(each, answer_to(each)) for each in mistakes]
        for title, mistakes in sections.items()
    }


def page_of(sections: Mapping[str, Sequence[AnsweredMistake]]) -> str:
    """Return the page of all mistakes in Markdown."""
    every = [each for part in sections.values() for each in part]
    kinds = Counter(each.mistake.kind for each in every)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines = [BEGINNING, f"{len(every)} mistakes: {counts}."]
    for title, part in sections.items():
        lines += ["", f"## {title}", "", *_table(part)]
    return "\n".join(lines) + "\n"


def _table(part: Sequence[AnsweredMistake]) -> Iterator[str]:
    yield "| a user ... | answer | kind |"
    yield "|---|---|---|"
    for mistake, answer in part:
        typed = f": `qualms {mistake.do}`" if mistake.typed else ""
        said = _plain(answer.sentence(mistake.says))
        yield f"| {_plain(mistake.what)}{typed} | {said} | {mistake.kind} |"


def _plain(text: str) -> str:
    """Return text in which nothing is Markdown or HTML."""
    marked = re.sub(r"([\\|*_`\[\]])", r"\\\1", text)
    return marked.replace("<", "&lt;")


def main() -> None:
    """Print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"to docs/{PAGE.name}")
    chosen = parser.parse_args()
    since = time.monotonic()
    page = page_of(answered())
    if chosen.write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page)
    print(f"{time.monotonic() - since:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
