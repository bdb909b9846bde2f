"""Uncertainty by clinical grade and method, right decisions and wrong: 8 to 13."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults, DrawnKey, Sides
from qualms.report._style import OTHER, canvas, grid, save, say
from qualms.report.papers.retina._looks import CORRECT, INCORRECT
from qualms.report.papers.retina._settings import (
    SUBSETS,
    TASKS,
    method_label,
    numbered_variants,
    pool_text,
    rows_of,
    task_of,
)
from qualms.report.papers.retina._words import file_of, remark_of, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRADES = {
    "0": "none",
    "1": "mild",
    "2": "moderate",
    "3": "severe",
    "4": "proliferative",
}


_LARGEST = math.log(2)
"""Nats of a binary decision that could not be less certain."""
_WIDE, _HIGH = 0.86, 0.76
"""Of one histogram, in units of the distance between two."""


_BINS = 20


class HistogramFigure(NamedTuple):
    """Which items and rows a figure of the paper bins."""

    name: str
    task: str
    subsets: tuple[str, ...]
    """A grade is taken from the first of them that has it."""
    pooled: bool


FIGURES = tuple(
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


def histogram_figures(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Draw figures 8 to 13 of every variant in the paper's regime; gives the paths."""
    written: list[Path] = []
    for variant in numbered_variants(results.preset):
        for figure in FIGURES:
            if figure.task == task_of(variant):
                written += _figure(results, variant, figure, folder)
    return written


def _figure(
    results: BenchmarkResults, variant: Variant, about: HistogramFigure, folder: Path
) -> list[Path]:
    found = _found(results, variant, about)
    grades = [g for g in GRADES if any(g in by_grade for _, by_grade in found)]
    if not grades:
        return []
    width = 1.2 * len(found) + 0.5
    with canvas(width, 0.72 * len(grades) + 1.2) as figure:
        ((axes,),) = grid(figure, 1, 1)
        for column, (row, by_grade) in enumerate(found):
            for line, grade in enumerate(grades):
                _cell(axes, by_grade.get(grade), column, -line)
            label = method_label(results.benchmark, row)
            axes.text(column + _WIDE / 2, 0.98, label, ha="center")
        for line, grade in enumerate(grades):
            words = f"{grade}: {GRADES[grade]}"
            axes.text(len(found) - 0.04, 0.4 - line, words, va="center")
        _dress(axes, len(found), len(grades))
        remark = remark_of(results, variant)
        say(
            figure,
            wrapped(_title(about, [row for row, _ in found]), width),
            wrapped(f"{remark}; each side up to its own peak", width),
            list(_handles()),
            columns=2,
        )
        return save(figure, folder, file_of(about.name, variant))


def _found(
    results: BenchmarkResults, variant: Variant, about: HistogramFigure
) -> list[tuple[TableRow, dict[str, Sides]]]:
    """Rows with their histograms by grade."""
    found = []
    for row in rows_of(results.benchmark, results.preset, variant):
        by_grade: dict[str, Sides] = {}
        for subset in about.subsets:
            for grade in GRADES:
                key = DrawnKey(
                    variant.name, row.name, subset, f"uncertainty/grade={grade}"
                )
                if key in results.sides:
                    by_grade.setdefault(grade, results.sides[key])
        if by_grade and (row.pool > 1) == about.pooled:
            found.append((row, by_grade))
    return found


def _cell(axes: "Axes", sides: Sides | None, left: int, bottom: int) -> None:
    """Draw one grade of one row; a single pair of axes holds all, which is faster."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    axes.plot([left, left + _WIDE], [bottom, bottom], color=OTHER, lw=0.6)
    if sides is None:
        return
    sides = _coarser(sides)
    x = left + _WIDE * np.repeat(sides.edges, 2) / _LARGEST
    for shares, colour in ((sides.correct, CORRECT), (sides.incorrect, INCORRECT)):
        if shares.max() > 0:
            steps = np.concatenate([[0], np.repeat(shares, 2), [0]]) / shares.max()
            outline = np.column_stack([x, bottom + _HIGH * steps])
            made = PolyCollection([outline], facecolors=to_rgba(colour, 0.4), lw=0.8)
            made.set_edgecolor(colour)
            axes.add_collection(made, autolim=False)
    wrong = float(sides.incorrect.sum())
    whole = wrong + float(sides.correct.sum())
    if whole > 0:
        few = 0 < wrong / whole < 0.0095  # from there on it is 1%
        words = f"{wrong / whole:.{1 if few else 0}%} wrong"
        place = left + _WIDE / 2, bottom + _HIGH + 0.02
        axes.text(*place, words, ha="center", va="bottom", fontsize=6)


def _coarser(sides: Sides) -> Sides:
    """Bins joined in twos while there are more than a small panel can show."""
    while len(sides.correct) > _BINS and len(sides.correct) % 2 == 0:
        sides = Sides(
            sides.edges[::2],
            sides.correct.reshape(-1, 2).sum(axis=1),
            sides.incorrect.reshape(-1, 2).sum(axis=1),
        )
    return sides


def _dress(axes: "Axes", columns: int, lines: int) -> None:
    ticks = (0.0, 0.3, 0.6)
    places = [(column, tick) for column in range(columns) for tick in ticks]
    axes.set_xticks(
        [column + _WIDE * tick / _LARGEST for column, tick in places],
        [f"{tick:g}" for _, tick in places],
    )
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlim(-0.03, columns + 0.65)
    axes.set_ylim(0.96 - lines, 1.12)
    axes.set_xlabel("entropy of the prediction in nats")
    axes.set_ylabel("density of items")


def _title(about: HistogramFigure, rows: list[TableRow]) -> str:
    items = " and ".join(SUBSETS[subset] for subset in about.subsets)
    what = f"{TASKS[about.task]}, uncertainty by grade, {items} items"
    return f"Figure {about.name}: {what}, {pool_text(rows)}"


def _handles() -> Iterator[object]:
    from matplotlib.patches import Patch

    yield Patch(color=CORRECT, alpha=0.6, label="correct")
    yield Patch(color=INCORRECT, alpha=0.6, label="incorrect")
