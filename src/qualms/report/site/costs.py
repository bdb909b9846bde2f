"""Costs of rows beside their scores: a plot with the rows that none beats in both."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.figures import (
    FAINT,
    MARKERS,
    SERIES,
    SOFT,
    CurveMark,
    Drawing,
    Panel,
    PointMark,
)
from qualms.report.site.charts import chart, on_paper
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.page import Fragment, slug
from qualms.report.site.verdicts import better_of
from qualms.report.table import Table

CAPTION = (
    "Seconds are those of training and predicting the runs that one result pools, on"
    " the machines of these runs. No other row is both cheaper and better than those on"
    " the line."
)


class _Priced(NamedTuple):
    """A row with its cost and its score."""

    label: str
    seconds: float
    parameters: int | None
    pool: int
    draws: str
    """Draws of each prediction, where its options state them."""
    value: float
    low: float
    high: float


def cost_section(
    shown: ShownBenchmark, tables: Sequence[Table], place: str, *, paper: bool = False
) -> Fragment | None:
    """Return the cost plot of the first leaderboard; None without two costs.

    It shows the first score of which more, or less, is better; one with a winner first.

    Args:
        shown: The benchmark.
        tables: Its main tables.
        place: The slug of the page on which it stands; names begin with it.
        paper: Whether it is saved as PDF too.
    """
    for table in tables[:1]:
        for at in _by_winners(table):
            column = table.columns[at]
            rows = list(_priced(shown.report, table, at))
            better = better_of(column, table)
            if len(rows) < 2 or not better:
                continue
            head = ", ".join(filter(None, (column.group, column.head)))
            name = slug(f"{place}-{shown.slug}-cost")
            lower = better == "lower"
            drawing = _drawing(shown.report, rows, head, lower=lower)
            return chart(
                "scatter",
                name,
                _spec(rows, head, lower=lower),
                title="What it costs",
                caption=CAPTION,
                downloads=on_paper(drawing, f"{shown.slug}-costs", None)
                if paper
                else (),
            )
    return None


def _by_winners(table: Table) -> list[int]:
    """Return the places of columns, those in which a best row is marked first."""
    places = range(len(table.columns))
    return sorted(places, key=lambda at: not any(x.cells[at].tied for x in table.lines))


def _priced(report: BenchmarkReport, table: Table, at: int) -> Iterator[_Priced]:
    """Yield the rows of a table whose cost is known, with their score."""
    facts = {row.name: row for row in report.rows}
    for line in table.lines:
        row = str(line.keys.get("row", ""))
        keys = {**table.keys, **line.keys, **table.columns[at].keys}
        key = (str(keys.get("variant", "")), row)
        seconds, cell = report.seconds_each.get(key), line.cells[at]
        if seconds is None or not math.isfinite(cell.mean):
            continue
        low, high = (
            (cell.low, cell.high)
            if cell.bounded
            else cell.seeds or (cell.mean, cell.mean)
        )
        cost = report.costs.get(key)
        yield _Priced(
            label=", ".join(line.labels),
            seconds=seconds,
            parameters=None if cost is None else cost.parameters,
            pool=facts[row].pool if row in facts else 1,
            draws=str(facts[row].options.get("draws", "")) if row in facts else "",
            value=cell.mean,
            low=low,
            high=high,
        )


def _spec(rows: Sequence[_Priced], head: str, *, lower: bool) -> dict[str, Any]:
    values = [value for row in rows for value in (row.low, row.high)]
    seconds = [row.seconds for row in rows]
    room = 0.06 * (max(values) - min(values)) or 0.5
    return {
        "title": f"{head} against seconds",
        "x": {
            "label": "seconds, log scale",
            "range": [0.8 * min(seconds), 1.25 * max(seconds)],
            "log": True,
            "ticks": None,
        },
        "y": {
            "label": head,
            "range": [min(values) - room, max(values) + room],
            "ticks": None,
        },
        "points": [
            {
                "name": row.label,
                "x": row.seconds,
                "y": row.value,
                "low": row.low,
                "high": row.high,
                "c": f"c{number % 6}" if number < 6 else "c6",
                "detail": _detail(row),
            }
            for number, row in enumerate(rows)
        ],
        "front": _front(rows, lower=lower),
    }


def _drawing(
    report: BenchmarkReport, rows: Sequence[_Priced], head: str, *, lower: bool
) -> Drawing:
    """Return the plot for paper."""
    points = tuple(
        PointMark(
            x=row.seconds,
            y=row.value,
            low=row.low,
            high=row.high,
            colour=SERIES[number] if number < len(SERIES) else FAINT,
            marker=MARKERS[number % len(MARKERS)],
            label=row.label,
        )
        for number, row in enumerate(rows)
    )
    labels = _front(rows, lower=lower)
    front = [row for label in labels for row in rows if row.label == label]
    line = CurveMark(
        x=np.array([row.seconds for row in front]),
        y=np.array([row.value for row in front]),
        colour=SOFT,
        line=":",
    )
    panel = Panel(
        marks=(line, *points), x_label="seconds, log scale", y_label=head, x_log=True
    )
    return Drawing(
        name="costs",
        title=f"What it costs: {report.title}",
        caption=CAPTION,
        rows=((panel,),),
        simulated=report.simulated,
        size=(4.6, 2.9),
        legend_columns=3,
    )


def _detail(row: _Priced) -> str:
    millions = f", {row.parameters / 1e6:.3g} M parameters" if row.parameters else ""
    networks = f" in {row.pool} networks" if row.pool > 1 else ""
    draws = f", {row.draws} draws" if row.draws else ""
    return f"{row.seconds:.3g} s{millions}{networks}{draws}"


def _front(rows: Sequence[_Priced], *, lower: bool) -> list[str]:
    """Return the rows that no other beats in both, from cheap to dear."""
    sign = -1.0 if lower else 1.0
    front: list[str] = []
    best = -math.inf
    for row in sorted(rows, key=lambda row: (row.seconds, -sign * row.value)):
        if sign * row.value > best:
            best = sign * row.value
            front.append(row.label)
    return front
