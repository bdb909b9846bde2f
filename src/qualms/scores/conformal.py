"""Thresholds from a validation split: conformal offsets and selection thresholds.

A conformal offset widens (or, when negative, shrinks) intervals until they contain a
stated share of new targets. A selection threshold keeps a stated share of the items.
Both are order statistics of the validation split, at the rank that gives the guarantee.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags
from qualms.scores._about import as_score
from qualms.scores.arguments import by_name, not_negative, open_unit, vector

__all__ = [
    "accept",
    "conformal_offset",
    "mondrian_offset",
    "prediction_rate",
    "selection_threshold",
    "weighted_conformal_offset",
]

# A product such as 20 * (1 - 0.05) may exceed a whole number by a rounding error;
# without this slack it would give the next rank.
SLACK = 1e-12


def rank_reaching(share: float, count: int) -> int:
    """Return the least rank that is at least `share` of `count`, up to rounding.

    >>> rank_reaching(1 - 0.9, 10), rank_reaching(0.15, 10)
    (1, 2)
    """
    return math.ceil(share * count * (1 - SLACK))


@by_name
def conformal_offset(
    *, lower: ArrayLike, upper: ArrayLike, target: ArrayLike, alpha: float
) -> float:
    """Return the Q for which [lower - Q, upper + Q] holds 1 - `alpha` of new targets.

    Split conformal calibration of intervals (N,) on validation items (Romano et al.,
    2019): the ceil((N + 1)(1 - alpha))-th smallest of max(lower - y, y - upper). With
    items that are exchangeable the coverage is at least 1 - alpha; where N is too
    small for that, Q is infinite. For a point prediction f pass it as both ends: Q is
    then a quantile of |y - f|.

    >>> conformal_offset(
    ...     lower=[0.0] * 4, upper=[0.0] * 4, target=[1.0, -2.0, 3.0, 4.0], alpha=0.4
    ... )
    3.0
    """
    open_unit("alpha", alpha)
    outside = np.sort(excess(lower, upper, target))
    rank = rank_reaching(1 - alpha, len(outside) + 1)
    return float(outside[rank - 1]) if rank <= len(outside) else math.inf


@by_name
def weighted_conformal_offset(
    *,
    lower: ArrayLike,
    upper: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike,
    test_weight: ArrayLike,
    alpha: float,
) -> Array:
    """Return one offset per test item (T,), whose inputs differ from validation.

    Weighted split conformal calibration under covariate shift (Tibshirani et al.,
    2019). `weight` (N,) of the validation and `test_weight` (T,) of the test items are
    density ratios test / validation, up to a common factor. The offset is the least
    max(lower - y, y - upper) whose validation items carry 1 - `alpha` of all weight,
    the test item's own included; infinite where they cannot. Equal weights give
    `conformal_offset`.

    >>> weighted_conformal_offset(
    ...     lower=[0.0, 0.0],
    ...     upper=[0.0, 0.0],
    ...     target=[1.0, 2.0],
    ...     weight=[1.0, 1.0],
    ...     test_weight=[0.0, 1.0, 9.0],
    ...     alpha=0.4,
    ... )
    array([ 2.,  2., inf])
    """
    open_unit("alpha", alpha)
    outside = excess(lower, upper, target)
    mass = not_negative("weight", weight, length=len(outside))
    test_mass = not_negative("test_weight", test_weight)
    if mass.max() == 0:
        raise ValueError("weight must be positive for at least one item, all are 0")
    order = np.argsort(outside)
    carried = np.cumsum(mass[order])
    needed = (1 - alpha) * (carried[-1] + test_mass) * (1 - SLACK)
    reached = np.append(outside[order], np.inf)
    offset: Array = reached[np.searchsorted(carried, needed)]
    return offset


@by_name
def mondrian_offset(
    *,
    lower: ArrayLike,
    upper: ArrayLike,
    target: ArrayLike,
    group: ArrayLike,
    test_group: ArrayLike,
    alpha: float,
) -> Array:
    """Return one offset per test item (T,): that of the validation items of its group.

    Group-wise, or Mondrian, calibration (Vovk et al., 2005): coverage is 1 - `alpha` in
    every group, not only on average. `group` (N,) and `test_group` (T,) are labels of
    any kind. The offset is infinite where a group has too few validation items.

    >>> mondrian_offset(
    ...     lower=[0.0] * 4,
    ...     upper=[0.0] * 4,
    ...     target=[1.0, 2.0, 5.0, 6.0],
    ...     group=list("aabb"),
    ...     test_group=["b", "a", "c"],
    ...     alpha=0.4,
    ... )
    array([ 6.,  2., inf])
    """
    outside = excess(lower, upper, target)
    return thresholds_by_group(outside, group, test_group, alpha=alpha)


def thresholds_by_group(
    values: Array, group: ArrayLike, test_group: ArrayLike, *, alpha: float
) -> Array:
    """Return (T,) the ceil((n + 1)(1 - alpha))-th smallest of each item's group."""
    open_unit("alpha", alpha)
    labels, wanted = np.asarray(group), np.asarray(test_group)
    if labels.shape != values.shape:
        raise ValueError(f"group must have shape {values.shape}, got {labels.shape}")
    if wanted.ndim != 1:
        raise ValueError(f"test_group must have shape (T,), got {wanted.shape}")
    threshold = np.full(len(wanted), math.inf)
    for name in np.unique(wanted):
        own = np.sort(values[labels == name])
        rank = rank_reaching(1 - alpha, len(own) + 1)
        if rank <= len(own):
            threshold[wanted == name] = own[rank - 1]
    return threshold


def excess(lower: ArrayLike, upper: ArrayLike, target: ArrayLike) -> Array:
    """Return the distance (N,) of each target from its interval; negative inside.

    >>> excess([0.0, 0.0], [4.0, 4.0], [1.0, 6.0])
    array([-1.,  2.])
    """
    truth = vector("target", target)
    low = vector("lower", lower, length=len(truth))
    high = vector("upper", upper, length=len(truth))
    return np.maximum(low - truth, truth - high)


def selection_threshold(select: ArrayLike, *, rate: float = 0.95) -> float:
    """Return least threshold that accepts at least `rate` of the validation items (N,).

    An item is accepted where its `select` (larger = less certain) does not exceed the
    threshold: the ceil(rate N)-th smallest value.

    >>> selection_threshold([4.0, 1.0, 3.0, 2.0], rate=0.5)
    2.0
    """
    open_unit("rate", rate)
    values = np.sort(vector("select", select))
    return float(values[rank_reaching(rate, len(values)) - 1])


def accept(select: ArrayLike, threshold: float) -> Flags:
    """Return a mask (N,) of accepted items: those with `select` at most `threshold`.

    >>> accept([1.0, 2.0, 3.0], 2.0)
    array([ True,  True, False])
    """
    if math.isnan(threshold):
        raise ValueError("threshold must be a number, got nan")
    return vector("select", select) <= threshold


@as_score(label="prediction rate", better="higher", items=accept)
def prediction_rate(select: ArrayLike, threshold: float) -> float:
    """Return the share of items (N,) whose `select` is at most `threshold`.

    >>> prediction_rate([1.0, 2.0, 3.0, 4.0], 2.0)
    0.5
    """
    return float(accept(select, threshold).mean())
