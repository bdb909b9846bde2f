"""The paper's figures from results: 1 to 6 and A1 to A17.

Bars and points are ours; what the paper prints stands beside them, hollow. Figures of
simulated data are kept apart by name and say so.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qualms.benchmarks.regression._averages import average_drawings
from qualms.benchmarks.regression._examples import example_drawings
from qualms.benchmarks.regression._points import (
    COVERAGE,
    LENGTH,
    LOOKS,
    RATE,
    TEST_MAE,
    VAL_MAE,
    Source,
    SplitScore,
    coverage_error,
)
from qualms.benchmarks.regression._rows import COMMON, REAL, SYNTHETIC
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.captions import If, caption, hollow, ranged
from qualms.report.figures import (
    INK,
    MARKERS,
    SERIES,
    BarMark,
    CurveMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.study import Variant

_REPEATED = ("Cells", "Cells-Tails", "ChairAngle", "ChairAngle-Gap")
_FOUR = ("conformal", "gaussian", "gaussian_ensemble", "quantile")
_TWO = ("gaussian", "gaussian_gmm", "gaussian_ensemble", "gaussian_ensemble_variance")
_ALONE = ("gaussian", "gaussian_gmm", "gaussian_knn", "gaussian_variance")
_POOLED = ("gaussian_ensemble", "gaussian_ensemble_gmm", "gaussian_ensemble_variance")
_CITIES = tuple(f"AerialBuildingPixels{city}" for city in ("", "-Kitsap", "-Vienna"))
_SHOWN = {
    COVERAGE: "test coverage",
    LENGTH: "val interval length",
    RATE: "test prediction rate",
}
_COVERAGE = (COVERAGE,)
_WITH_LENGTH = (COVERAGE, LENGTH)
_WITH_RATE = (COVERAGE, RATE)
_MEANING = {
    COVERAGE: "Coverage is the share of test targets that lie in their "
    "interval; the line is what was asked for, and bars below it are promises broken.",
    LENGTH: "Shorter intervals say more.",
    RATE: "The prediction rate is the share of items that the method "
    "predicts at all; the others it declines.",
}
_LADDERS = (
    ("Cells", *(f"Cells-Tails v{step}" for step in (1, 2, 3)), "Cells-Tails"),
    ("ChairAngle", *(f"ChairAngle-Gap v{s}" for s in (1, 2, 3)), "ChairAngle-Gap"),
)
_STEPS = ("none", "step 1", "step 2", "step 3", "full")


class BarFigure(NamedTuple):
    """The bars of a figure of the paper."""

    name: str
    title: str
    labels: tuple[str, ...]
    rows: tuple[str, ...]
    scores: tuple[SplitScore, ...]
    alpha: float = 0.1


BAR_FIGURES = (
    BarFigure("2", "Common methods", SYNTHETIC, COMMON, _WITH_LENGTH),
    BarFigure("3", "Common methods", REAL, COMMON, _WITH_LENGTH),
    BarFigure("5", "Gaussian, selective", SYNTHETIC, _ALONE, _WITH_RATE),
    BarFigure("6", "Gaussian, selective", REAL, _ALONE, _WITH_RATE),
    BarFigure("A4", "Gaussian ensemble, selective", SYNTHETIC, _POOLED, _WITH_RATE),
    BarFigure("A5", "Gaussian ensemble, selective", REAL, _POOLED, _WITH_RATE),
    BarFigure("A7", "Common methods", _REPEATED, _FOUR, _COVERAGE, 0.2),
    BarFigure("A8", "Common methods", REAL[1:], _FOUR, _COVERAGE, 0.2),
    BarFigure("A9", "Selective methods", _REPEATED, _TWO, _WITH_RATE, 0.2),
    BarFigure("A10", "Selective methods", REAL[1:], _TWO, _WITH_RATE, 0.2),
    BarFigure("A11", "Common methods", _REPEATED, _FOUR, _COVERAGE, 0.05),
    BarFigure("A12", "Common methods", REAL[1:], _FOUR, _COVERAGE, 0.05),
    BarFigure("A13", "Selective methods", _REPEATED, _TWO, _WITH_RATE, 0.05),
    BarFigure("A14", "Selective methods", REAL[1:], _TWO, _WITH_RATE, 0.05),
    BarFigure("A15", "Aerial test cities", _CITIES, COMMON, _COVERAGE),
)
DISTANCE_FIGURES = {"A16": SYNTHETIC, "A17": REAL}


def regression_figures(
    results: BenchmarkResults, data: Path | None
) -> Iterator[Drawing]:
    """Yield every figure that has numbers or pictures."""
    for simulated in (False, True):
        source = Source(results, simulated)
        yield from example_drawings(source, data)
        for bars in BAR_FIGURES:
            yield from _bar_drawing(source, bars)
        yield from _graded_drawing(source)
        yield from average_drawings(source)
        for name, labels in DISTANCE_FIGURES.items():
            yield from _distance_drawing(source, name, labels)


def _bar_drawing(source: Source, figure: BarFigure) -> Iterator[Drawing]:
    variants = source.judged(figure.labels, figure.rows, alpha=figure.alpha)
    if not variants:
        return
    level = source.results.level
    rows = tuple(
        tuple(
            _bar_panel(source, figure, variant, score, first=variant is variants[0])
            for variant in variants
        )
        for score in figure.scores
    )
    yield Drawing(
        name=f"figure_{figure.name}{source.suffix}",
        title=f"Figure {figure.name}: {figure.title}, {1 - figure.alpha:.0%} intervals",
        caption=caption(
            rows,
            *(_MEANING[score] for score in figure.scores),
            "Bars are means over repeats.",
            If(ranged, f"Ranges are {level:.0%} intervals."),
            If(hollow, "Hollow diamonds are the paper's numbers with their deviation."),
            source.remark,
        ),
        rows=rows,
        simulated=source.simulated,
        size=(1.45, 1.7),
        least=5.4,
        legend_columns=3,
    )


def _bar_panel(
    source: Source,
    figure: BarFigure,
    variant: Variant,
    score: SplitScore,
    *,
    first: bool,
) -> Panel:
    marks = [
        mark
        for x, row in enumerate(figure.rows)
        for mark in _bar_marks(source, (variant, row, score, figure.alpha), x)
    ]
    if score == COVERAGE:
        aim = 1 - figure.alpha
        marks.append(RuleMark((-0.5, aim), (len(figure.rows) - 0.5, aim), INK))
    return Panel(
        marks=tuple(marks),
        title=variant.label if score == figure.scores[0] else "",
        y_label=_SHOWN[score] if first else "",
        x_ticks=(),
        y_range=(0, None) if score == LENGTH else (0, 1.06),
    )


def _bar_marks(
    source: Source, at: tuple[Variant, str, SplitScore, float], x: int
) -> Iterator[Mark]:
    """Yield our bar, and the published number beside it."""
    variant, row, score, alpha = at
    result = source.result(*at)
    if math.isfinite(result.value):
        yield BarMark(
            x=x,
            height=result.value,
            colour=LOOKS[row][0],
            low=result.low,
            high=result.high,
            label=source.label(row),
        )
    number = source.printed(variant.label, row, score, alpha)
    if number is not None:
        spread = number.spread if math.isfinite(number.spread) else 0.0
        yield PointMark(
            x=x + 0.15,
            y=number.value,
            low=number.value - spread,
            high=number.value + spread,
            marker="D",
            hollow=True,
            size=3.5,
            label="published ± deviation",
        )


def _graded_drawing(source: Source) -> Iterator[Drawing]:
    """Yield figure 4, for which the paper prints no numbers to compare with."""
    ladders = [labels for labels in _LADDERS if len(source.judged(labels, COMMON)) > 2]
    if not ladders:
        return
    rows = tuple((_ladder(source, labels),) for labels in ladders)
    yield Drawing(
        name=f"figure_4{source.suffix}",
        title="Figure 4: growing shift",
        caption=caption(
            rows,
            "Coverage of common methods while the shift grows, from none to full. "
            "Coverage is the share of test targets that lie in their interval; the "
            "line is what was asked for, and points below it are promises broken.",
            If(ranged, f"Lines up and down are {source.results.level:.0%} intervals."),
            source.remark,
        ),
        rows=rows,
        simulated=source.simulated,
        size=(4.8, 1.9),
        legend_columns=3,
    )


def _ladder(source: Source, labels: tuple[str, ...]) -> Panel:
    marks: list[Mark] = []
    for number, row in enumerate(COMMON):
        colour, marker = LOOKS[row]
        points = []
        for step, label in enumerate(labels):
            variant = source.variant(label)
            if variant is not None and source.has(variant, row, COVERAGE):
                result = source.result(variant, row, COVERAGE)
                point = PointMark(
                    x=step + 0.05 * (number - 2),
                    y=result.value,
                    low=result.low,
                    high=result.high,
                    colour=colour,
                    marker=marker,
                )
                points.append(point)
        if points:
            x, y = (np.array([getattr(p, axis) for p in points]) for axis in "xy")
            label = source.label(row)
            curve = CurveMark(x=x, y=y, colour=colour, marker=marker, label=label)
            marks += [curve, *points]
    marks.append(RuleMark((-0.3, 0.9), (len(labels) - 0.7, 0.9), INK))
    return Panel(
        marks=tuple(marks),
        title=f"{labels[0]} to {labels[-1]}",
        y_label="test coverage",
        x_ticks=dict(enumerate(_STEPS)),
    )


def _distance_drawing(
    source: Source, name: str, labels: tuple[str, ...]
) -> Iterator[Drawing]:
    """Yield the coverage error against how much larger the error on test is.

    The shift is measured by test MAE minus val MAE of the direct networks, in units of
    the latter: the datasets have targets of different units, and the paper does not
    say which difference it takes. Of the paper's points only the height is in print.
    """
    variants = [v for v in source.complete(labels, COMMON) if _measured(source, v)]
    if len(variants) < 2:
        return
    marks = [
        mark
        for variant in variants
        for mark in _distance_marks(source, variant, labels.index(variant.label))
    ]
    panel = Panel(
        marks=tuple(marks),
        x_label="(test MAE - val MAE) / val MAE of the direct networks",
        y_label="average test coverage error",
    )
    yield Drawing(
        name=f"figure_{name}{source.suffix}",
        title=f"Figure {name}: mean coverage error of the five common methods",
        caption=caption(
            [[panel]],
            "How far coverage lies from 90 %, averaged over the five common methods, "
            "against how much the error of plain networks grows from validation to "
            "test, which measures the shift.",
            If(
                hollow,
                "A dotted line leads to the height of the published point, a dash.",
            ),
            source.remark,
        ),
        rows=((panel,),),
        simulated=source.simulated,
        size=(5.4, 2.8),
        legend_columns=3,
    )


def _distance_marks(source: Source, variant: Variant, place: int) -> Iterator[Mark]:
    colour, marker = SERIES[place], MARKERS[place]
    gap = _gap(source, variant)
    error, published = (
        coverage_error(value(variant, row, COVERAGE) for row in COMMON)
        for value in (source.ours, source.theirs)
    )
    if math.isfinite(published):
        yield RuleMark((gap, error), (gap, published), colour, ":")
        yield PointMark(
            x=gap, y=published, colour=colour, marker="_", hollow=True, size=9
        )
    yield PointMark(
        x=gap, y=error, colour=colour, marker=marker, label=variant.label, size=7
    )


def _measured(source: Source, variant: Variant) -> bool:
    return math.isfinite(_gap(source, variant))


def _gap(source: Source, variant: Variant) -> float:
    val, test = (
        source.ours(variant, "conformal", score) for score in (VAL_MAE, TEST_MAE)
    )
    return (test - val) / val
