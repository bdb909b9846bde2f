"""Tables as declarations: which results stand in which lines and columns.

A layout names labels. Its lines are the distinct values of some labels, its columns
choose results by theirs, and published numbers stand beside ours where all labels that
they have agree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.uncertainty_ranking import UNCERTAINTY
from qualms.labels import Label, Labels, Wanted
from qualms.published import Published, published
from qualms.report.judged import DEVIATION, NOT_PRINTED, table_cell
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Result, ResultsTable
from qualms.study import RunPlan

Wishes = Mapping[str, Wanted]
"""Labels that results must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutColumn:
    """A column: which results stand in it, and how they are printed."""

    label: str
    labels: Wishes
    """Labels of its results, e.g. {"subset": "shifted", "score": "auroc"}."""
    group: str = ""
    """Head above all neighbouring columns with the same group."""
    unit: str = ""
    scale: float = 1.0
    """Factor that gives numbers the unit."""
    decimals: int | None = None
    released: bool = False
    """True to show our numbers by the rule of the paper's released code."""


class Section(NamedTuple):
    """A part of a table with the same columns and other results."""

    title: str = ""
    labels: Wishes = {}  # noqa: RUF012 - nothing changes it
    """Labels of its results. Those that belong to lines choose its lines."""


def row_label(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    """Return the paper's name of a row."""
    return (plan.row(str(labels["row"])).label,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A table: its title, and where its results come from."""

    name: str
    title: str
    columns: tuple[LayoutColumn, ...]
    where: Wishes = field(default_factory=dict)
    """Labels of all of its results."""
    lines: tuple[str, ...] = ("row",)
    """Labels whose distinct values are its lines."""
    line_labels: Callable[[RunPlan, Labels], tuple[str, ...]] = row_label
    """Words for the labels of a line, as many as `left` has."""
    left: tuple[str, ...] = ("method",)
    """Heads of the columns that hold these words."""
    sections: tuple[Section, ...] = (Section(),)
    order: Mapping[str, Sequence[Label | None]] = field(default_factory=dict)
    """For labels of lines that are words, the order of their values; others follow."""
    printed_in: Wishes | None = field(default_factory=dict)
    """Labels of the published numbers beside ours, e.g. {"table": "4"}; None for no
    published numbers."""
    across: tuple[str, ...] = ()
    """Labels in which a published number may differ from ours, such as `simulated`. One
    that does is shown without a difference."""
    spread: str = DEVIATION
    """The kind of spread beside a mean."""
    compares: bool = True
    """True to compare our numbers by the released code's rule with the paper's."""
    marked: bool = True
    """True to mark the best row of each column."""
    among_uncertainties: bool = False
    """True if lines are the uncertainties of all rows, and the best of them is marked;
    false to mark the best of the rows with an uncertainty of the same name. Lines are
    ranked on one variant."""
    notes: tuple[str, ...] = ()
    published_notes: tuple[str, ...] = ()
    """Notes on published numbers, for tables that show any."""
    main: bool = False
    """True to show it even where not all tables are asked for."""


def layout_table(
    results: BenchmarkResults,
    layout: Layout,
    *,
    about: str,
    simulated: bool = False,
    absent: str = NOT_PRINTED,
    keys: Labels | None = None,
) -> Table | None:
    """Lay results out as a table; None where no line has any.

    Columns that choose no result at all are left out, as those of a variant that was
    not asked for.

    Args:
        results: The judged benchmark.
        layout: The table.
        about: Data and preset in words.
        simulated: Whether the data are simulated.
        absent: Why there is no published number, where there is none.
        keys: Labels of the whole table, for its CSV file.
    """
    table = results.table.where(**layout.where)
    planned = [_line_labels(results.plan, column.labels) for column in layout.columns]
    columns = [
        column
        for column, labels in zip(layout.columns, planned, strict=True)
        if len(table.where(**labels))
    ]
    numbers = _numbers(results, layout)
    lines = tuple(
        _line(results, layout, columns, line, section, numbers, absent)
        for section in layout.sections
        for line in _lines(results.plan, table, layout, section, planned)
    )
    if not lines or not columns:
        return None
    return Table(
        name=f"table_{layout.name}",
        title=layout.title,
        about=about,
        simulated=simulated,
        columns=tuple(map(_head, columns)),
        lines=lines,
        left=layout.left,
        notes=(*layout.notes, *_coverage_notes(lines, len(columns))),
        published_notes=layout.published_notes,
        spread=layout.spread,
        level=results.level,
        main=layout.main,
        keys={"preset": results.plan.preset_text, **(keys or {})},
    )


def _coverage_notes(lines: Sequence[TableLine], columns: int) -> tuple[str, ...]:
    """Return a note if intervals of one column cover different things, else nothing.

    An interval of one run seems narrow beside those that cover other seeds as well.
    """
    alone: dict[str, None] = {}
    for place in range(columns):
        cells = [(line, line.cells[place]) for line in lines]
        bounded = [(line, cell) for line, cell in cells if cell.bounded]
        if any(cell.covers == "items and seeds" for _, cell in bounded):
            rows = (ln.labels[0] for ln, cell in bounded if cell.covers == "items")
            alone.update(dict.fromkeys(rows))
    if not alone:
        return ()
    return (
        f"Intervals and marks of {'; '.join(alone)} are about other items only, as "
        "there is one run; those of other rows cover other seeds as well, and are "
        "wider for it.",
    )


def published_number(
    results: BenchmarkResults,
    numbers: ResultsTable | None,
    ours: Result,
    *,
    across: Sequence[str] = (),
) -> Result | None:
    """Return the first published number with the labels of a result, or None.

    Every label that both tables have must agree, also where one of them has none;
    labels named by `across` need not.
    """
    if numbers is None:
        return None
    shared = [name for name in numbers.labels if name in results.table.labels]
    names = [name for name in shared if name not in across]
    return numbers.get(**{name: ours.labels.get(name) for name in names})


def published_of(results: BenchmarkResults) -> Published | None:
    """Return the published numbers of the benchmark, if it has any."""
    path = results.benchmark.published
    return None if path is None else published(path)


def _numbers(results: BenchmarkResults, layout: Layout) -> ResultsTable | None:
    """Return the published numbers that may stand in a table."""
    book = published_of(results)
    if book is None or layout.printed_in is None:
        return None
    return book.table.where(**layout.printed_in)


def _line_labels(plan: RunPlan, labels: Wishes, more: Sequence[str] = ()) -> Wishes:
    """Return the labels that are those of lines, or `more`, not of single numbers."""
    names = plan.line_labels.union(more)
    return {name: want for name, want in labels.items() if name in names}


def _lines(
    plan: RunPlan,
    table: ResultsTable,
    layout: Layout,
    section: Section,
    planned: Sequence[Wishes],
) -> list[Mapping[str, Label | None]]:
    """Return the labels of each line of a section, in order."""
    of_section = _line_labels(plan, section.labels, layout.lines)
    distinct: dict[tuple[Label | None, ...], None] = {}
    for labels in planned:
        rows = table.where(**of_section).where(**labels).pivot(layout.lines, ()).rows
        distinct.update(dict.fromkeys(rows))
    order = {"row": [row.name for row in plan.rows], **layout.order}

    def position(line: tuple[Label | None, ...]) -> tuple[float, ...]:
        named = zip(layout.lines, line, strict=True)
        return tuple(
            _position(value, order[name]) if name in order else _number(value)
            for name, value in named
        )

    lines = sorted(distinct, key=position)
    return [dict(zip(layout.lines, line, strict=True)) for line in lines]


def _position(value: Label | None, values: Sequence[Label | None]) -> int:
    return values.index(value) if value in values else len(values)


def _number(value: Label | None) -> float:
    """Return a label as a number to sort by; words keep their order."""
    return float(value) if isinstance(value, int | float) else 0.0


def _line(  # noqa: PLR0913 - the parts of a line
    results: BenchmarkResults,
    layout: Layout,
    columns: Sequence[LayoutColumn],
    line: Mapping[str, Label | None],
    section: Section,
    numbers: ResultsTable | None,
    absent: str,
) -> TableLine:
    cells = []
    for column in columns:
        wanted = {**layout.where, **section.labels, **line, **column.labels}
        judged = results.result(**wanted)
        number = published_number(results, numbers, judged, across=layout.across)
        cell = table_cell(
            judged,
            spread=layout.spread,
            scale=column.scale,
            number=number,
            absent=absent,
        )
        if not layout.marked:
            cell = replace(cell, best=False, tied=False)
        elif layout.among_uncertainties:
            cell = _marked_among_uncertainties(results, judged, cell)
        same = number is None or _agree(number, judged, layout.across)
        if not (layout.compares and same):
            cell = replace(cell, released=None)
        cells.append(cell)
    row = results.plan.row(str(line["row"])) if "row" in line else None
    labels = {name: value for name, value in line.items() if value is not None}
    return TableLine(
        labels=layout.line_labels(results.plan, labels),
        cells=tuple(cells),
        section=section.title,
        beyond=row is not None and row.beyond,
        keys={**_scalars(section.labels), **labels},
    )


def _marked_among_uncertainties(
    results: BenchmarkResults, judged: Result, cell: TableCell
) -> TableCell:
    """Return a cell that is marked by its rank among the uncertainties of all rows."""
    ranking = results.among_uncertainties(judged)
    if ranking is None or ranking.reason:
        return replace(cell, best=False, tied=False)
    own = str(judged.labels["row"]), judged.labels.get(UNCERTAINTY)
    return replace(cell, best=ranking.is_best(*own), tied=ranking.may_be_best(*own))


def _agree(one: Result, other: Result, names: Sequence[str]) -> bool:
    return all(one.labels.get(name) == other.labels.get(name) for name in names)


def _head(column: LayoutColumn) -> Column:
    return Column(
        label=column.label,
        group=column.group,
        unit=column.unit,
        decimals=column.decimals,
        released=column.released,
        keys=_scalars(column.labels),
    )


def _scalars(wishes: Wishes) -> Labels:
    return {n: w for n, w in wishes.items() if isinstance(w, str | int | float)}
