"""Averages over datasets: figures A1 to A3 and A6, and their numbers as tables."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qualms.benchmarks.regression._points import (
    COVERAGE,
    LENGTH,
    LOOKS,
    RATE,
    VAL_MAE,
    Source,
    SplitScore,
    coverage_error,
)
from qualms.benchmarks.regression._rows import COMMON, REAL, SELECTIVE, SYNTHETIC
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.captions import If, caption, hollow
from qualms.report.figures import Drawing, Mark, Panel, PointMark, RuleMark
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Summary
from qualms.study import Variant


class Averages(NamedTuple):
    """Means of a row over datasets."""

    coverage_error: float
    mae_rank: float
    length_rank: float
    rate: float


class ScatterFigure(NamedTuple):
    """The two averages that a figure of the paper compares."""

    name: str
    x: str
    y: str
    labels: tuple[str, ...]
    rows: tuple[str, ...]


SCATTER_FIGURES = (
    ScatterFigure("A1", "coverage_error", "mae_rank", REAL, COMMON),
    ScatterFigure("A2", "coverage_error", "length_rank", REAL, COMMON),
    ScatterFigure("A3", "length_rank", "mae_rank", REAL, COMMON),
    ScatterFigure("A6", "coverage_error", "rate", SYNTHETIC + REAL, SELECTIVE),
)
_AXES = {
    "coverage_error": "average test coverage error",
    "mae_rank": "average val MAE rank",
    "length_rank": "average val interval length rank",
    "rate": "average test prediction rate",
}
_COLUMNS = {
    "coverage_error": "test coverage error ↓",
    "rate": "test prediction rate ↑",
    "mae_rank": "val MAE rank ↓",
    "length_rank": "val interval length rank ↓",
}
_EXPLAINED = {
    "coverage_error": "The coverage error is how far coverage lies from its aim.",
    "mae_rank": "Of the ranks by MAE, 1 is the best.",
    "length_rank": "Of the ranks by interval length, 1 is the best.",
}
_TABLES = (
    ("figures A1 to A3", SCATTER_FIGURES[:3]),
    ("figure A6", SCATTER_FIGURES[3:]),
)
Value = Callable[[Variant, str, SplitScore], float]
"""Function from (dataset, row, score) to a mean, ours or the paper's."""


def average_drawings(source: Source) -> Iterator[Drawing]:
    """Yield the figures that have the averages of at least one dataset."""
    for figure in SCATTER_FIGURES:
        yield from _scatter_drawing(source, figure)


def _scatter_drawing(source: Source, figure: ScatterFigure) -> Iterator[Drawing]:
    """Yield a figure of two averages, ours and the paper's over the same datasets."""
    variants = source.complete(figure.labels, figure.rows)
    if not variants:
        return
    own_averages = averages(source.ours, variants, figure.rows)
    published = averages(source.theirs, variants, figure.rows)
    count = f"{len(variants)} of {len(figure.labels)} datasets"
    panel = _scatter_panel(source, figure, own_averages, published)
    yield Drawing(
        name=f"figure_{figure.name}{source.suffix}",
        title=f"Figure {figure.name}: averages over {count}",
        caption=caption(
            [[panel]],
            "Each method averaged over datasets.",
            *(_EXPLAINED[axis] for axis in (figure.x, figure.y) if axis in _EXPLAINED),
            If(hollow, "Hollow points are the paper's, joined to ours."),
            source.remark,
        ),
        rows=((panel,),),
        simulated=source.simulated,
        size=(5.4, 3.2),
        legend_columns=2,
    )


def _scatter_panel(
    source: Source,
    figure: ScatterFigure,
    own_averages: dict[str, Averages],
    published: dict[str, Averages],
) -> Panel:
    marks: list[Mark] = []
    for row in figure.rows:
        colour, marker = LOOKS[row]
        point, published_point = (
            (getattr(averages[row], figure.x), getattr(averages[row], figure.y))
            for averages in (own_averages, published)
        )
        if all(map(math.isfinite, published_point)):
            marks.append(RuleMark(published_point, point, colour))
            marks.append(
                PointMark(
                    x=published_point[0],
                    y=published_point[1],
                    colour=colour,
                    marker=marker,
                    hollow=True,
                    label="published",
                )
            )
        marks.append(
            PointMark(
                x=point[0],
                y=point[1],
                colour=colour,
                marker=marker,
                label=source.label(row),
                size=7,
            )
        )
    return Panel(marks=tuple(marks), x_label=_AXES[figure.x], y_label=_AXES[figure.y])


def average_tables(results: BenchmarkResults) -> Iterator[Table]:
    """Yield a table for each set of datasets and rows that has numbers."""
    for simulated in (False, True):
        source = Source(results, simulated)
        for names, figures in _TABLES:
            variants = source.complete(figures[0].labels, figures[0].rows)
            if variants:
                yield _table(source, names, figures, variants)


def _table(
    source: Source,
    names: str,
    figures: tuple[ScatterFigure, ...],
    variants: list[Variant],
) -> Table:
    rows = figures[0].rows
    drawn = {axis for figure in figures for axis in (figure.x, figure.y)}
    columns = {name: label for name, label in _COLUMNS.items() if name in drawn}
    by_row = averages(source.ours, variants, rows)
    published_by_row = averages(source.theirs, variants, rows)
    count = f"{len(variants)} of {len(figures[0].labels)} datasets"
    return Table(
        name=f"table_averages_{figures[0].name}{source.suffix}",
        title=f"Averages of {names}",
        about=source.remark.removesuffix(".").lower(),
        simulated=source.simulated,
        columns=tuple(
            Column(label=label, decimals=3, keys={"score": name})
            for name, label in columns.items()
        ),
        lines=tuple(
            TableLine(
                labels=(source.label(row),),
                cells=tuple(
                    _cell(source, name, by_row[row], published_by_row[row])
                    for name in columns
                ),
                keys={"row": row},
            )
            for row in rows
        ),
        notes=(
            f"Means over {count}: {', '.join(v.label for v in variants)}. The coverage "
            "error is how far coverage lies from 0.90; ranks are among these methods.",
        ),
        main=False,
        keys={"preset": source.results.plan.preset_text},
    )


def _cell(source: Source, name: str, means: Averages, published: Averages) -> TableCell:
    printed = getattr(published, name)
    return TableCell(
        mean=getattr(means, name),
        repeats=1,
        no_interval="an average over datasets",
        published=None if source.simulated else Summary(printed, math.nan),
        remark=source.remark if source.simulated else "",
    )


def averages(
    value: Value, variants: Sequence[Variant], rows: Sequence[str]
) -> dict[str, Averages]:
    """Return the averages of each row over `variants`; ranks are among `rows`."""
    lengths, maes = (
        [{row: value(v, row, score) for row in rows} for v in variants]
        for score in (LENGTH, VAL_MAE)
    )
    return {
        row: Averages(
            coverage_error(value(v, row, COVERAGE) for v in variants),
            mean_rank(maes, row),
            mean_rank(lengths, row),
            float(np.mean([value(v, row, RATE) for v in variants])),
        )
        for row in rows
    }


def mean_rank(by_dataset: Sequence[Mapping[str, float]], row: str) -> float:
    """Return the mean rank of `row` over datasets, 1 for the smallest, ties averaged.

    nan where a number is missing: ranks are among all rows.

    >>> mean_rank([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}], "a")
    1.5
    """
    if not all(map(math.isfinite, (v for each in by_dataset for v in each.values()))):
        return math.nan
    ranks = []
    for values in by_dataset:
        below = sum(value < values[row] for value in values.values())
        equal = sum(value == values[row] for value in values.values())
        ranks.append(below + (equal + 1) / 2)
    return float(np.mean(ranks))
