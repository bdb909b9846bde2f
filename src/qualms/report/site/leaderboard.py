"""Leaderboards: the main tables of a benchmark, chosen by their data and by labels.

Main tables with the same columns, such as those of several datasets, are one
leaderboard with a button for each. Of a results table alone, without tables that a
benchmark declares, a leaderboard is laid out from the labels.
"""

from collections.abc import Iterator, Mapping, Sequence

from qualms import scores
from qualms.labels import Label
from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.judged import table_cell
from qualms.report.ordinary import ARROWS
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.markup import element, name
from qualms.report.site.method_texts import method_page
from qualms.report.site.page import Fragment, fragment, slug
from qualms.report.site.tables import table_fragment
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Result, ResultsTable

_NUMBER = ("subset", "score")
MOST_COLUMNS = 12


def main_tables(report: BenchmarkReport) -> tuple[Table, ...]:
    """Return the tables of numbers by which a benchmark is judged."""
    declared = tuple(t for t in report.tables if t.main and _has_numbers(t))
    if declared:
        return declared
    return tuple(t for t in _from_labels(report) if _has_numbers(t))


def leaderboard(shown: ShownBenchmark, tables: Sequence[Table], place: str) -> Fragment:
    """Return the first leaderboard of some tables.

    Args:
        shown: The benchmark.
        tables: Its main tables.
        place: The slug of the page on which it stands; ids begin with it.
    """
    group = [table for table in tables if _shape(table) == _shape(tables[0])]
    box = slug(f"{place}-{shown.slug}-board")
    anchors = [slug(f"{box}-{number}") for number in range(len(group))]
    boards = [
        fragment(
            table_fragment(
                table,
                anchor,
                title=False,
                filters=line_labels(shown.report, table),
                pages=method_pages(shown.report),
            ),
            tag="div",
            data_of=box,
            data_key=number,
            hidden=number > 0,
        )
        for number, (table, anchor) in enumerate(zip(group, anchors, strict=True))
    ]
    buttons = [
        element(
            "button",
            name(table.title, most=60),
            type="button",
            value=number,
            aria_pressed="true" if number == 0 else "false",
        )
        for number, table in enumerate(group)
    ]
    tabs = element(
        "div",
        buttons,
        class_="tabs",
        role="group",
        aria_label="Data",
        data_shows=box,
    )
    title = element("h3", name(group[0].title, most=200))
    return fragment(
        tabs if len(group) > 1 else title, *boards, tag="div", class_="boards"
    )


def method_pages(report: BenchmarkReport) -> dict[str, str]:
    """Return the page of the method of each row."""
    rows = (row for row in report.rows if row.method)
    return {row.name: f"{method_page(row.method)}.html" for row in rows}


def line_labels(report: BenchmarkReport, table: Table) -> list[dict[str, str]]:
    """Return the labels of each line of a table, for lists that choose lines."""
    facts = {row.name: row for row in report.rows}
    lines = []
    for line in table.lines:
        labels = {key: str(value) for key, value in line.keys.items() if key != "row"}
        row = facts.get(str(line.keys.get("row", "")))
        if row is not None:
            labels = {"method": row.method, "pool": str(row.pool), **labels}
        lines.append(labels)
    names = dict.fromkeys(key for labels in lines for key in labels)
    return [{key: labels.get(key, "") for key in names} for labels in lines]


def _has_numbers(table: Table) -> bool:
    return any(cell.repeats for cell in table.cells)


def _shape(table: Table) -> object:
    columns = tuple((column.group, column.head) for column in table.columns)
    return table.left, columns


def _from_labels(report: BenchmarkReport) -> Iterator[Table]:
    """Yield a table for each variant, with rows by scores."""
    for variant in report.variants:
        numbers = report.table.where(variant=variant.name).computed()
        rows = [str(row) for row in numbers.distinct("row")]
        settings = list(_settings(numbers, rows))
        columns = list(_columns(numbers, settings))[:MOST_COLUMNS]
        yield Table(
            name=f"table_{variant.name}",
            title=variant.label,
            about="from a results table alone",
            simulated=variant.simulated,
            columns=tuple(column for column, _ in columns),
            lines=tuple(
                TableLine(
                    labels=(report.row_label(row),),
                    cells=tuple(
                        _cell_of(numbers.get(row=row, **wanted))
                        for _, wanted in columns
                    ),
                    keys={"row": row},
                )
                for row in rows
            ),
            level=report.level,
            keys={"variant": variant.name},
        )


def _settings(numbers: ResultsTable, rows: Sequence[str]) -> Iterator[str]:
    """Yield the labels that tell numbers of a row apart; others describe the row."""
    parts = [numbers.where(row=row) for row in rows]
    for label in numbers.labels:
        if label not in ("row", *_NUMBER) and any(
            len(part.distinct(label)) > 1 for part in parts
        ):
            yield label


def _cell_of(number: Result | None) -> TableCell:
    return TableCell() if number is None else table_cell(number, absent="")


def _columns(
    numbers: ResultsTable, settings: Sequence[str]
) -> Iterator[tuple[Column, Mapping[str, Label | None]]]:
    names = [*_NUMBER, *settings]
    for values in numbers.pivot(names, ()).rows:
        wanted = dict(zip(names, values, strict=True))
        score = getattr(scores, str(wanted["score"]), None)
        label = str(wanted["score"])
        if callable(score):
            about = scores.about(score)
            label = f"{about.label}{ARROWS[about.better]}"
        detail = [str(wanted[n]) for n in settings if wanted[n] is not None]
        keys = {key: value for key, value in wanted.items() if value is not None}
        subset = str(wanted["subset"] or "").replace("_", "-")
        yield (
            Column(label=", ".join([label, *detail]), group=subset, keys=keys),
            wanted,
        )
