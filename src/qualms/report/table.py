"""The one record of a table, whatever prints it.

A table of a paper, a table of ours, and the scores of some files are all of this kind.
`terminal`, `latex`, `html` and `csv_files` each print it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from qualms.results import Summary

DASH = "\N{EN DASH}"
MARK = "●"
"""Stands beside the best of a column and those that cannot be told apart from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """Our number, its interval, and the published number where there is one."""

    mean: float = math.nan
    spread: float = math.nan
    """Over repeats, as `Table.spread` says; nan for one repeat."""
    low: float = math.nan
    high: float = math.nan
    repeats: int = 0
    best: bool = False
    tied: bool = False
    """Whether it is the best of its column or cannot be told apart from it."""
    by_their_rule: Summary | None = None
    """Ours, computed as the paper's released code does; only this is comparable with
    the published number."""
    published: Summary | None = None
    why: str = ""
    """Why our number is missing."""
    no_interval: str = ""
    """Why it has no interval, where that is so."""
    remark: str = ""
    """About the published number: why there is none, or a misprint."""
    text: str = ""
    """Words that stand in place of a number."""

    @property
    def gap(self) -> float:
        """Ours by the paper's rule, minus the published number."""
        if self.published is None or self.by_their_rule is None:
            return math.nan
        return self.by_their_rule.mean - self.published.mean

    @property
    def difference(self) -> float:
        """The gap in units of the published spread; nan where that is 0 or missing."""
        if self.published is None or not self.published.std > 0:
            return math.nan
        return self.gap / self.published.std

    @property
    def bounded(self) -> bool:
        """Whether it has an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def known(self) -> bool:
        """Whether there is anything to print."""
        return bool(self.text or self.published) or not math.isnan(self.mean)


EMPTY = TableCell()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, and how its numbers are printed."""

    label: str
    group: str = ""
    """Stands above all neighbouring columns that have the same."""
    unit: str = ""
    decimals: int | None = None
    """None for four significant digits."""
    by_their_rule: bool = False
    """Whether it shows ours by the rule of the paper's released code."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """What the column is, for the CSV file."""

    @property
    def head(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One line of a table."""

    labels: tuple[str, ...]
    """As many as the table has columns on its left."""
    cells: tuple[TableCell, ...]
    """One per column."""
    section: str = ""
    """Stands above all neighbouring lines that have the same."""
    beyond: bool = False
    """True for lines that the paper does not have."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """What the line is, for the CSV file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A title, columns in groups, and lines of cells."""

    name: str
    """Name of its files, without ending."""
    title: str
    columns: tuple[Column, ...]
    lines: tuple[TableLine, ...]
    left: tuple[str, ...] = ("method",)
    """Heads of the columns that hold the labels of lines."""
    about: str = ""
    """Which data, preset and selection the numbers are of."""
    simulated: bool = False
    notes: tuple[str, ...] = ()
    spread: str = ""
    """What a spread is: standard error, standard deviation; '' where there is none."""
    level: float = 0.95
    """Level of the intervals."""
    main: bool = True
    """Whether it is shown even where not all tables are asked for."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """What holds for all of it, for the CSV file."""

    @property
    def cells(self) -> tuple[TableCell, ...]:
        """All of them."""
        return tuple(cell for line in self.lines for cell in line.cells)

    @property
    def compares(self) -> bool:
        """Whether any published number stands in it."""
        return any(cell.published is not None for cell in self.cells)

    @property
    def marks(self) -> bool:
        """Whether any cell is marked as best or tied with the best."""
        return any(
            cell.tied and not column.by_their_rule
            for line in self.lines
            for column, cell in zip(self.columns, line.cells, strict=True)
        )

    def shown(self, place: int, line: TableLine) -> TableCell:
        """The cell of a line as its column shows it."""
        cell = line.cells[place]
        if not self.columns[place].by_their_rule:
            return cell
        theirs = cell.by_their_rule or Summary(math.nan, math.nan)
        return TableCell(mean=theirs.mean, spread=theirs.std)

    def filled(self) -> list[int]:
        """Places of the columns that have a number in some line."""
        places = range(len(self.columns))
        return [i for i in places if any(self.shown(i, ln).known for ln in self.lines)]

    def groups(self, places: Iterable[int]) -> list[tuple[str, list[int]]]:
        """Column groups among `places`, in order: the head, and the places under it."""
        found = groupby(places, key=lambda place: self.columns[place].group)
        return [(head, list(members)) for head, members in found]

    def sections(self) -> list[tuple[str, list[TableLine]]]:
        """Lines by section, in order."""
        found = groupby(self.lines, key=lambda line: line.section)
        return [(title, list(lines)) for title, lines in found]


def digits(value: float, decimals: int | None = None) -> str:
    """A number with so many decimals, by default with four significant digits.

    >>> digits(0.89672), digits(13.2134), digits(88.62, 1), digits(float("nan"))
    ('0.8967', '13.21', '88.6', '–')
    """
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if decimals is not None:
        text = f"{value:.{decimals}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    # Below this only rounding is left, as in the E-AURC of a perfect ranking.
    if abs(value) < 1e-12:
        return "0.0000"
    if 1e-3 <= abs(value) < 1:
        return f"{value:.4f}"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:#.4g}"


def with_spread(
    mean: float, spread: float, decimals: int | None = None, *, sign: str = " ± "
) -> str:
    """Mean and spread with the same number of decimals; the mean alone without one.

    >>> with_spread(13.2134, 0.1262), with_spread(88.62, 0.04, 1)
    ('13.21 ± 0.13', '88.6 ± 0.0')
    """
    text = digits(mean, decimals)
    if math.isnan(spread) or not math.isfinite(mean):
        return text
    places = len(text.partition(".")[2]) if decimals is None else decimals
    return f"{text}{sign}{spread:.{places}f}"


def interval_text(cell: TableCell, decimals: int | None = None) -> str:
    """The interval of a cell, '' where it has none.

    >>> interval_text(TableCell(low=0.917, high=0.941), 2)
    '0.92–0.94'
    """
    if not cell.bounded:
        return ""
    low, high = digits(cell.low, decimals), digits(cell.high, decimals)
    return f"{low} to {high}" if low.startswith("-") else f"{low}{DASH}{high}"


def remarks(table: Table) -> list[str]:
    """Why cells have no number or no interval, each reason once with what it is of.

    Where a reason holds for all lines of a column the lines are not named.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            if why := _lack(cell):
                head = ", ".join(filter(None, (line.section, column.group)))
                what = ", ".join(filter(None, (head, column.label)))
                lines = found.setdefault(why, {}).setdefault(what, [])
                lines.append(", ".join(filter(None, line.labels)))
    return [_remark(table, why, about) for why, about in found.items()]


def _lack(cell: TableCell) -> str:
    if math.isnan(cell.mean):
        return cell.why
    return f"no interval: {cell.no_interval}" if cell.no_interval else ""


def _remark(table: Table, why: str, about: Mapping[str, list[str]]) -> str:
    lines = list(dict.fromkeys(name for names in about.values() for name in names))
    sizes = [len(members) for _, members in table.sections()]
    whole = all(len(names) in sizes for names in about.values())
    of = "" if whole else f" of {_listed(lines)}"
    return f"{_listed(list(about))}{of}: {why}"


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def legend(tables: Iterable[Table], *, spreads: bool = True) -> list[str]:
    """Sentences that say how the cells of some tables are read.

    Args:
        tables: The tables.
        spreads: Whether the spread over repeats is printed.
    """
    shown = list(tables)
    if not shown:
        return []
    told = []
    spread = next((table.spread for table in shown if table.spread), "")
    if spread:
        told.append("Numbers are means over repeats.")
    cells = [cell for table in shown for cell in table.cells]
    if spread and spreads and any(math.isfinite(cell.spread) for cell in cells):
        told.append(f"± is their {spread}.")
    if any(cell.bounded for cell in cells):
        told.append(f"Ranges are {shown[0].level:.0%} intervals.")
    if any("↑" in text or "↓" in text for t in shown for text in _heads(t)):
        told.append("↑ higher is better, ↓ lower is better.")
    if any(table.marks for table in shown):
        told.append(f"{MARK} marks the best and what cannot be told apart from it.")
    if any(table.compares for table in shown):
        told.append(f"In brackets: the published number{_compared(cells, spread)}.")
    return told


def _compared(cells: Iterable[TableCell], spread: str) -> str:
    """What else stands in the brackets."""
    if not any(math.isfinite(cell.difference) for cell in cells):
        return ""
    return (
        ", and how far ours, computed by the paper's rule, lies from it in units of the"
        f" published {spread or 'spread'}"
    )


def _heads(table: Table) -> Iterable[str]:
    for column in table.columns:
        yield from (column.label, column.group)
    for line in table.lines:
        yield from line.labels
