"""What the figures of a referral benchmark draw: curves of repeats, and histograms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qualms import scores
from qualms.evaluate._benchmark_results import Band, Sides
from qualms.evaluate._referral_items import Array, Flags, Index, Items, Sets
from qualms.scores import ReferralCurve

GRID = np.linspace(0.0, 1.0, 51)
"""False positive rates at which a ROC curve is read, as the released code does."""
POINTS = 500
"""At most so many points of a referral curve are drawn."""
BINS = 40
GRADED = ("in_domain", "shifted", "joint")
"""Sets whose grades have histograms; the others hold items more than once."""

Drawn = tuple[str, str]
"""Set, and what is drawn of it."""


class Line(NamedTuple):
    """One curve of one repeat, (points,) both; y is nan where it is undefined."""

    x: Array
    y: Array


def lines_of(
    items: Items, sets: Sets, curves: Mapping[tuple[str, str], ReferralCurve]
) -> Iterator[tuple[Drawn, Line]]:
    """Every curve of one repeat: referral, ROC, and ROC of the shift."""
    for (where, name), curve in curves.items():
        yield (where, f"referral_{name}"), _thinned(curve)
    for where, rows in sets.ours.items():
        positive = items.target[rows] == 1
        if positive.any() and not positive.all():
            yield (where, "roc"), _roc(items.probs[rows, 1], positive)
    yield ("joint", "ood_roc"), _roc(items.uncertainty.total, items.shifted)


def sides_of(items: Items, sets: Sets) -> Iterator[tuple[Drawn, Sides]]:
    """Histograms of one repeat's total uncertainty, one for each clinical grade."""
    if items.group is None:
        return
    right = scores.correct(items.probs, items.target)
    for where in GRADED:
        rows = sets.ours[where]
        grades = items.group[rows]
        for grade in np.unique(grades):
            of_grade = rows[grades == grade]
            doubt = items.uncertainty.total[of_grade]
            name = f"uncertainty/grade={grade}"
            yield (where, name), _sides(doubt, right[of_grade])


def band_of(lines: Sequence[Line]) -> Band:
    """Mean over repeats, and the standard error of that mean by their deviation.

    Where some repeats are undefined the others count; nan where all are.
    """
    heights = np.stack([line.y for line in lines])
    defined = ~np.isnan(heights)
    count = defined.sum(axis=0)
    mean = _over(np.where(defined, heights, 0.0).sum(axis=0), count)
    off = np.where(defined, heights - mean, 0.0)
    # One repeat tells nothing of how far repeats lie apart.
    spread = np.sqrt(_over(np.square(off).sum(axis=0), count - 1))
    places = np.stack([line.x for line in lines])
    there = ~np.isnan(places)
    x = _over(np.where(there, places, 0.0).sum(axis=0), there.sum(axis=0))
    kept = ~np.isnan(x)
    stderr = _over(spread, np.sqrt(count))
    return Band(x[kept], mean[kept], stderr[kept])


def mean_sides(sides: Sequence[Sides]) -> Sides:
    """Mean over repeats of the same items."""
    return Sides(
        sides[0].edges,
        np.mean([side.correct for side in sides], axis=0),
        np.mean([side.incorrect for side in sides], axis=0),
    )


def _thinned(curve: ReferralCurve) -> Line:
    """Evenly spaced points of a curve, its first and last among them."""
    items = len(curve.value)
    chosen = np.unique(np.linspace(0, items - 1, POINTS).round().astype(np.int64))
    return Line(curve.referred[chosen], curve.value[chosen])


def _roc(score: Array, positive: Flags) -> Line:
    """True positive rates at `GRID`: the highest reached there, linear in between."""
    curve = scores.roc_curve(score, positive)
    # Of the points above one another only the last, highest one is a choice to make.
    last = np.append(np.diff(curve.fpr) > 0, True)
    return Line(GRID, np.interp(GRID, curve.fpr[last], curve.tpr[last]))


def _sides(doubt: Array, right: Flags) -> Sides:
    edges = np.linspace(0.0, np.log(2.0), BINS + 1)
    # Two equal classes can miss log 2 by a rounding.
    inside = np.clip(doubt, edges[0], edges[-1])
    correct, incorrect = (
        np.histogram(inside[chosen], edges)[0] / len(doubt)
        for chosen in (right, ~right)
    )
    return Sides(edges, correct, incorrect)


def _over(total: Array, count: Array | Index) -> Array:
    """`total` / `count`, nan where there is nothing to divide by."""
    below = np.asarray(count, np.float64)
    found: Array = np.divide(
        total, below, out=np.full(len(below), np.nan), where=below > 0
    )
    return found
