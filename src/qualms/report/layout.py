"""Tables as declarations: which results stand in which lines and columns.

A layout names labels. Its lines are the distinct values of some labels, its columns
choose results by theirs, and published numbers stand beside ours where all labels that
they have agree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Label, Labels, Wanted
from qualms.published import Published, published
from qualms.report.judged import DEVIATION, NOT_PRINTED, table_cell
from qualms.report.table import Column, Table, TableLine
from qualms.results import Result, ResultsTable
from qualms.study import RunPlan

Wishes = Mapping[str, Wanted]
"""Labels that results must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutColumn:
    """A column: which results stand in it, and how they are printed."""

    label: str
    labels: Wishes
    """What its results have, e.g. {"subset": "shifted", "score": "auroc"}."""
    group: str = ""
    """Stands above all neighbouring columns that have the same."""
    unit: str = ""
    scale: float = 1.0
    """What numbers are multiplied by to have the unit."""
    decimals: int | None = None
    released: bool = False
    """Whether it shows ours by the rule of the paper's released code."""


class Section(NamedTuple):
    """A part of a table with the same columns and other results."""

    title: str = ""
    labels: Wishes = {}  # noqa: RUF012 - nothing changes it


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
    """What all of its results have."""
    lines: tuple[str, ...] = ("row",)
    """Labels whose distinct values are its lines."""
    line_labels: Callable[[RunPlan, Labels], tuple[str, ...]] = row_label
    """Words for the labels of a line, as many as `left` has."""
    left: tuple[str, ...] = ("method",)
    """Heads of the columns that hold these words."""
    sections: tuple[Section, ...] = (Section(),)
    printed_in: Wishes | None = field(default_factory=dict)
    """What the published numbers beside ours have, e.g. {"table": "4"}; None for no
    published numbers."""
    spread: str = DEVIATION
    """What stands beside a mean."""
    compares: bool = True
    """Whether ours by the rule of the released code is compared with the paper's."""
    marked: bool = True
    """Whether the best row of each column is marked; rows are ranked on one variant."""
    notes: tuple[str, ...] = ()
    main: bool = False
    """Whether it is shown even where not all tables are asked for."""


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
        results: What was judged.
        layout: The table.
        about: Data and preset in words.
        simulated: Whether the data are simulated.
        absent: Why there is no published number, where there is none.
        keys: What holds for the whole table, for its CSV file.
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
        for line in _lines(
            results.plan,
            table.where(**_line_labels(results.plan, section.labels)),
            layout,
            planned,
        )
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
        notes=layout.notes,
        spread=layout.spread,
        level=results.level,
        main=layout.main,
        keys={"preset": results.plan.preset_text, **(keys or {})},
    )


def published_number(
    results: BenchmarkResults, numbers: ResultsTable | None, found: Result
) -> Result | None:
    """Return the first published number with the labels of a result, or None.

    Every label that both tables have must agree, also where one of them has none.
    """
    if numbers is None:
        return None
    names = [name for name in numbers.labels if name in results.table.labels]
    return numbers.get(**{name: found.labels.get(name) for name in names})


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


def _line_labels(plan: RunPlan, labels: Wishes) -> Wishes:
    """Return the labels that are those of lines, not of single numbers."""
    return {name: want for name, want in labels.items() if name in plan.line_labels}


def _lines(
    plan: RunPlan,
    table: ResultsTable,
    layout: Layout,
    planned: Sequence[Wishes],
) -> list[Labels]:
    """Return the labels of each line, in the order of the benchmark's rows."""
    seen: dict[tuple[Label | None, ...], None] = {}
    for labels in planned:
        rows = table.where(**labels).pivot(layout.lines, ()).rows
        seen.update(dict.fromkeys(rows))
    order = {row.name: place for place, row in enumerate(plan.rows)}

    def place(line: tuple[Label | None, ...]) -> tuple[float, ...]:
        named = zip(layout.lines, line, strict=True)
        return tuple(
            order.get(str(value), len(order)) if name == "row" else _number(value)
            for name, value in named
        )

    return [
        {n: v for n, v in zip(layout.lines, line, strict=True) if v is not None}
        for line in sorted(seen, key=place)
    ]


def _number(value: Label | None) -> float:
    """Return a label as a number to sort by; words keep their order."""
    return float(value) if isinstance(value, int | float) else 0.0


def _line(  # noqa: PLR0913 - what a line is made of
    results: BenchmarkResults,
    layout: Layout,
    columns: Sequence[LayoutColumn],
    line: Labels,
    section: Section,
    numbers: ResultsTable | None,
    absent: str,
) -> TableLine:
    cells = []
    for column in columns:
        wanted = {**layout.where, **line, **section.labels, **column.labels}
        found = results.result(**wanted)
        number = published_number(results, numbers, found)
        cell = table_cell(
            found,
            spread=layout.spread,
            scale=column.scale,
            number=number,
            absent=absent,
        )
        if not layout.marked:
            cell = replace(cell, best=False, tied=False)
        if not layout.compares:
            cell = replace(cell, by_their_rule=None)
        cells.append(cell)
    row = results.plan.row(str(line["row"])) if "row" in line else None
    return TableLine(
        labels=layout.line_labels(results.plan, line),
        cells=tuple(cells),
        section=section.title,
        beyond=row is not None and row.beyond,
        keys={**_scalars(section.labels), **line},
    )


def _head(column: LayoutColumn) -> Column:
    return Column(
        label=column.label,
        group=column.group,
        unit=column.unit,
        decimals=column.decimals,
        by_their_rule=column.released,
        keys=_scalars(column.labels),
    )


def _scalars(wishes: Wishes) -> Labels:
    return {n: w for n, w in wishes.items() if isinstance(w, str | int | float)}
