"""Coverage and length of prediction intervals.

Intervals are two arrays (N,). Conformal calibration may make an interval unbounded
(`lower` -inf, `upper` inf) or invert it (`lower` above `upper`). An inverted interval
contains nothing; `inverted_fraction` is the share of these.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags
from qualms.scores._about import about, as_score
from qualms.scores.arguments import by_name, open_unit, vector
from qualms.scores.influence import Influence, mean_influence, undefined

__all__ = [
    "coverage",
    "interval_length",
    "interval_score",
    "inverted_fraction",
]

FEWEST_SCORED, FEWEST_MISSED = 100, 10
"""Fewest items, and fewest that should be outside, with an interval of their score."""


def covered(lower: ArrayLike, upper: ArrayLike, target: ArrayLike) -> Flags:
    """Return a mask of targets (N,) in their interval; `coverage` is the mean."""
    truth = vector("target", target)
    low, high = _ends(lower, upper, length=len(truth))
    inside: Flags = (low <= truth) & (truth <= high)
    return inside


def item_length(lower: ArrayLike, upper: ArrayLike) -> Array:
    """Return (N,) length of each interval; `interval_length` is its mean."""
    low, high = _ends(lower, upper)
    return high - low


def item_inverted(lower: ArrayLike, upper: ArrayLike) -> Flags:
    """Return a mask (N,) of lower ends above the upper ones."""
    low, high = _ends(lower, upper)
    inverted: Flags = low > high
    return inverted


def item_interval_score(
    lower: ArrayLike, upper: ArrayLike, target: ArrayLike, *, alpha: float
) -> Array:
    """Return the score (N,) of each interval; `interval_score` is its mean."""
    open_unit("alpha", alpha)
    truth = vector("target", target)
    low, high = _ends(lower, upper, length=len(truth))
    missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    score: Array = high - low + 2 / alpha * missed
    return score


@as_score(label="coverage", better="neither", items=covered)
@by_name
def coverage(*, lower: ArrayLike, upper: ArrayLike, target: ArrayLike) -> float:
    """Return the share of targets (N,) inside their interval, both ends included.

    >>> coverage(lower=[0.0, 0.0], upper=[1.0, 1.0], target=[1.0, 1.5])
    0.5
    """
    return float(covered(lower, upper, target).mean())


def _interval_length_influence(lower: ArrayLike, upper: ArrayLike) -> Influence:
    length = item_length(lower, upper)
    if not np.isfinite(length).all():
        return undefined("some intervals are unbounded", value=math.inf)
    # Inverted intervals have negative lengths.
    positive = None if length.min() > 0.0 else about(interval_length)
    return mean_influence(length, about=positive)


@as_score(
    label="interval length",
    better="lower",
    low=-math.inf,
    high=math.inf,
    influence=_interval_length_influence,
)
@by_name
def interval_length(*, lower: ArrayLike, upper: ArrayLike) -> float:
    """Return mean of `upper` - `lower` (N,); an inverted interval counts as negative.

    >>> interval_length(lower=[0.0, 0.0], upper=[1.0, 2.0])
    1.5
    """
    return float(item_length(lower, upper).mean())


def _interval_score_influence(
    lower: ArrayLike, upper: ArrayLike, target: ArrayLike, *, alpha: float
) -> Influence:
    score = item_interval_score(lower, upper, target, alpha=alpha)
    influence = mean_influence(score, about=about(interval_score))
    least = max(FEWEST_SCORED, math.ceil(FEWEST_MISSED / alpha))
    if len(score) >= least or influence.reason:
        return influence
    reason = (
        "it rests on the few targets outside their interval: with fewer than "
        f"{least} items no interval holds"
    )
    return dataclasses.replace(influence, reason=reason)


@as_score(
    label="interval score",
    better="lower",
    high=math.inf,
    influence=_interval_score_influence,
)
@by_name
def interval_score(
    *, lower: ArrayLike, upper: ArrayLike, target: ArrayLike, alpha: float
) -> float:
    """Return the mean length plus 2/`alpha` times the distance of missed targets (N,).

    A proper score of central intervals of level 1 - `alpha` (Gneiting & Raftery,
    2007).

    >>> interval_score(lower=[0.0, 0.0], upper=[1.0, 1.0], target=[1.0, 1.5], alpha=0.1)
    6.0
    """
    return float(item_interval_score(lower, upper, target, alpha=alpha).mean())


@as_score(label="inverted intervals", better="lower", items=item_inverted)
@by_name
def inverted_fraction(*, lower: ArrayLike, upper: ArrayLike) -> float:
    """Return the share of intervals (N,) whose lower end lies above the upper one.

    >>> inverted_fraction(lower=[0.0, 2.0], upper=[1.0, 1.0])
    0.5
    """
    return float(item_inverted(lower, upper).mean())


def _ends(
    lower: ArrayLike, upper: ArrayLike, *, length: int | None = None
) -> tuple[Array, Array]:
    low = _end("lower", lower, length=length, unbounded=-math.inf)
    high = _end("upper", upper, length=len(low), unbounded=math.inf)
    return low, high


def _end(
    name: str, values: ArrayLike, *, length: int | None, unbounded: float
) -> Array:
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return vector(name, array, length=length)
    vector(name, np.where(array == unbounded, 0.0, array), length=length)
    return array.astype(np.float64, copy=False)
