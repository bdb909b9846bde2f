"""The averages that figures A1 to A3 and A6 draw, as tables of numbers."""

import math
from collections.abc import Iterator

from qualms.benchmarks.regression._figures import SCATTER_FIGURES, ScatterFigure
from qualms.benchmarks.regression._points import Averages, Source, averages
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import Summary
from qualms.study import Variant

_COLUMNS = {
    "coverage_error": "test coverage error ↓",
    "rate": "test prediction rate ↑",
    "mae_rank": "val MAE rank ↓",
    "length_rank": "val interval length rank ↓",
}
_FIGURES = (
    ("figures A1 to A3", SCATTER_FIGURES[:3]),
    ("figure A6", SCATTER_FIGURES[3:]),
)


def average_tables(results: BenchmarkResults) -> Iterator[Table]:
    """Yield a table for each set of datasets and rows that has numbers."""
    for simulated in (False, True):
        source = Source(results, simulated)
        for names, figures in _FIGURES:
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
    ours = averages(source.ours, variants, rows)
    theirs = averages(source.theirs, variants, rows)
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
                    _cell(source, name, ours[row], theirs[row]) for name in columns
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


def _cell(source: Source, name: str, ours: Averages, theirs: Averages) -> TableCell:
    printed = getattr(theirs, name)
    return TableCell(
        mean=getattr(ours, name),
        repeats=1,
        no_interval="an average over datasets",
        published=None if source.simulated else Summary(printed, math.nan),
        remark=source.remark if source.simulated else "",
    )
