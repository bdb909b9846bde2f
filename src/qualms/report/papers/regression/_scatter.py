"""Two averages over datasets against each other: figures A1 to A3 and A6."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qualms.benchmarks import Variant
from qualms.report._style import (
    OTHER,
    canvas,
    grid,
    legend_key,
    save,
    say,
)
from qualms.report.papers.regression._looks import COLOURS, MARKERS
from qualms.report.papers.regression._points import (
    COMMON,
    REAL,
    SYNTHETIC,
    Source,
    coverage_error,
    mean_rank,
    printed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SELECTIVE = (
    "gaussian_gmm",
    "gaussian_knn",
    "gaussian_variance",
    "gaussian_ensemble_gmm",
    "gaussian_ensemble_variance",
)
_AXES = {
    "coverage_error": "average test coverage error",
    "mae_rank": "average val MAE rank",
    "length_rank": "average val interval length rank",
    "rate": "average test prediction rate",
}
Value = Callable[[Variant, str, str], float]
"""(dataset, row, score) to a mean, ours or the paper's."""


class Averages(NamedTuple):
    """What a row achieves on average over datasets."""

    coverage_error: float
    mae_rank: float
    length_rank: float
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterFigure:
    """Which averages a figure of the paper sets against each other."""

    name: str
    x: str
    y: str
    labels: tuple[str, ...]
    rows: tuple[str, ...]


FIGURES = (
    ScatterFigure(
        name="A1", x="coverage_error", y="mae_rank", labels=REAL, rows=COMMON
    ),
    ScatterFigure(
        name="A2", x="coverage_error", y="length_rank", labels=REAL, rows=COMMON
    ),
    ScatterFigure(name="A3", x="length_rank", y="mae_rank", labels=REAL, rows=COMMON),
    ScatterFigure(
        name="A6",
        x="coverage_error",
        y="rate",
        labels=SYNTHETIC + REAL,
        rows=_SELECTIVE,
    ),
)


def scatter_figure(source: Source, about: ScatterFigure, folder: Path) -> list[Path]:
    """Draw one figure; the paper's points are averages over the same datasets."""
    variants = _complete(source, about)
    if not variants:
        return []
    ours = averages(our_means(source), variants, about.rows)
    theirs = averages(published_means(source), variants, about.rows)
    with canvas(5.4, 3.8) as figure:
        ((panel,),) = grid(figure, 1, 1)
        _points(panel, about, ours, theirs)
        handles = [
            legend_key(source.label(row), colour=COLOURS[row], marker=MARKERS[row])
            for row in about.rows
        ]
        handles.append(legend_key("published (hollow)", colour=OTHER, marker="o"))
        count = f"{len(variants)} of {len(about.labels)} datasets"
        title = f"Figure {about.name}: averages over {count}"
        say(figure, title, source.remark, handles, columns=2)
        return save(figure, folder, f"figure_{about.name}{source.suffix}")


def averages(
    value: Value, variants: Sequence[Variant], rows: Sequence[str]
) -> dict[str, Averages]:
    """Averages of each row over `variants`; ranks are among `rows`."""
    lengths, maes = (
        [{row: value(v, row, score) for row in rows} for v in variants]
        for score in ("val_interval_length", "val_mae")
    )
    return {
        row: Averages(
            coverage_error(value(v, row, "test_coverage") for v in variants),
            mean_rank(maes, row),
            mean_rank(lengths, row),
            float(np.mean([value(v, row, "test_prediction_rate") for v in variants])),
        )
        for row in rows
    }


def our_means(source: Source) -> Value:
    """Means over our repeats."""
    return lambda variant, row, score: source.cell(variant, row, score).ours.mean


def published_means(source: Source) -> Value:
    """The paper's means."""

    def mean(variant: Variant, row: str, score: str) -> float:
        number = printed(source, variant.label, row, score)
        assert number is not None, "the paper prints all rows of all twelve datasets"
        return number.mean

    return mean


def _complete(source: Source, about: ScatterFigure) -> list[Variant]:
    """Datasets with all rows: averages over different ones would not compare."""
    found = source.judged(about.labels, about.rows)
    return [
        variant
        for variant in found
        if all(source.has(variant, row, "test_coverage") for row in about.rows)
    ]


def _points(
    panel: "Axes",
    about: ScatterFigure,
    ours: dict[str, Averages],
    theirs: dict[str, Averages],
) -> None:
    for row in about.rows:
        style: dict[str, Any] = {"color": COLOURS[row], "marker": MARKERS[row]}
        here = getattr(ours[row], about.x), getattr(ours[row], about.y)
        there = getattr(theirs[row], about.x), getattr(theirs[row], about.y)
        panel.plot(
            *zip(there, here, strict=True), color=COLOURS[row], lw=0.5, alpha=0.6
        )
        panel.plot(*there, mfc="white", ms=6, mew=1.2, ls="", **style)
        panel.plot(*here, ms=7, ls="", mec="white", mew=0.5, **style)
    panel.set_xlabel(_AXES[about.x])
    panel.set_ylabel(_AXES[about.y])
