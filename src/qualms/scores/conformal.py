"""Thresholds from a validation split: conformal offsets and selection thresholds.

A conformal offset widens (or, when negative, shrinks) intervals until they contain a
stated share of new targets. A selection threshold keeps a stated share of the items.
Both are order statistics of the validation split, at the rank that gives the guarantee.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores._arrays import Array, Flags, Index, not_negative, open_unit, vector
from qualms.scores.resampling import Copies, Plan

Counts = NDArray[np.int32]

# A product such as 20 * (1 - 0.05) may come out a rounding error above a whole number;
# without this slack the next rank would be taken.
SLACK = 1e-12


def rank_reaching(share: float, count: int) -> int:
    """The least whole rank that is at least `share` of `count`, up to rounding errors.

    >>> rank_reaching(1 - 0.9, 10), rank_reaching(0.15, 10)
    (1, 2)
    """
    return math.ceil(share * count * (1 - SLACK))


def conformal_offset(
    lower: ArrayLike, upper: ArrayLike, target: ArrayLike, *, alpha: float
) -> float:
    """The offset Q for which [lower - Q, upper + Q] holds 1 - `alpha` of new targets.

    Split conformal calibration of intervals (N,) on validation items (Romano et al.,
    2019): the ceil((N + 1)(1 - alpha))-th smallest of max(lower - y, y - upper). With
    items that are exchangeable the coverage is at least 1 - alpha; where N is too
    small for that, Q is infinite. For a point prediction f pass it as both ends: Q is
    then a quantile of |y - f|.

    >>> conformal_offset([0.0] * 4, [0.0] * 4, [1.0, -2.0, 3.0, 4.0], alpha=0.4)
    3.0
    """
    open_unit("alpha", alpha)
    outside = np.sort(excess(lower, upper, target))
    rank = rank_reaching(1 - alpha, len(outside) + 1)
    return float(outside[rank - 1]) if rank <= len(outside) else math.inf


def weighted_conformal_offset(
    lower: ArrayLike,
    upper: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike,
    test_weight: ArrayLike,
    *,
    alpha: float,
) -> Array:
    """One offset per test item (T,) when the inputs of test and validation differ.

    Weighted split conformal calibration under covariate shift (Tibshirani et al.,
    2019). `weight` (N,) of the validation and `test_weight` (T,) of the test items are
    density ratios test / validation, up to a common factor. The offset is the least
    max(lower - y, y - upper) whose validation items carry 1 - `alpha` of all weight,
    the test item's own included; infinite where they cannot. Equal weights give
    `conformal_offset`.

    >>> weighted_conformal_offset(
    ...     [0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [1.0, 1.0], [0.0, 1.0, 9.0], alpha=0.4
    ... )
    array([ 2.,  2., inf])
    """
    open_unit("alpha", alpha)
    outside = excess(lower, upper, target)
    mass = not_negative("weight", weight, length=len(outside))
    own = not_negative("test_weight", test_weight)
    if mass.max() == 0:
        raise ValueError("weight must be positive for at least one item, all are 0")
    order = np.argsort(outside)
    carried = np.cumsum(mass[order])
    needed = (1 - alpha) * (carried[-1] + own) * (1 - SLACK)
    reached = np.append(outside[order], np.inf)
    offset: Array = reached[np.searchsorted(carried, needed)]
    return offset


def excess(lower: ArrayLike, upper: ArrayLike, target: ArrayLike) -> Array:
    """How far each target (N,) lies outside its interval; negative inside it.

    >>> excess([0.0, 0.0], [4.0, 4.0], [1.0, 6.0])
    array([-1.,  2.])
    """
    wanted = vector("target", target)
    low = vector("lower", lower, length=len(wanted))
    high = vector("upper", upper, length=len(wanted))
    return np.maximum(low - wanted, wanted - high)


def selection_threshold(select: ArrayLike, *, rate: float = 0.95) -> float:
    """The least threshold that accepts at least `rate` of the validation items (N,).

    An item is accepted where its `select` (larger = less certain) does not exceed the
    threshold: the ceil(rate N)-th smallest value.

    >>> selection_threshold([4.0, 1.0, 3.0, 2.0], rate=0.5)
    2.0
    """
    open_unit("rate", rate)
    values = np.sort(vector("select", select))
    return float(values[rank_reaching(rate, len(values)) - 1])


def accept(select: ArrayLike, threshold: float) -> Flags:
    """Which items (N,) are predicted: those whose `select` is at most `threshold`.

    >>> accept([1.0, 2.0, 3.0], 2.0)
    array([ True,  True, False])
    """
    if math.isnan(threshold):
        raise ValueError("threshold must be a number, got nan")
    return vector("select", select) <= threshold


@as_score(label="prediction rate", better="higher")
def prediction_rate(select: ArrayLike, threshold: float) -> float:
    """Share of items (N,) whose `select` is at most `threshold`.

    >>> prediction_rate([1.0, 2.0, 3.0, 4.0], 2.0)
    0.5
    """
    return float(accept(select, threshold).mean())


def recalibrated_plans(
    val: Array, test: Array, *, share: float, rate: float
) -> tuple[Plan, ...]:
    """Plans of six scores over the items of `val` (4, V) and `test` (4, T) together.

    In a replicate, offset and threshold come from its validation items and the scores
    from its test items: mean absolute error and interval length of validation items,
    then coverage, share accepted, error and length of the accepted test items.

    The rows of both are: how far the target lies outside its interval (`excess`), the
    selection score, the absolute error of the point, and the length of the interval.
    The offset is the conformal one for coverage `share`; items are accepted up to the
    value that lets `rate` of the validation items pass.
    """
    order = np.argsort(val[:2], axis=1)
    ranked = np.concatenate([np.take_along_axis(val[:2], order, axis=1), val[2:]])
    level = np.array([share, rate]) * (1 - SLACK)
    split, key = val.shape[1], object()

    def replayed(copies: Copies) -> Array:
        known = np.ascontiguousarray(copies.weights[:, :split])
        new = np.ascontiguousarray(copies.weights[:, split:])
        return _replayed(known, new, order, ranked, test, level)

    def plan(column: int) -> Plan:
        def value(copies: Copies) -> Array:
            found = copies.shared(key, lambda: replayed(copies))
            return np.ascontiguousarray(found[:, column])

        return Plan(split + test.shape[1], value)

    return tuple(plan(column) for column in range(6))


@jit
def _replayed(
    val_weights: Counts,
    test_weights: Counts,
    order: Index,
    val: Array,
    test: Array,
    level: Array,
) -> Array:
    replicates = len(val_weights)
    found = np.empty((replicates, 6))
    for replicate in range(replicates):
        weight = val_weights[replicate]
        total = weight.sum()
        rank = np.ceil(level[0] * (total + 1))
        offset = _at_rank(weight, order[0], val[0], rank)
        threshold = _at_rank(weight, order[1], val[1], np.ceil(level[1] * total))
        error, length = 0.0, 0.0
        for i in range(len(weight)):
            error += weight[i] * val[2, i]
            length += weight[i] * val[3, i]
        found[replicate, 0] = error / total
        found[replicate, 1] = length / total + 2 * offset
        _accepted(test_weights[replicate], test, offset, threshold, found[replicate])
    return found


@jit
def _at_rank(weight: Counts, order: Index, ranked: Array, rank: float) -> float:
    """The value at `rank` among repeated items; infinite past the last."""
    below = 0
    for i in range(len(order)):
        below += weight[order[i]]
        if below >= rank:
            return float(ranked[i])
    return np.inf


@jit
def _accepted(
    weight: Counts, test: Array, offset: float, threshold: float, found: Array
) -> None:
    """Fill in the scores of the test items that are predicted."""
    kept, inside = 0, 0
    error, length = 0.0, 0.0
    # Without branches: weights are as good as random, which no processor foresees.
    for i in range(len(weight)):
        count = weight[i] * (test[1, i] <= threshold)
        kept += count
        inside += count * (test[0, i] <= offset)
        error += count * test[2, i]
        length += count * test[3, i]
    share = kept if kept else np.nan
    found[2] = inside / share
    found[3] = kept / weight.sum()
    found[4] = error / share
    found[5] = length / share + 2 * offset
