"""Uncertainty by clinical grade and method, right decisions and wrong: 8 to 13."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from qualms.arrays import Array
from qualms.benchmarks.retina._curves import method_label
from qualms.benchmarks.retina._settings import (
    SUBSETS,
    TASKS,
    about_text,
    main_variants,
    pool_text,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.entry import Histogram
from qualms.report.figures import (
    RIGHT,
    SOFT,
    WRONG,
    Drawing,
    HistogramMark,
    Mark,
    Panel,
    RuleMark,
    WordMark,
)
from qualms.study import TableRow, Variant

GRADES = {
    "0": "none",
    "1": "mild",
    "2": "moderate",
    "3": "severe",
    "4": "proliferative",
}
_LARGEST = math.log(2)
"""Largest entropy of a binary decision, in nats."""
_WIDE, _HIGH = 0.86, 0.76
"""Width and height of a histogram, in units of the distance between two."""
_BINS = 20
_CAPTION = (
    "How uncertain decisions are, by clinical grade (rows) and method (columns): "
    "{colours}. The words above say how many are wrong. All histograms of a row share "
    "their scale."
)
_BOTH = (
    " Each colour shows how its own decisions spread over the uncertainty, so both "
    "have the same area. A network that knows where it is wrong has red far right and "
    "blue far left."
)
_COLOURS = {
    RIGHT: "blue for right decisions",
    WRONG: "red for wrong ones",
}


class HistogramFigure(NamedTuple):
    """The items and rows that a figure of the paper bins."""

    name: str
    task: str
    subsets: tuple[str, ...]
    """Sets of items; the first one with a grade gives the histogram of the grade."""
    pooled: bool


HISTOGRAM_FIGURES = tuple(
    HistogramFigure(name, task, subsets, pooled)
    for pooled, names in ((False, ("8", "9", "10")), (True, ("11", "12", "13")))
    for name, (task, subsets) in zip(
        names,
        (
            ("severity", ("in_domain", "shifted")),
            ("country", ("shifted",)),
            ("country", ("in_domain",)),
        ),
        strict=True,
    )
)
_ByGrade = Mapping[str, Histogram]


def histogram_drawings(results: BenchmarkResults) -> Iterator[Drawing]:
    """Yield figures 8 to 13 of every variant that was chosen on in-domain items."""
    for variant in main_variants(results.plan, selection="in_domain"):
        shift = results.plan.labels_of(variant)["shift"]
        for figure in HISTOGRAM_FIGURES:
            if figure.task == shift:
                yield from _drawing(results, variant, figure)


def _drawing(
    results: BenchmarkResults, variant: Variant, figure: HistogramFigure
) -> Iterator[Drawing]:
    columns = _histogram_columns(results, variant, figure)
    grades = [g for g in GRADES if any(g in by_grade for _, by_grade in columns)]
    if not grades:
        return
    marks: list[Mark] = []
    for line, grade in enumerate(grades):
        marks += _row_marks([by_grade.get(grade) for _, by_grade in columns], -line)
        words = f"{grade}: {GRADES[grade]}"
        marks.append(WordMark(len(columns) - 0.04, 0.4 - line, words, across="left"))
    for column, (row, _) in enumerate(columns):
        label = method_label(results.plan, row)
        marks.append(WordMark(column + _WIDE / 2, 1.04, label))
    items = " and ".join(SUBSETS[subset] for subset in figure.subsets)
    subject = f"{TASKS[figure.task]}, uncertainty by grade, {items} items"
    runs = pool_text([row for row, _ in columns])
    suffix = "_simulated" if variant.simulated else ""
    yield Drawing(
        name=f"figure_{figure.name}_{variant.name}{suffix}",
        title=f"Figure {figure.name}: {subject}, {runs}",
        caption=f"{_colours_text(marks)} {about_text(results, [variant])}.",
        rows=((_panel(marks, len(columns), len(grades)),),),
        simulated=variant.simulated,
        size=(1.2 * len(columns) + 0.5, 0.72 * len(grades) + 0.7),
    )


def _colours_text(marks: list[Mark]) -> str:
    """Say what the colours that are drawn stand for, and how they are read."""
    drawn = {mark.colour for mark in marks if isinstance(mark, HistogramMark)}
    colours = [words for colour, words in _COLOURS.items() if colour in drawn]
    both = _BOTH if len(colours) > 1 else ""
    return f"{_CAPTION.format(colours=', '.join(colours))}{both}"


def _histogram_columns(
    results: BenchmarkResults, variant: Variant, figure: HistogramFigure
) -> list[tuple[TableRow, _ByGrade]]:
    """Return rows with their histograms by grade."""
    columns: list[tuple[TableRow, _ByGrade]] = []
    for row in results.plan.rows_on(variant):
        by_grade: dict[str, Histogram] = {}
        for subset in figure.subsets:
            for grade in GRADES:
                histogram = results.histograms.get(
                    variant=variant.name,
                    row=row.name,
                    subset=subset,
                    name=f"uncertainty/grade={grade}",
                )
                if histogram is not None:
                    by_grade.setdefault(grade, histogram)
        if by_grade and (row.pool > 1) == figure.pooled:
            columns.append((row, by_grade))
    return columns


def _panel(marks: list[Mark], columns: int, lines: int) -> Panel:
    ticks = {
        column + _WIDE * value / _LARGEST: f"{value:g}"
        for column in range(columns)
        for value in (0.0, 0.3, 0.6)
    }
    return Panel(
        marks=tuple(marks),
        x_label="uncertainty: entropy of the prediction in nats",
        y_label="density of decisions",
        x_range=(-0.03, columns + 0.65),
        y_range=(0.96 - lines, 1.16),
        x_ticks=ticks,
        y_ticks=(),
        framed=False,
    )


def _row_marks(histograms: list[Histogram | None], base: int) -> Iterator[Mark]:
    """Yield one grade of all methods; one panel holds all grades, which is faster."""
    shapes = [_shapes(histogram) if histogram else {} for histogram in histograms]
    peaks = [heights.max() for shape in shapes for heights in shape.values()]
    tallest = max((float(peak) for peak in peaks), default=0.0) or 1.0
    for left, (histogram, shape) in enumerate(zip(histograms, shapes, strict=True)):
        yield RuleMark((left, base), (left + _WIDE, base), colour=SOFT)
        if histogram is None:
            continue
        for number, (label, heights) in enumerate(shape.items()):
            if heights.max() > 0:
                edges = np.linspace(
                    histogram.edges[0], histogram.edges[-1], len(heights) + 1
                )
                yield HistogramMark(
                    edges=left + _WIDE * edges / _LARGEST,
                    heights=_HIGH * heights / tallest,
                    base=base,
                    colour=(RIGHT, WRONG)[number],
                    label=label,
                )
        yield WordMark(
            left + _WIDE / 2, base + _HIGH + 0.09, wrong_text(histogram), size=6.0
        )


def _shapes(histogram: Histogram) -> dict[str, Array]:
    """Return each part in fewer bins, scaled to sum to one."""
    shapes = {}
    for label, shares in histogram.parts.items():
        heights = shares
        while len(heights) > _BINS and len(heights) % 2 == 0:
            heights = heights.reshape(-1, 2).sum(axis=1)
        shapes[label] = heights / (float(heights.sum()) or 1.0)
    return shapes


def wrong_text(histogram: Histogram) -> str:
    """Return the share of wrong decisions, with a decimal below one percent."""
    _, wrong = (float(part.sum()) for part in histogram.parts.values())
    total = sum(float(part.sum()) for part in histogram.parts.values())
    share = wrong / total if total else 0.0
    few = 0 < share < 0.0095  # from there on it is 1%
    return f"{share:.{1 if few else 0}%} wrong"
