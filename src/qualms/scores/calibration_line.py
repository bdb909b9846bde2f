"""Calibration of P(y=1) as a line on the logit scale, and as a smooth curve.

Logistic regression of the outcome on the logit of the predicted probability (Cox, 1958;
Van Calster et al., 2019). A slope below 1 means that predictions are too extreme; an
intercept below 0 that they are too high on the whole.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from qualms.arrays import Array, Flags
from qualms.scores._about import as_score
from qualms.scores.arguments import FLOOR, flags, vector
from qualms.scores.influence import Influence, few_of_a_kind, undefined

__all__ = [
    "CalibrationCurve",
    "calibration_curve",
    "calibration_intercept",
    "calibration_slope",
]

STEPS = 200
"""Of Newton's method, each halved until the likelihood grows."""
SETTLED = 1e-10
NARROWEST = 0.02
"""Least standard deviation of the Gaussian that smooths a curve."""
REACH = 4.0
"""Items further away than so many standard deviations do not count."""
FEWEST_NEAR = 5.0
"""Items that a point of a curve needs, by their weight."""
ONE_KIND = "there must be items of both kinds, positive and negative"
SEPARATED = (
    "a threshold separates positive from negative items without an error, or all "
    "probabilities are the same: the slope has no value"
)


class CalibrationCurve(NamedTuple):
    """How often items with a predicted probability are positive."""

    share: Array
    """(K,) at each probability; nan where there are too few items."""
    weight: Array
    """(K, N) of each item in the share; its sum is 1."""


def _slope_influence(prob: ArrayLike, positive: ArrayLike) -> Influence:
    logits, truth = _logits_and_truth(prob, positive)
    reason = _why_undefined(logits, truth)
    if reason:
        return undefined(reason)
    design = np.column_stack([np.ones(len(logits)), logits])
    fitted = _fitted(design, truth)
    chance = expit(design @ fitted)
    weight = chance * (1.0 - chance)
    inverse = np.linalg.inv((design.T * weight) @ design)
    change = design @ inverse
    # The leverage of an item: it draws the line to itself (HC3; MacKinnon & White).
    leverage = weight * np.einsum("nk,nk->n", change, design)
    return Influence(
        value=float(fitted[1]),
        values=_centred(change[:, 1] * (truth - chance) / (1.0 - leverage)),
        scale="linear",
        low=-math.inf,
        high=math.inf,
        uncompared=few_of_a_kind(_smaller(truth)),
    )


@as_score(
    label="Calibration slope",
    better="neither",
    low=-math.inf,
    high=math.inf,
    influence=_slope_influence,
)
def calibration_slope(prob: ArrayLike, positive: ArrayLike) -> float:
    """Return the slope of logistic regression on the logit of P(y=1), `prob` (N,).

    It is best at 1; below it predictions are too extreme. Probabilities of 0 and 1
    count as 1e-15 and 1 - 1e-15. Undefined, nan, where a threshold separates the kinds.

    >>> p = [0.2, 0.2, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8, 0.8]
    >>> round(calibration_slope(p, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0]), 6)
    1.0
    """
    logits, truth = _logits_and_truth(prob, positive)
    if _why_undefined(logits, truth):
        return math.nan
    design = np.column_stack([np.ones(len(logits)), logits])
    return float(_fitted(design, truth)[1])


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
        uncompared=few_of_a_kind(_smaller(truth)),
    )


@as_score(
    label="Calibration intercept",
    better="neither",
    low=-math.inf,
    high=math.inf,
    influence=_intercept_influence,
)
def calibration_intercept(prob: ArrayLike, positive: ArrayLike) -> float:
    """Return what is added to the logit of P(y=1), `prob` (N,), to be right on average.

    Calibration in the large: the intercept of logistic regression with a slope of 1. It
    is best at 0; below it predictions are too high. Undefined, nan, with items of one
    kind.

    >>> round(calibration_intercept([0.8] * 4, [1, 1, 0, 0]), 4)
    -1.3863
    """
    logits, truth = _logits_and_truth(prob, positive)
    if truth.all() or not truth.any():
        return math.nan
    return _shift(logits, truth)


def calibration_curve(
    prob: ArrayLike, positive: ArrayLike, at: ArrayLike
) -> CalibrationCurve:
    """Return how often items are positive at the probabilities `at` (K,).

    Local linear regression with a Gaussian kernel (Fan & Gijbels, 1996), which has no
    bias where predictions are calibrated, since the curve is then a line. The standard
    deviation is 0.9 min(sd, IQR / 1.34) N^(-1/4), at least 0.02.

    >>> curve = calibration_curve([0.5] * 8, [1, 0] * 4, [0.1, 0.5])
    >>> curve.share
    array([nan, 0.5])
    """
    values = vector("prob", prob)
    truth = flags("positive", positive, length=len(values)).astype(np.float64)
    points = vector("at", at)
    width = _bandwidth(values)
    weight = np.full((len(points), len(values)), 0.0)
    share = np.full(len(points), np.nan)
    for number, point in enumerate(points):
        local = _local_weights(values - point, width)
        if local is not None:
            weight[number] = local
            share[number] = min(max(float(local @ truth), 0.0), 1.0)
    return CalibrationCurve(share, weight)


def _local_weights(away: Array, width: float) -> Array | None:
    """Return the weight (N,) of items so far `away`; None with too few of them."""
    near = np.abs(away) <= REACH * width
    kernel = np.where(near, np.exp(-0.5 * np.square(away / width)), 0.0)
    total = float(kernel.sum())
    if total < FEWEST_NEAR:
        return None
    mean = float(kernel @ away) / total
    spread = float(kernel @ np.square(away - mean))
    flat = kernel / total
    # Where all items are on one side, a line beyond them would say more than they do.
    outside = away[near].min() > 0.0 or away[near].max() < 0.0
    if outside or spread <= 1e-12 * total:
        return flat
    local: Array = flat - mean * kernel * (away - mean) / spread
    return local


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


def _fitted(design: Array, truth: Flags) -> Array:
    """Return the coefficients of logistic regression, by Newton's method."""
    fitted = np.zeros(design.shape[1])
    loss = _loss(design @ fitted, truth)
    for _ in range(STEPS):
        chance = expit(design @ fitted)
        slope = design.T @ (chance - truth)
        curvature = (design.T * (chance * (1.0 - chance))) @ design
        step, size = np.linalg.solve(curvature, slope), 1.0
        while True:
            after = _loss(design @ (fitted - size * step), truth)
            if after <= loss * (1.0 + 1e-12) or size < 1e-9:
                break
            size /= 2.0
        fitted, loss = fitted - size * step, after
        if np.abs(size * step).max() <= SETTLED * max(1.0, np.abs(fitted).max()):
            break
    return fitted


def _loss(log_odds: Array, truth: Flags) -> float:
    return float(np.logaddexp(0.0, np.where(truth, -log_odds, log_odds)).sum())


def _shift(logits: Array, truth: Flags) -> float:
    """Return what makes the mean probability the share of positive items."""
    from scipy.optimize import brentq

    def excess(shift: float) -> float:
        return float((expit(logits + shift) - truth).sum())

    reach = float(np.abs(logits).max()) + math.log(len(logits)) + 1.0
    return float(brentq(excess, -reach, reach, xtol=1e-12))
