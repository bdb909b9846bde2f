"""The one record of a table, whatever prints it.

A table of a paper, a table of ours, and the scores of some files are all of this kind.
`_terminal`, `_latex`, `_html` and `_csv_files` each print it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
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
    """Spread over repeats, as `Table.spread` says; nan for one repeat."""
    low: float = math.nan
    high: float = math.nan
    repeats: int = 0
    best: bool = False
    tied: bool = False
    """True if it is the best of its column or cannot be told apart from the best."""
    released: Summary | None = None
    """Our number by the rule of the paper's released code; only this is comparable with
    the published number."""
    published: Summary | None = None
    why: str = ""
    """Why our number is missing."""
    no_interval: str = ""
    """Why it has no interval."""
    covers: str = ""
    """Coverage of its interval, as in `Result.covers`."""
    seeds: tuple[float, float] | None = None
    """The least and the most of its seeds, where these are too few, or too far apart,
    for an interval."""
    remark: str = ""
    """Why there is no published number, or a misprint of it."""
    text: str = ""
    """Words that stand in place of a number."""

    @property
    def gap(self) -> float:
        """Our number by the released rule, minus the published number."""
        if self.published is None or self.released is None:
            return math.nan
        return self.released.mean - self.published.mean

    @property
    def difference(self) -> float:
        """The gap in units of the published spread; nan where this is 0 or missing."""
        if self.published is None or not self.published.std > 0:
            return math.nan
        return self.gap / self.published.std

    @property
    def bounded(self) -> bool:
        """True if it has an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def known(self) -> bool:
        """True if there is anything to print."""
        return bool(self.text or self.published) or not math.isnan(self.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, and how its numbers are printed."""

    label: str
    group: str = ""
    """Stands above all neighbouring columns that have the same."""
    unit: str = ""
    decimals: int | None = None
    """None for four significant digits."""
    released: bool = False
    """True to show our numbers by the rule of the paper's released code."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Labels of its results, for the CSV file."""

    @property
    def head(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One line of a table."""

    labels: tuple[str, ...]
    """One for each of the table's columns on the left."""
    cells: tuple[TableCell, ...]
    """One per column."""
    section: str = ""
    """Stands above all neighbouring lines that have the same."""
    beyond: bool = False
    """True if the paper does not have it."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Labels of its results, for the CSV file."""
    decimals: int | None = None
    """Of its numbers; None for those of the column."""


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
    """Data, preset and selection of the numbers, in words."""
    simulated: bool = False
    notes: tuple[str, ...] = ()
    published_notes: tuple[str, ...] = ()
    """Notes on its published numbers, for where these are shown."""
    spread: str = ""
    """Kind of spread: standard error, standard deviation; '' where there is none."""
    level: float = 0.95
    """Level of the intervals."""
    main: bool = True
    """True to show it even where not all tables are asked for."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Labels of all its results, for the CSV file."""

    @property
    def cells(self) -> tuple[TableCell, ...]:
        """All cells, line by line."""
        return tuple(cell for line in self.lines for cell in line.cells)

    @property
    def compares(self) -> bool:
        """True if any published number stands in it."""
        return any(cell.published is not None for cell in self.cells)

    @property
    def every_note(self) -> tuple[str, ...]:
        """The notes, with those on published numbers where it has any."""
        return (*self.notes, *(self.published_notes if self.compares else ()))

    @property
    def marks(self) -> bool:
        """True if any cell is marked as best or tied with the best."""
        return any(
            cell.tied and not column.released
            for line in self.lines
            for column, cell in zip(self.columns, line.cells, strict=True)
        )

    def shown(self, place: int, line: TableLine) -> TableCell:
        """Return the cell of a line as its column shows it."""
        cell = line.cells[place]
        if not self.columns[place].released:
            return cell
        released = cell.released or Summary(math.nan, math.nan)
        # Few seeds do not show how far others lie, by whichever rule they are scored.
        spread = released.std if cell.seeds is None else math.nan
        return TableCell(mean=released.mean, spread=spread)

    def filled(self) -> list[int]:
        """Return the places of the columns that have a number in some line."""
        places = range(len(self.columns))
        return [i for i in places if any(self.shown(i, ln).known for ln in self.lines)]

    def groups(self, places: Iterable[int]) -> list[tuple[str, list[int]]]:
        """Return the head of each column group, and the places below it, in order."""
        groups = groupby(places, key=lambda place: self.columns[place].group)
        return [(head, list(members)) for head, members in groups]

    def decimals(self, place: int, line: TableLine) -> int | None:
        """Return the decimals of a cell; None for four significant digits."""
        own = self.columns[place].decimals
        return own if line.decimals is None else line.decimals

    def sections(self) -> list[tuple[str, list[TableLine]]]:
        """Return the title of each section with its lines, in order."""
        sections = groupby(self.lines, key=lambda line: line.section)
        return [(title, list(lines)) for title, lines in sections]


def digits(value: float, decimals: int | None = None) -> str:
    """Return a number with so many decimals, or with four significant digits.

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
    """Return mean and spread with the same decimals, or the mean if it has no spread.

    >>> with_spread(13.2134, 0.1262), with_spread(88.62, 0.04, 1)
    ('13.21 ± 0.13', '88.6 ± 0.0')
    """
    text = digits(mean, decimals)
    if math.isnan(spread) or not math.isfinite(mean):
        return text
    places = len(text.partition(".")[2]) if decimals is None else decimals
    return f"{text}{sign}{spread:.{places}f}"


def interval_text(cell: TableCell, decimals: int | None = None) -> str:
    """Return the interval of a cell, or the range of its seeds; '' for neither.

    >>> interval_text(TableCell(low=0.917, high=0.941), 2)
    '0.92–0.94'
    >>> interval_text(TableCell(seeds=(0.917, 0.941)), 2)
    '[0.92–0.94]'
    """
    if not cell.bounded:
        return "" if cell.seeds is None else f"[{_range(*cell.seeds, decimals)}]"
    return _range(cell.low, cell.high, decimals)


def _range(least: float, most: float, decimals: int | None) -> str:
    low, high = digits(least, decimals), digits(most, decimals)
    return f"{low} to {high}" if low.startswith("-") else f"{low}{DASH}{high}"


_FEW = 3
"""Columns that a remark names; of more it says how many they are."""


def remarks(table: Table, *, most: int = 6) -> list[str]:
    """Return why cells have no number or no interval, each reason once.

    A reason stands after the columns and lines that it is of. Where it holds for all
    lines of a column the lines are not named.

    Args:
        table: The table.
        most: Lines that a remark names at most.
    """
    reasons: dict[str, dict[str, list[str]]] = {}
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            if reason := _reason(cell):
                head = ", ".join(filter(None, (line.section, column.group)))
                name = ", ".join(filter(None, (head, column.label)))
                lines = reasons.setdefault(reason, {}).setdefault(name, [])
                lines.append(", ".join(filter(None, line.labels)))
    return [_remark(table, *each, most) for each in reasons.items()]


def _reason(cell: TableCell) -> str:
    """Return why a cell lacks its number or interval; '' where it does not."""
    if math.isnan(cell.mean):
        return cell.why
    if not cell.no_interval or cell.no_interval.startswith("no interval"):
        return cell.no_interval
    return f"no interval: {cell.no_interval}"


def _remark(
    table: Table, reason: str, lines_of: Mapping[str, list[str]], most: int
) -> str:
    """Return a reason with the columns, and their lines, that it is of.

    Of many columns the number stands there.
    """
    lines = list(dict.fromkeys(name for names in lines_of.values() for name in names))
    sizes = [len(members) for _, members in table.sections()]
    of_all = all(len(names) in sizes for names in lines_of.values())
    of = "" if of_all else f" of {_listed(lines, most)}"
    columns = list(lines_of)
    words = (
        _listed(columns, most) if len(columns) <= _FEW else f"{len(columns)} columns"
    )
    return f"{words}{of}: {reason}"


def _listed(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def legend(tables: Sequence[Table], *, spreads: bool = True) -> list[str]:
    """Return sentences that say how the cells of some tables are read.

    Args:
        tables: The tables.
        spreads: Whether the spread over repeats is printed.
    """
    if not tables:
        return []
    sentences = []
    spread = next((table.spread for table in tables if table.spread), "")
    cells = [cell for table in tables for cell in table.cells]
    if spread and any(cell.repeats > 1 for cell in cells):
        sentences.append("Numbers are means over repeats.")
    if spread and spreads and any(math.isfinite(cell.spread) for cell in cells):
        sentences.append(f"± is their {spread}.")
    sentences.extend(_ranges(cells, tables[0].level))
    if any("↑" in text or "↓" in text for t in tables for text in _heads(t)):
        sentences.append("↑ higher is better, ↓ lower is better.")
    if any(table.marks for table in tables):
        sentences.append(
            f"{MARK} marks the best and what cannot be told apart from it."
        )
    if any(table.compares for table in tables):
        sentences.append(
            f"In brackets: the published number{_compared(cells, spread)}."
        )
    return sentences


def _ranges(cells: Sequence[TableCell], level: float) -> Iterable[str]:
    """Yield sentences that explain the ranges of cells."""
    if any(cell.bounded for cell in cells):
        yield f"Ranges are {level:.0%} intervals."
    if any(cell.seeds is not None for cell in cells):
        yield (
            "[ ] is the range of seeds that are too few, or too far apart, to say how"
            " far others lie."
        )


def _compared(cells: Iterable[TableCell], spread: str) -> str:
    """Return the end of the sentence on brackets: the distance from the paper."""
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
