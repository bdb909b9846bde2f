"""A table cut to the height and width of a terminal, with the page for the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import zip_longest

from rich.console import Console

from qualms.report._terminal import counted, is_beside, print_legend, print_table
from qualms.report.table import Table, TableCell

HEAD = 6
"""Lines for title, heads and legend, when lines of numbers are counted."""


def print_short_table(table: Table, *, console: Console, most: int) -> None:
    """Print a table in at most so many lines, within the console's width.

    Columns are left out before lines are, the last ones of each group first. Lines that
    may be best stay. Published numbers and notes are left to the page.
    """
    columns = table.filled()
    own = _plain(_part(table, columns, _best_lines(table, most - HEAD)))
    size = (len(columns), len(table.lines))
    short = _shortened(own, size, console.width, most)
    _print(short, _left_out(size, short), console)


def _shortened(table: Table, size: tuple[int, int], width: int, most: int) -> Table:
    """Return the part of a table that fits.

    Args:
        table: Our numbers.
        size: Columns and lines of the whole table.
        width: Letters of a line.
        most: Lines.
    """
    lines = range(len(table.lines))
    order = list(_by_turns(table))
    for count in range(len(order), 0, -1):
        some = _part(table, sorted(order[:count]), lines)
        if is_beside(some, width) and _height(size, some, width) <= most:
            return some
    some = _part(table, order[:1], lines)
    for count in range(len(lines) - 1, 0, -1):
        some = _part(table, order[:1], _best_lines(table, count))
        if _height(size, some, width) <= most:
            break
    return some


def _plain(table: Table) -> Table:
    """Return a table of our numbers alone."""
    lines = tuple(
        replace(line, cells=tuple(map(_plain_cell, line.cells))) for line in table.lines
    )
    return replace(table, lines=lines, notes=())


def _plain_cell(cell: TableCell) -> TableCell:
    return replace(cell, published=None, released=None, why="", no_interval="")


def _by_turns(table: Table) -> Iterator[int]:
    """Yield the places of columns: the first of each group, then the second ones."""
    groups = [members for _, members in table.groups(table.filled())]
    for places in zip_longest(*groups):
        yield from (place for place in places if place is not None)


def _best_lines(table: Table, most: int) -> list[int]:
    """Return the places of so many lines, those that are best anywhere first."""
    order = sorted(
        range(len(table.lines)),
        key=lambda at: not any(c.best or c.tied for c in table.lines[at].cells),
    )
    return sorted(order[: max(1, most)])


def _part(table: Table, columns: Sequence[int], lines: Sequence[int]) -> Table:
    return replace(
        table,
        columns=tuple(table.columns[place] for place in columns),
        lines=tuple(
            replace(line, cells=tuple(line.cells[place] for place in columns))
            for line in (table.lines[at] for at in lines)
        ),
    )


def _left_out(size: tuple[int, int], short: Table) -> str:
    """Say how much of a table of this size is left out; "" for nothing."""
    counts = {
        "more column": size[0] - len(short.columns),
        "more line": size[1] - len(short.lines),
    }
    text = counted(counts)
    return f"{text} on the page" if text else ""


def _height(size: tuple[int, int], short: Table, width: int) -> int:
    """Return how many lines a part of a table takes."""
    file = StringIO()
    _print(short, _left_out(size, short), Console(file=file, width=width))
    return file.getvalue().count("\n")


def _print(short: Table, left_out: str, console: Console) -> None:
    print_table(short, console=console)
    print_legend([short], console=console)
    if left_out:
        console.print(left_out, style="dim", highlight=False)
