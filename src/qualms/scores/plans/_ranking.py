"""Plans of the ranking scores: positives against negatives."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import _weighted as kernel
from qualms.scores._arrays import Array, flags, vector
from qualms.scores._resample import Weights
from qualms.scores.plans._plan import Plan, share


def auroc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auroc` of `score` (N,) for `positive` (N,)."""
    truth = flags("positive", positive)
    return weighted_auroc_plan(score, truth, ~truth)


def weighted_auroc_plan(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Plan:
    """`weighted_auroc`: items are positive and negative by a share, all (N,)."""
    rank = vector("score", score)
    item, last = kernel.ascending(rank)
    positive = _at_least_zero("positive_weight", positive_weight, len(rank))[item]
    negative = _at_least_zero("negative_weight", negative_weight, len(rank))[item]

    def value(weights: Weights) -> float:
        return kernel.concordance(weights, item, last, positive, negative)

    return Plan(len(rank), value)


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

    def rate(found: Array, count: Array) -> float:
        false = count - found
        return share(false[np.argmax(found / found[-1] >= tpr)], false[-1])

    return _detection_plan(score, positive, rate)


def _precision_plan(score: ArrayLike, positive: ArrayLike, *, trapezoid: bool) -> Plan:
    highest_first = -vector("score", score)
    truth = flags("positive", positive, length=len(highest_first))
    item, last = kernel.ascending(highest_first)
    hit = truth[item].astype(np.float64)
    return Plan(
        len(hit), lambda w: kernel.precision_area(w, item, last, hit, trapezoid)
    )


def _detection_plan(
    score: ArrayLike, positive: ArrayLike, value: Callable[[Array, Array], float]
) -> Plan:
    """`value(found, count)` of the positives among the highest scores; nan if none."""

    def defined(found: Array, count: Array) -> float:
        return value(found, count) if found[-1] > 0 else np.nan

    highest_first = -vector("score", score)
    truth = flags("positive", positive, length=len(highest_first))
    return _cumulative_plan(truth, highest_first, defined)


def _cumulative_plan(
    summand: ArrayLike, rank: Array, value: Callable[[Array, Array], float]
) -> Plan:
    """`value(total, count)` of the sums of `summand` up to each tie group."""
    item, last = kernel.ascending(rank)
    ranked_summand = vector("risk", summand, length=len(rank))[item]

    def at(weights: Weights) -> float:
        total, count = kernel.cumulative(weights, item, last, ranked_summand)
        return value(total, count)

    return Plan(len(rank), at)


def _at_least_zero(name: str, values: ArrayLike, length: int) -> Array:
    array = vector(name, values, length=length)
    if array.min() < 0.0:
        row = int(np.argmax(array < 0.0))
        raise ValueError(f"{name} must not be negative, row {row} is {array[row]}")
    return array
