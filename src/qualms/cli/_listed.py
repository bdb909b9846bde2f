"""Output of `qualms runs` and `qualms gc`."""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len

from qualms.wording import plain_line, plural

if TYPE_CHECKING:
    from qualms.catalogue import Removable, RunListing, RunRecord, Value

WIDEST = 24
"""Most characters of a cell."""
FIRST = ("run", "status", "benchmark", "dataset", "network", "method", "seed")
"""Columns that are shown first, where they are not the same in all runs."""
LAST = ("error",)
MARKS = {"failed": "red", "damaged": "red", "running": "cyan", "stopped": "yellow"}


def print_runs(listing: "RunListing", columns: Sequence[str], limit: int) -> None:
    """Print runs as a table, what all of them share above it."""
    from qualms.catalogue import refuse_unknown

    records = listing.records[: limit or None]
    typer.echo(_summary(listing))
    if not records:
        return
    refuse_unknown(columns, listing.names)
    if len(listing) == 1 and not columns:
        _print_one(records[0], listing)
        return
    names = ["run", *columns] if columns else _shown(listing)
    shared = {} if columns else _shared(listing)
    if shared:
        typer.echo(
            "; ".join(f"{name} {_text(value)}" for name, value in shared.items())
        )
    rows = [[_text(record.get(name)) for name in names] for record in records]
    dropped = _print_table(names, rows)
    if dropped:
        more = f"{', '.join(dropped[:6])}{' ...' if len(dropped) > 6 else ''}"
        typer.echo(f"not shown for lack of room: {more} (--columns, --json, --export)")
    if len(records) < len(listing):
        typer.echo(f"... and {len(listing) - len(records):,} more (--limit 0 for all)")


def _print_one(record: "RunRecord", listing: "RunListing") -> None:
    """Print everything that is known of one run."""
    values = {name: record.get(name) for name in listing.names}
    known = {name: value for name, value in values.items() if value is not None}
    width = max(map(len, known))
    for name, value in known.items():
        text = f"{value:.6g}" if isinstance(value, float) else plain_line(str(value))
        typer.echo(f"{name:<{width}}  {text}")


def print_differences(listing: "RunListing", limit: int) -> None:
    """Print what differs between runs: a line for each name, a column for each run."""
    if len(listing) < 2:
        raise ValueError(
            f"two or more runs can be compared, and {len(listing)} fits; loosen the"
            " filters, or name runs as in run=0123*,89ab*"
        )
    records = listing.records[: limit or None]
    typer.echo(_summary(listing))
    values = {
        name: [record.get(name) for record in records]
        for name in listing.differing()
        if name not in ("run", "folder", "finished")
    }
    head = ["", *(record.run[:8] for record in records)]
    rows = [[name, *map(_text, each)] for name, each in values.items()]
    dropped = _print_table(head, rows)
    if dropped:
        words = f"{len(dropped)} {plural(len(dropped), 'run')}"
        typer.echo(f"not shown for lack of room: {words}")
    same = len(listing.names) - len(values)
    typer.echo(f"{same} further names are the same in all of them, or empty")


def print_json(listing: "RunListing") -> None:
    """Print runs as a JSON list."""
    rows = [record.to_json() for record in listing]
    sys.stdout.write(json.dumps(rows, indent=1) + "\n")


def print_removable(removables: Sequence["Removable"], *, every: bool) -> None:
    """Print what can be deleted, by kind, and with `every` path by path."""
    from qualms.catalogue import KINDS

    for kind, words in KINDS.items():
        own = [each for each in removables if each.kind == kind]
        if not own:
            continue
        typer.echo(f"{size_text(sum(e.bytes for e in own)):>9}  {kind} ({len(own):,})")
        typer.echo(f"           {words}")
        for each in own if every else ():
            typer.echo(f"{size_text(each.bytes):>20}  {each.path}")


def size_text(count: int) -> str:
    """Return a number of bytes in words.

    >>> size_text(0), size_text(1_234), size_text(5_600_000)
    ('0 B', '1.2 kB', '5.6 MB')
    """
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _summary(listing: "RunListing") -> str:
    counts = Counter(record.status for record in listing)
    statuses = ", ".join(f"{n:,} {status}" for status, n in sorted(counts.items()))
    of = f" of {listing.total:,}" if len(listing) < listing.total else ""
    runs = plural(listing.total, "run")
    return f"{len(listing):,}{of} {runs}{f': {statuses}' if statuses else ''}"


def _shown(listing: "RunListing") -> list[str]:
    """Return the names that differ, the most telling first."""
    differing = listing.differing()
    scores = dict.fromkeys(name for record in listing for name in record.scores)
    options = dict.fromkeys(name for record in listing for name in record.options)
    first = [name for name in FIRST if name in differing]
    names = ["run", *first, *_main(scores), *options, *LAST]
    return [n for n in dict.fromkeys(names) if n in differing or n in scores]


def _main(scores: Iterable[str]) -> list[str]:
    """Return the scores of the main items first."""
    return sorted(scores, key=lambda name: "." in name)


def _shared(listing: "RunListing") -> dict[str, "Value"]:
    """Return the labels that all of several runs share."""
    differing = listing.differing()
    first = listing.records[0]
    names = [n for n in FIRST[1:] if n not in differing]
    return {n: value for n in names if (value := first.get(n)) is not None}


def _text(value: "Value | None") -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = plain_line(str(value))
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Print as many columns as there is room for; return the names of the others."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    columns = list(zip(names, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    count, used = 0, 0
    while count < len(widths) and used + widths[count] <= room:
        used += widths[count] + 2
        count += 1
    count = max(count, 1)
    numeric = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    for line, row in enumerate([names, *rows]):
        cells = [
            (" " * (width - cell_len(cell)) + cell)
            if right
            else (cell + " " * (width - cell_len(cell)))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ][:count]
        text = "  ".join(cells).rstrip()
        typer.echo(typer.style(text, bold=True) if line == 0 else _coloured(text, row))
    return list(names[count:])


def _coloured(text: str, row: Sequence[str]) -> str:
    colour = next((MARKS[cell] for cell in row if cell in MARKS), None)
    return text if colour is None else typer.style(text, fg=colour)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True
