"""Scores that were calibrated on validation items: influences, and weights of items.

The offset that widens intervals and the threshold that accepts items are order
statistics of validation items. They vary with these items, so the scores depend on both
samples. Validation items are numbered first, then test items.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from qualms.arrays import Array, Flags
from qualms.inference import (
    Influence,
    OrderStatistic,
    mean_influence,
    quantile_influence,
)
from qualms.scores.conformal import rank_reaching

NEWTON_STEPS = 100


class Forecasts(NamedTuple):
    """Predictions for the items of a split before calibration, all (N,)."""

    point: Array
    lower: Array
    upper: Array
    target: Array
    select: Array
    """Selection score, larger for items to leave out; all 0 to keep all items."""

    def outside(self) -> Array:
        """Return the distances of targets from their intervals, negative inside."""
        # Ends may be infinite if validation has too few items of a kind.
        return np.maximum(self.lower - self.target, self.target - self.upper)

    def error(self) -> Array:
        """Return absolute errors of the points."""
        return np.abs(self.point - self.target)

    def length(self) -> Array:
        """Return lengths of the intervals."""
        return self.upper - self.lower


def recalibrated_influences(
    val: Forecasts, test: Forecasts, *, alpha: float, rate: float
) -> dict[str, Callable[[], Influence]]:
    """Return by score the influence of validation and then of test items.

    Intervals are widened to coverage 1 - `alpha` on the validation items, and a share
    `rate` of these is accepted. Scores are those of validation items (val_...) and of
    accepted test items (test_...).
    """
    items = len(val.target)
    offset = OrderStatistic(val.outside(), rank_reaching(1 - alpha, items + 1))
    threshold = OrderStatistic(val.select, rank_reaching(rate, items))
    outside, error, length, select = (
        test.outside(),
        test.error(),
        test.length(),
        test.select,
    )

    def kept(values: Array, cut: float) -> Influence:
        return mean_influence(np.where(select <= cut, values, np.nan))

    return {
        "val_mae": lambda: _padded(mean_influence(val.error()), after=len(select)),
        "val_interval_length": lambda: _padded(
            _val_length(val.length(), offset), after=len(select)
        ),
        "test_coverage": lambda: _reordered(
            lambda q, cut: kept((outside <= q).astype(np.float64), cut),
            offset,
            threshold,
        ),
        "test_prediction_rate": lambda: _reordered(
            lambda cut: mean_influence((select <= cut).astype(np.float64)), threshold
        ),
        "test_mae": lambda: _reordered(partial(kept, error), threshold),
        "test_interval_length": lambda: _reordered(
            lambda q, cut: kept(length + 2 * q, cut), offset, threshold
        ),
    }


def _reordered(at: Callable[..., Influence], *thresholds: OrderStatistic) -> Influence:
    """Return `quantile_influence` with the validation items first."""
    influence = quantile_influence(at, thresholds)
    if influence.values is None:
        return influence
    tested = len(influence.values) - len(np.asarray(thresholds[0].values))
    return replace(influence, values=np.roll(influence.values, -tested))


def _val_length(length: Array, offset: OrderStatistic) -> Influence:
    """Return the influence of validation items through their length and the offset."""
    influence = quantile_influence(lambda q: mean_influence(length + 2 * q), [offset])
    if influence.values is None:
        return influence
    direct, through = np.split(influence.values, 2)
    return replace(influence, values=direct + through)


def _padded(influence: Influence, *, after: int) -> Influence:
    """Return the influence with zeros for `after` further items."""
    if influence.values is None:
        return influence
    return replace(
        influence, values=np.concatenate([influence.values, np.zeros(after)])
    )


def logistic_log_odds(features: Array, positive: Flags) -> Array:
    """Return the log odds (N,) of positive items by logistic regression.

    `features` are (N, D). The squares of the weights, but not of the intercept, are
    added to twice the loss: scikit-learn's `LogisticRegression` with its default
    penalty, solved by Newton's method to the last digits.
    """
    design = np.column_stack([features, np.ones(len(features))])
    penalty = np.ones(design.shape[1])
    penalty[-1] = 0.0
    weight = np.zeros(design.shape[1])
    loss = _penalised_loss(design, positive, penalty, weight)
    for _ in range(NEWTON_STEPS):
        chance = expit(design @ weight)
        slope = design.T @ (chance - positive) + penalty * weight
        curvature = (design.T * (chance * (1.0 - chance))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        before, size = loss, 1.0
        # A full step may overshoot where the classes are nearly separable.
        while True:
            loss = _penalised_loss(design, positive, penalty, weight - size * step)
            if loss <= before or size < 1e-6:
                break
            size /= 2.0
        weight = weight - size * step
        if np.abs(step).max() <= 1e-10 * max(1.0, np.abs(weight).max()):
            break
    log_odds: Array = design @ weight
    return log_odds


def _penalised_loss(
    design: Array, positive: Flags, penalty: Array, weight: Array
) -> float:
    log_odds = design @ weight
    losses = np.logaddexp(0.0, np.where(positive, -log_odds, log_odds))
    return float(losses.sum() + 0.5 * (penalty * weight**2).sum())
