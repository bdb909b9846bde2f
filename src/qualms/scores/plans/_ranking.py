"""Plans of the ranking scores: positives against negatives."""

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import _weighted as kernel
from qualms.scores._arrays import Array, flags, vector
from qualms.scores._cells import Cells, ranked_cells
from qualms.scores._copies import Copies
from qualms.scores.plans._plan import Plan, share


def auroc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auroc` of `score` (N,) for `positive` (N,)."""
    truth = flags("positive", positive)
    return weighted_auroc_plan(score, truth, ~truth)


def weighted_auroc_plan(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Plan:
    """`weighted_auroc`: items are positive and negative by a share, all (N,)."""
    values = vector("score", score)
    cells = _descending(
        values,
        _at_least_zero("positive_weight", positive_weight, len(values)),
        _at_least_zero("negative_weight", negative_weight, len(values)),
    )

    def value(copies: Copies) -> Array:
        return kernel.concordance(copies.within(cells), cells.last, *cells.carried)

    return Plan(len(values), value)


def auprc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auprc` of `score` (N,) for `positive` items, by trapezoids."""
    return _precision_plan(score, positive, trapezoid=True)


def average_precision_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`average_precision` of `score` (N,) for `positive` items, by steps."""
    return _precision_plan(score, positive, trapezoid=False)


def fpr_at_tpr_plan(
    score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95
) -> Plan:
    """`fpr_at_tpr` of `score` (N,) for `positive` (N,)."""
    if not 0.0 < tpr <= 1.0:
        raise ValueError(f"tpr must lie in (0, 1], got {tpr}")
    cells = _detected(score, positive)
    true, false = cells.carried

    def value(copies: Copies) -> Array:
        counts = copies.within(cells)
        found = np.cumsum(counts * true, axis=1)[:, cells.last]
        passed = np.cumsum(counts * false, axis=1)[:, cells.last]
        enough = found / np.maximum(found[:, -1:], 1.0) >= tpr
        false_there = passed[np.arange(len(passed)), enough.argmax(axis=1)]
        return share(false_there, passed[:, -1] * (found[:, -1] > 0.0))

    return Plan(len(cells.cell), value)


def _precision_plan(score: ArrayLike, positive: ArrayLike, *, trapezoid: bool) -> Plan:
    cells = _detected(score, positive)
    hit, _ = cells.carried

    def areas(copies: Copies) -> Array:
        return kernel.precision_areas(copies.within(cells), cells.last, hit)

    def value(copies: Copies) -> Array:
        both = copies.shared((cells, "precision"), lambda: areas(copies))
        area: Array = both[0 if trapezoid else 1]
        return area

    return Plan(len(cells.cell), value)


def _detected(score: ArrayLike, positive: ArrayLike) -> Cells:
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    return _descending(values, truth.astype(np.float64), (~truth).astype(np.float64))


def _descending(score: Array, positive: Array, negative: Array) -> Cells:
    """Cells of what counts as positive and negative, the highest score first."""
    # Between two positives the order of the negatives changes nothing.
    return ranked_cells(-score, positive, negative, alike=positive == 0.0)


def _at_least_zero(name: str, values: ArrayLike, length: int) -> Array:
    array = vector(name, values, length=length)
    if array.min() < 0.0:
        row = int(np.argmax(array < 0.0))
        raise ValueError(f"{name} must not be negative, row {row} is {array[row]}")
    return array
