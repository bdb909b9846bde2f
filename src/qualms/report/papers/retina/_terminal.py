"""A run of the RETINA benchmark in a terminal."""

import math
import re
from collections.abc import Iterator
from textwrap import wrap

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._compared import Compared, pair
from qualms.report.papers.retina._layouts import Column
from qualms.report.papers.retina._numbers import shown
from qualms.report.papers.retina._own_tables import area_tables, truth_tables
from qualms.report.papers.retina._settings import main_variants
from qualms.report.papers.retina._summary import summary_table
from qualms.report.papers.retina._table import Line, Part, Table
from qualms.report.papers.retina._tables import absent_tables, paper_tables

_WIDE = 120
"""Columns of a terminal that hold standard errors and all scores."""
_LABEL = 19
"""Columns that the name of a method takes at least."""


def print_tables(results: BenchmarkResults, console: Console, full: bool) -> list[str]:
    """Print a summary per variant and what simulators know, with `full` all tables.

    Gives notes on what is not shown.
    """
    wide = console.width >= _WIDE
    judged = {key.variant for key, cell in results.cells.items() if cell.values}
    tables = [
        summary_table(results, variant, wide=wide)
        for variant in main_variants(results.preset)
        if variant.name in judged
    ]
    papers, areas = paper_tables(results), area_tables(results)
    tables += [*papers, *areas] if full else []
    tables += truth_tables(results)
    for table in tables:
        for grid in _grids(table, console.width):
            console.print(grid)
    for line in _legend(tables, wide=wide):
        console.print(line, style="dim", highlight=False)
    notes = []
    if absent := absent_tables(papers):
        notes.append(f"nothing was judged for the paper's tables {', '.join(absent)}")
    if not full:
        count = len(papers) + len(areas)
        notes.append(f"{count} more tables, the paper's and ours, are written as files")
    return notes


def _grids(table: Table, width: int) -> Iterator[Grid]:
    wide = width >= _WIDE
    for part in table.parts:
        what = ", ".join(filter(None, (table.heading, part.title)))
        title = f"[bold]{escape(what)}[/bold]: [yellow]{escape(table.about)}[/yellow]"
        for places in _fitting(part, width, wide=wide):
            grid = _grid(part, places, title, wide=wide)
            below = "; ".join(filter(None, (table.note.rstrip("."), *_reasons(part))))
            grid.caption = escape(below) or None
            yield grid


def _fitting(part: Part, width: int, *, wide: bool) -> list[list[int]]:
    """Columns that fit side by side; those with no number in any line are left out."""
    groups: list[list[int]] = []
    left = 0
    for place, column in enumerate(part.columns):
        if not _known(part, place):
            continue
        needed = 1 + _size(column, wide=wide)
        if needed > left:
            groups.append([])
            left = width - _LABEL
        groups[-1].append(place)
        left -= needed
    return groups


def _grid(part: Part, places: list[int], title: str, *, wide: bool) -> Grid:
    made = Grid(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
        caption_justify="left",
    )
    made.add_column("method", overflow="fold", min_width=_LABEL - 1)
    for i in places:
        column = part.columns[i]
        size = _size(column, wide=wide)
        # Rich breaks heads in its own way, and may then overrun the terminal.
        head = [*wrap(column.head, size), *wrap(column.label, size)]
        made.add_column(escape("\n".join(head)), justify="right", no_wrap=True)
    for line in part.lines:
        cells = (_cell(line.compared[i], part.columns[i], wide=wide) for i in places)
        marks = (_mark(part, line, i) for i in places)
        made.add_row(escape(line.label), *map(_marked, cells, marks))
    return made


def _size(column: Column, *, wide: bool) -> int:
    # An arrow stays on the line of its word.
    words = re.split(" (?![↑↓])", f"{column.head} {column.label}")
    number = (12 if column.score.unit.decimals > 2 else 10) if wide else 6
    return max(number, *map(len, words))


def _known(part: Part, place: int) -> bool:
    """Whether a column has a number in any line."""
    column = part.columns[place]
    return any(
        math.isfinite(shown(line.compared[place], column).mean)
        or line.compared[place].number is not None
        for line in part.lines
    )


def _cell(compared: Compared, column: Column, *, wide: bool) -> list[str]:
    """Ours, and below it the paper's where there is one."""
    decimals = column.score.unit.decimals
    mean, error = shown(compared, column)
    number = compared.number
    pairs = [(mean, error)] + ([(number.mean, number.spread)] if number else [])
    return [
        pair(mean, spread if wide else None, decimals=decimals).replace(" ", "")
        for mean, spread in pairs
    ]


def _mark(part: Part, line: Line, place: int) -> str:
    """A dot for the best and its equals; as wide, where others have one."""
    if part.columns[place].theirs:
        return ""
    if line.compared[place].tied:
        return "●"
    return " " if any(other.compared[place].tied for other in part.lines) else ""


def _marked(cell: list[str], mark: str) -> str:
    below = [f"\n[dim]{theirs}[/dim]{mark and ' '}" for theirs in cell[1:]]
    return "".join([cell[0], mark, *below])


def _reasons(part: Part) -> list[str]:
    """Why cells are empty, each reason once, with what it is about."""
    found: dict[str, list[str]] = {}
    for line in part.lines:
        for column, compared in zip(part.columns, line.compared, strict=True):
            if compared.cell.why:
                what = f"{column.subset}/{column.score.name}"
                found.setdefault(compared.cell.why, []).append(what)
    return [f"{', '.join(dict.fromkeys(about))}: {why}" for why, about in found.items()]


def _legend(tables: list[Table], *, wide: bool) -> Iterator[str]:
    spread = ", mean±standard error over repeats" if wide else ", mean over repeats"
    yield (
        f"in %, NLL in nats{spread}; acc@0.5: accuracy of the half that is kept when "
        "the most uncertain are referred; OOD: shifted items found by their "
        "uncertainty; ● cannot be told apart from the best"
    )
    if any(table.compares for table in tables):
        yield "second line: the paper's"
