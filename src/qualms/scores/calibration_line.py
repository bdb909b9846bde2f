"""Calibration of P(y=1) as a line on the logit scale, and as a smooth curve.

Logistic regression of the outcome on the logit of the predicted probability (Cox, 1958;
Van Calster et al., 2019). A slope below 1 means that predictions are too extreme; an
intercept below 0 that they are too high on the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores._sums import plain_dot
from qualms.scores.arguments import FLOOR, by_name, flags, vector
from qualms.scores.influence import (
    CLUSTERS_OF_SLOPES,
    Influence,
    Shifted,
    few_errors,
    few_of_a_kind,
    undefined,
)
from qualms.scores.ties import ranked_items

__all__ = [
    "CalibrationCurve",
    "calibration_curve",
    "calibration_intercept",
    "calibration_slope",
]

STEPS = 200
"""Most steps of Newton's method, each halved until the likelihood grows."""
SETTLED = 1e-10
MANY, SPARSE = 1 << 16, 17
"""From so many items on, Newton's method begins where every 17th item alone ends it.
Files may alternate between kinds of items, and seldom by 17 of them."""
BLOCK = 1 << 10
"""Items that are summed before their sum is added to others."""
NARROWEST = 0.02
"""Least standard deviation of the Gaussian that smooths a curve."""
REACH = 4.0
"""Largest distance, in standard deviations, of items that count."""
FEWEST_NEAR = 5.0
"""Least effective number of items for a point of a curve."""
ONE_KIND = "there must be items of both kinds, positive and negative"
SEPARATED = (
    "a threshold separates positive from negative items without an error, or all "
    "probabilities are the same: the slope has no value"
)
FEW_OFF_SIDE = (
    "the slope rests on the items on the wrong side of 1/2, or on the right one: with "
    "fewer than 5 of them no interval holds"
)


class CalibrationCurve(NamedTuple):
    """The share of positive items by predicted probability."""

    share: Array
    """(K,) shares at each probability; nan where there are too few items."""
    weight: Array
    """(K, N) weight of each item in the share; weights sum to 1."""


class LocalShare(NamedTuple):
    """A point of a calibration curve, and the items around it."""

    share: float
    """Number of positive items among them."""
    items: Index
    """(n,) their numbers."""
    weight: Array
    """(n,) of each of them in the share; its sum is 1."""


def _slope_influence(prob: ArrayLike, positive: ArrayLike) -> Influence:
    logits, truth = _logits_and_truth(prob, positive)
    reason = _why_undefined(logits, truth)
    if reason:
        return undefined(reason)
    few = few_errors((logits > 0.0) != truth)
    intercept, slope = _fitted(logits, truth)
    _, _, curvature = _logistic_loss(logits, truth, intercept, slope)
    inverse = np.asarray(np.linalg.inv(curvature), np.float64)
    change = _changes(logits, truth, intercept, slope, inverse)
    return Influence(
        value=slope,
        values=_centred(change),
        scale="linear",
        low=-math.inf,
        high=math.inf,
        uncompared=few_of_a_kind(_smaller(truth)) or few,
        reason=FEW_OFF_SIDE if few else "",
        fewest_clusters=CLUSTERS_OF_SLOPES,
    )


@jit
def _changes(
    logits: Array, truth: Flags, intercept: float, slope: float, inverse: Array
) -> Array:
    """Return (N,) what each item changes in the slope of the line."""
    change = np.empty(len(logits))
    for item in range(len(logits)):
        x = logits[item]
        chance = 1.0 / (1.0 + math.exp(-(intercept + slope * x)))
        # The leverage of an item: it draws the line to itself (HC3; MacKinnon & White).
        spread = inverse[0, 0] + x * (2.0 * inverse[0, 1] + inverse[1, 1] * x)
        leverage = chance * (1.0 - chance) * spread
        own = inverse[1, 0] + inverse[1, 1] * x
        change[item] = own * (truth[item] - chance) / (1.0 - leverage)
    return change


@as_score(
    label="Calibration slope",
    better="neither",
    low=-math.inf,
    high=math.inf,
    influence=_slope_influence,
)
@by_name
def calibration_slope(*, prob: ArrayLike, positive: ArrayLike) -> float:
    """Return the slope of logistic regression on the logit of P(y=1), `prob` (N,).

    It is best at 1; below it predictions are too extreme. Probabilities of 0 and 1
    count as 1e-15 and 1 - 1e-15. Undefined, nan, where a threshold separates the kinds.

    >>> p = [0.2, 0.2, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8, 0.8]
    >>> round(calibration_slope(prob=p, positive=[0, 0, 0, 0, 1, 1, 1, 1, 1, 0]), 6)
    1.0
    """
    logits, truth = _logits_and_truth(prob, positive)
    if _why_undefined(logits, truth):
        return math.nan
    return _fitted(logits, truth)[1]


def _intercept_influence(prob: ArrayLike, positive: ArrayLike) -> Influence:
    logits, truth = _logits_and_truth(prob, positive)
    if truth.all() or not truth.any():
        return undefined(ONE_KIND)
    value = _shift(logits, truth)
    chance = expit(logits + value)
    return Influence(
        value=value,
        values=(truth - chance) / (chance * (1.0 - chance)).sum(),
        scale="linear",
        low=-math.inf,
        high=math.inf,
        construction=Shifted(logits, truth),
        uncompared=few_of_a_kind(_smaller(truth)) or few_errors((logits > 0) != truth),
    )


def shift_root(
    excess: Callable[[float], float],
    logits: Array,
    *,
    near: tuple[float, float] = (0.0, 0.0),
) -> float:
    """Return the shift of `logits` at which `excess` grows above 0; nan if it never.

    It is sought between the shifts `near` first.
    """
    from scipy.optimize import brentq

    reach = float(np.abs(logits).max()) + math.log(len(logits)) + 1.0
    for low, high in (near, (-reach, reach)):
        if low < high and excess(low) < 0.0 < excess(high):
            return float(brentq(excess, low, high, xtol=1e-12))
    return math.nan


@as_score(
    label="Calibration intercept",
    better="neither",
    low=-math.inf,
    high=math.inf,
    influence=_intercept_influence,
)
@by_name
def calibration_intercept(*, prob: ArrayLike, positive: ArrayLike) -> float:
    """Return the shift of the logit of P(y=1), `prob` (N,), that is right on average.

    Calibration in the large: the intercept of logistic regression with a slope of 1. It
    is best at 0; below it predictions are too high. Undefined, nan, with items of one
    kind.

    >>> round(calibration_intercept(prob=[0.8] * 4, positive=[1, 1, 0, 0]), 4)
    -1.3863
    """
    logits, truth = _logits_and_truth(prob, positive)
    if truth.all() or not truth.any():
        return math.nan
    return _shift(logits, truth)


@by_name
def calibration_curve(
    *, prob: ArrayLike, positive: ArrayLike, at: ArrayLike
) -> CalibrationCurve:
    """Return the share of positive items at the probabilities `at` (K,).

    Local linear regression with a Gaussian kernel (Fan & Gijbels, 1996), which has no
    bias if predictions are calibrated, because the curve is then a line. The standard
    deviation is 0.9 min(sd, IQR / 1.34) N^(-1/4), at least 0.02.

    >>> curve = calibration_curve(prob=[0.5] * 8, positive=[1, 0] * 4, at=[0.1, 0.5])
    >>> curve.share
    array([nan, 0.5])
    """
    points = vector("at", at)
    weight = np.zeros((len(points), len(vector("prob", prob))))
    share = np.full(len(points), np.nan)
    for number, local in enumerate(local_shares(prob, positive, points)):
        if local is not None:
            share[number] = local.share
            weight[number, local.items] = local.weight
    return CalibrationCurve(share, weight)


def local_shares(
    prob: ArrayLike, positive: ArrayLike, at: Array
) -> Iterator[LocalShare | None]:
    """Yield a point of `calibration_curve` at a time; None where items are too few.

    The weights of all points of ten million items would not fit into memory.
    """
    values = vector("prob", prob)
    truth = flags("positive", positive, length=len(values))
    width, order = _bandwidth(values), ranked_items(values).order
    ordered, outcome = values[order], truth[order].astype(np.float64)
    for point in at:
        ends = [point - REACH * width, point + REACH * width]
        near = slice(*np.searchsorted(ordered, ends))
        weight = _local_weights(ordered[near] - point, width)
        if weight is None:
            yield None
        else:
            share = min(max(plain_dot(weight, outcome[near]), 0.0), 1.0)
            yield LocalShare(share, order[near], weight)


def _local_weights(away: Array, width: float) -> Array | None:
    """Return the weights of items by their distance `away` (N,); None if too few."""
    kernel = np.exp(-0.5 * np.square(away / width))
    total = float(kernel.sum())
    if total < FEWEST_NEAR:
        return None
    mean = plain_dot(kernel, away) / total
    away_from_mean = away - mean
    local = kernel * away_from_mean
    spread = plain_dot(local, away_from_mean)
    kernel /= total
    # With all items on one side, the line would be an extrapolation.
    outside = away[0] > 0.0 or away[-1] < 0.0
    if outside or spread <= 1e-12 * total:
        return kernel
    local *= mean / spread
    kernel -= local
    return kernel


def _bandwidth(values: Array) -> float:
    quartiles = np.quantile(values, [0.25, 0.75])
    spread = float(np.std(values))
    middle = float(quartiles[1] - quartiles[0]) / 1.34
    least = min(spread, middle) if middle > 0.0 else spread
    return max(0.9 * least / math.sqrt(math.sqrt(len(values))), NARROWEST)


def _logits_and_truth(prob: ArrayLike, positive: ArrayLike) -> tuple[Array, Flags]:
    values = vector("prob", prob)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError("prob must lie in [0, 1]; give P(y=1)")
    truth = flags("positive", positive, length=len(values))
    return logit(np.clip(values, FLOOR, 1.0 - FLOOR)), truth


def why_no_slope(prob: ArrayLike, positive: ArrayLike) -> str:
    """Return why `calibration_slope` is undefined; '' if it is defined."""
    return _why_undefined(*_logits_and_truth(prob, positive))


def _why_undefined(logits: Array, truth: Flags) -> str:
    if truth.all() or not truth.any():
        return ONE_KIND
    above = logits[truth].min() >= logits[~truth].max()
    below = logits[truth].max() <= logits[~truth].min()
    return SEPARATED if bool(above or below) else ""


def _smaller(truth: Flags) -> float:
    positives = int(truth.sum())
    return float(min(positives, len(truth) - positives))


def _centred(values: Array) -> Array:
    centred: Array = values - values.mean()
    return centred


def _fitted(logits: Array, truth: Flags) -> tuple[float, float]:
    """Return intercept and slope of logistic regression, by Newton's method."""
    fitted = np.array(_start(logits, truth))
    loss, slope, curvature = _logistic_loss(logits, truth, *fitted)
    for _ in range(STEPS):
        step, size = np.linalg.solve(curvature, slope), 1.0
        while True:
            after, slope, curvature = _logistic_loss(
                logits, truth, *(fitted - size * step)
            )
            if after <= loss * (1.0 + 1e-12) or size < 1e-9:
                break
            size /= 2.0
        fitted, loss = fitted - size * step, after
        if np.abs(size * step).max() <= SETTLED * max(1.0, np.abs(fitted).max()):
            break
    return float(fitted[0]), float(fitted[1])


def _start(logits: Array, truth: Flags) -> tuple[float, float]:
    """Return the start of Newton's method: the result for a sample of many items."""
    if len(logits) < MANY:
        return 0.0, 0.0
    some, kind = logits[::SPARSE].copy(), truth[::SPARSE].copy()
    return (0.0, 0.0) if _why_undefined(some, kind) else _fitted(some, kind)


class _LogisticLoss(NamedTuple):
    """The loss of logistic regression, with its derivatives."""

    loss: float
    slope: Array
    """(2,) first derivative."""
    curvature: Array
    """(2, 2) second derivative."""


def _logistic_loss(
    logits: Array, truth: Flags, intercept: float, slope: float
) -> _LogisticLoss:
    """Return the loss of a line on the logit scale, and its derivatives."""
    sums = _sums(logits, truth, intercept, slope)
    return _LogisticLoss(
        float(sums[0]), sums[1:3], np.array([[sums[3], sums[4]], [sums[4], sums[5]]])
    )


@jit
def _sums(logits: Array, truth: Flags, intercept: float, slope: float) -> Array:
    """Return (6,) sums over items: loss, two first and three second derivatives."""
    total = np.zeros(6)
    for start in range(0, len(logits), BLOCK):
        part = np.zeros(6)  # sums of sums lose fewer digits
        for item in range(start, min(start + BLOCK, len(logits))):
            x = logits[item]
            log_odds = intercept + slope * x
            small = math.exp(-abs(log_odds))
            chance = (1.0 if log_odds >= 0.0 else small) / (1.0 + small)
            off = chance - truth[item]
            weight = small / (1.0 + small) ** 2
            against = -log_odds if truth[item] else log_odds
            part[0] += max(against, 0.0) + math.log1p(small)
            part[1] += off
            part[2] += off * x
            part[3] += weight
            part[4] += weight * x
            part[5] += weight * x * x
        total += part
    return total


def _shift(logits: Array, truth: Flags) -> float:
    """Return the shift of logits that makes the mean probability the positive share."""
    return shift_root(lambda by: float((expit(logits + by) - truth).sum()), logits)
