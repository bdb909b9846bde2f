"""Bars per method and dataset: figures 2, 3, 5, 6, A4, A5 and A7 to A15."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms.benchmarks import Variant
from qualms.report._style import (
    OTHER,
    canvas,
    grid,
    legend_key,
    save,
    say,
)
from qualms.report.papers.regression._looks import COLOURS
from qualms.report.papers.regression._points import (
    COMMON,
    REAL,
    SYNTHETIC,
    Source,
    printed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REPEATED = ("Cells", "Cells-Tails", "ChairAngle", "ChairAngle-Gap")
_REPEATED_REAL = REAL[1:]
_FOUR = ("conformal", "gaussian", "gaussian_ensemble", "quantile")
_TWO = ("gaussian", "gaussian_gmm", "gaussian_ensemble", "gaussian_ensemble_variance")
_SELECTIVE = ("gaussian", "gaussian_gmm", "gaussian_knn", "gaussian_variance")
_POOLED = (
    "gaussian_ensemble",
    "gaussian_ensemble_gmm",
    "gaussian_ensemble_variance",
)
_CITIES = tuple(f"AerialBuildingPixels{city}" for city in ("", "-Kitsap", "-Vienna"))
_SHOWN = {
    "test_coverage": "test coverage",
    "val_interval_length": "val interval length",
    "test_prediction_rate": "test prediction rate",
}
_COVERAGE = ("test_coverage",)
_WITH_LENGTH = ("test_coverage", "val_interval_length")
_WITH_RATE = ("test_coverage", "test_prediction_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFigure:
    """Which bars a figure of the paper has."""

    name: str
    title: str
    labels: tuple[str, ...]
    rows: tuple[str, ...]
    scores: tuple[str, ...]
    alpha: float = 0.1


def _both(
    numbers: tuple[str, str],
    title: str,
    rows: tuple[str, ...],
    scores: tuple[str, ...],
    alpha: float = 0.1,
) -> tuple[BarFigure, BarFigure]:
    """The figure on synthetic datasets and its twin on real ones."""
    main = alpha == 0.1
    labels = (SYNTHETIC, REAL) if main else (_REPEATED, _REPEATED_REAL)
    first, second = (
        BarFigure(
            name=name, title=title, labels=on, rows=rows, scores=scores, alpha=alpha
        )
        for name, on in zip(numbers, labels, strict=True)
    )
    return first, second


FIGURES = (
    *_both(("2", "3"), "Common methods", COMMON, _WITH_LENGTH),
    *_both(("5", "6"), "Gaussian, selective", _SELECTIVE, _WITH_RATE),
    *_both(("A4", "A5"), "Gaussian ensemble, selective", _POOLED, _WITH_RATE),
    *_both(("A7", "A8"), "Common methods", _FOUR, _COVERAGE, 0.2),
    *_both(("A9", "A10"), "Selective methods", _TWO, _WITH_RATE, 0.2),
    *_both(("A11", "A12"), "Common methods", _FOUR, _COVERAGE, 0.05),
    *_both(("A13", "A14"), "Selective methods", _TWO, _WITH_RATE, 0.05),
    BarFigure(
        name="A15",
        title="Aerial test cities",
        labels=_CITIES,
        rows=COMMON,
        scores=_COVERAGE,
    ),
)


def bar_figure(source: Source, about: BarFigure, folder: Path) -> list[Path]:
    """Draw one figure; gives its files, none where nothing was judged for it."""
    from matplotlib.patches import Patch

    variants = source.judged(about.labels, about.rows, alpha=about.alpha)
    if not variants:
        return []
    width = max(5.4, 1.45 * len(variants) + 0.6)
    with canvas(width, 1.7 * len(about.scores) + 0.9) as figure:
        axes = grid(figure, len(about.scores), len(variants))
        for line, score in zip(axes, about.scores, strict=True):
            for panel, variant in zip(line, variants, strict=True):
                _panel(panel, source, about, variant, score)
            line[0].set_ylabel(_SHOWN[score])
        for panel, variant in zip(axes[0], variants, strict=True):
            panel.set_title(variant.label)
        handles: list[Any] = [
            Patch(color=COLOURS[row], label=source.label(row)) for row in about.rows
        ]
        handles.append(legend_key("published ± deviation", colour=OTHER, marker="D"))
        title = f"Figure {about.name}: {about.title}, {1 - about.alpha:.0%} intervals"
        remark = f"{source.remark}; bars with {source.results.level:.0%} interval"
        say(figure, title, remark, handles, columns=3 if width > 7 else 2)
        return save(figure, folder, f"figure_{about.name}{source.suffix}")


def _panel(
    panel: "Axes", source: Source, about: BarFigure, variant: Variant, score: str
) -> None:
    for x, row in enumerate(about.rows):
        cell = source.cell(variant, row, score, about.alpha)
        mean = cell.ours.mean
        if math.isfinite(mean):
            panel.bar(x, mean, width=0.8, color=COLOURS[row])
        if math.isfinite(mean) and math.isfinite(cell.low):
            panel.vlines(x - 0.15, cell.low, cell.high, color=OTHER, lw=1)
        known = printed(source, variant.label, row, score, about.alpha)
        if known is not None:
            panel.errorbar(
                x + 0.15,
                known.mean,
                yerr=known.spread or 0.0,
                fmt="D",
                ms=3.5,
                mfc="white",
                mew=0.8,
                color=OTHER,
                lw=0.8,
            )
    if score == "test_coverage":
        panel.axhline(1 - about.alpha, color=OTHER, lw=0.8)
    if score != "val_interval_length":
        panel.set_ylim(0, 1.06)
    panel.set_xticks([])
