"""Scores of predictions of one number, and of its whole distribution.

Point scores take the mean; distribution scores take the mean and variance of a
Gaussian, or draws. `pool_gaussian` makes one Gaussian of the draws of several networks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr, ndtri

from qualms.arrays import Array
from qualms.scores._about import about, as_score
from qualms.scores._sums import mean_over_draws
from qualms.scores.arguments import by_name, matrix, open_unit, vector
from qualms.scores.influence import (
    CLUSTERS_OF_GAPS,
    SQUARES,
    BinGaps,
    Influence,
    mean_influence,
    undefined,
)

__all__ = [
    "Moments",
    "crps_ensemble",
    "crps_gaussian",
    "gaussian_interval",
    "gaussian_nll",
    "item_pit",
    "mae",
    "pinball",
    "pit_mean",
    "pit_spread",
    "pool_gaussian",
    "regression_ece",
    "rmse",
]

FEWEST_BEYOND = 10
"""Fewest items that should be beyond a quantile, with an interval of its loss."""
# The central intervals of 5 %, 10 %, ..., 95 %.
ALPHAS = tuple(k / 20 for k in range(1, 20))


class Moments(NamedTuple):
    """Mean and variance of a pooled prediction, (N,) each."""

    mean: Array
    var: Array


class Bounds(NamedTuple):
    """Ends of prediction intervals, (N,) each."""

    lower: Array
    upper: Array


@by_name
def pool_gaussian(*, mean: ArrayLike, var: ArrayLike | None = None) -> Moments:
    """Return mean and variance (N,) of the equal mixture of M Gaussian draws (M, N).

    The variance is the mean variance plus the population variance of the means, as in
    deep ensembles (Lakshminarayanan et al., 2017). Draws without a variance of their
    own (`var` left out) have the population variance alone, 0 for a single draw.

    >>> pool_gaussian(mean=[[1.0, 2.0], [3.0, 2.0]])
    Moments(mean=array([2., 2.]), var=array([1., 0.]))
    """
    means = matrix("mean", mean)
    centre = mean_over_draws(means)
    spread = mean_over_draws(np.square(means - centre))
    if var is None:
        return Moments(centre, spread)
    variances = matrix("var", var, length=len(means))
    if variances.shape != means.shape:
        raise ValueError(
            f"var must have the shape of mean, {means.shape}, got {variances.shape}"
        )
    if variances.min() < 0:
        raise ValueError(
            f"var must not be negative, its least value is {variances.min():g}"
        )
    return Moments(centre, mean_over_draws(variances) + spread)


@by_name
def gaussian_interval(*, mean: ArrayLike, var: ArrayLike, alpha: float) -> Bounds:
    """Return central intervals of level 1 - `alpha` of Gaussians, moments (N,).

    >>> gaussian_interval(mean=[0.0], var=[4.0], alpha=0.1)
    Bounds(lower=array([-3.28970725]), upper=array([3.28970725]))
    """
    open_unit("alpha", alpha)
    centre = vector("mean", mean)
    half = float(ndtri(1 - alpha / 2)) * np.sqrt(_variance(var, length=len(centre)))
    return Bounds(centre - half, centre + half)


def item_gaussian_nll(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Array:
    """Return negative log density (N,) of each target; `gaussian_nll` is its mean."""
    error = _error(mean, target)
    spread = _variance(var, length=len(error), positive=True)
    density: Array = (np.log(2 * math.pi * spread) + error**2 / spread) / 2
    return density


def item_crps_gaussian(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Array:
    """Return the score (N,) of each item; `crps_gaussian` is its mean."""
    error = np.abs(_error(mean, target))
    sigma = np.sqrt(_variance(var, length=len(error)))
    z = np.divide(error, sigma, out=np.zeros_like(error), where=sigma > 0)
    density = np.exp(-(z**2) / 2) * math.sqrt(2 / math.pi)
    # error (2 Phi(z) - 1) instead of sigma z (2 Phi(z) - 1) is right at sigma = 0, too.
    inside = np.where(sigma > 0, 2 * ndtr(z) - 1, 1.0)
    score: Array = error * inside + sigma * (density - 1 / math.sqrt(math.pi))
    return score


def item_crps_ensemble(draws: ArrayLike, target: ArrayLike) -> Array:
    """Return the score (N,) of each item; `crps_ensemble` is its mean."""
    truth = vector("target", target)
    raw = matrix("draws", draws)
    count = len(raw)
    if raw.shape[1] != len(truth):
        raise ValueError(
            f"draws must have shape (M, {len(truth)}) for {len(truth)} targets, "
            f"got {raw.shape}"
        )
    # Differences from the target avoid cancellation of large values. There is a row per
    # item, so that sorting works on contiguous memory.
    error = np.subtract(raw.T, truth[:, None], order="C")
    error.sort(axis=1)
    weight = (2 * np.arange(count) + 1 - count) / count**2
    to_target = np.abs(error).mean(axis=1)
    score: Array = np.maximum(to_target - error @ weight, 0.0)
    return score


def item_level(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Array:
    """Return the level (N,) of the smallest central interval that holds the target.

    >>> item_level([0.0], [1.0], [0.0])
    array([0.])
    """
    error = np.abs(_error(mean, target))
    scale = np.sqrt(2 * _variance(var, length=len(error)))
    reach = np.where(error > 0, np.inf, 0.0)
    np.divide(error, scale, out=reach, where=scale > 0)
    level: Array = erf(reach)
    return level


@by_name
def item_pit(*, mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Array:
    """Return the probability (N,) of a smaller target (Dawid, 1984).

    The probability integral transform: it is uniform where Gaussians are right. At
    variance 0 it is 0, 1/2 or 1.

    >>> item_pit(mean=[0.0, 0.0], var=[1.0, 4.0], target=[0.0, -2.0]).round(4)
    array([0.5   , 0.1587])
    """
    error = -_error(mean, target)
    sigma = np.sqrt(_variance(var, length=len(error)))
    # A distance of 50 standard deviations stands for a Gaussian without width.
    z = np.divide(error, sigma, out=50.0 * np.sign(error), where=sigma > 0.0)
    transform: Array = ndtr(z)
    return transform


def _item_pit_spread(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Array:
    return 12.0 * np.square(item_pit(mean=mean, var=var, target=target) - 0.5)


def item_error(mean: ArrayLike, target: ArrayLike) -> Array:
    """Return absolute error (N,) of each prediction; `mae` is its mean."""
    return np.abs(_error(mean, target))


@as_score(label="PIT mean", better="neither", items=item_pit)
@by_name
def pit_mean(*, mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> float:
    """Return the mean probability of a smaller target under Gaussians, moments (N,).

    It is 1/2 where predictions are right, and below it where they are too high.

    >>> pit_mean(mean=[0.0, 0.0], var=[1.0, 1.0], target=[0.0, 0.0])
    0.5
    """
    return float(item_pit(mean=mean, var=var, target=target).mean())


@as_score(label="PIT spread", better="neither", high=3.0, items=_item_pit_spread)
@by_name
def pit_spread(*, mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> float:
    """Return 12 times the mean squared distance of `item_pit` from 1/2.

    It is 1 where Gaussians are right, above 1 where they are too narrow or beside the
    targets, and below 1 where they are too wide.

    >>> pit_spread(mean=[0.0, 0.0], var=[1.0, 1.0], target=[0.0, 0.0])
    0.0
    """
    return float(_item_pit_spread(mean, var, target).mean())


@as_score(label="MAE", better="lower", high=math.inf, items=item_error)
def mae(mean: ArrayLike, target: ArrayLike) -> float:
    """Return the mean absolute error of predictions (N,).

    >>> mae([1.0, 5.0], [2.0, 3.0])
    1.5
    """
    return float(item_error(mean, target).mean())


def _rmse_influence(mean: ArrayLike, target: ArrayLike) -> Influence:
    """Return half the influence of the mean square: on the log scale that of a root."""
    squares = mean_influence(np.square(_error(mean, target)))
    root = math.sqrt(squares.value)
    if squares.values is None or root == 0.0:
        return undefined("every error is 0", value=root)
    return dataclasses.replace(
        squares, value=root, values=squares.values / (2.0 * root), reason=SQUARES
    )


@as_score(label="RMSE", better="lower", high=math.inf, influence=_rmse_influence)
def rmse(mean: ArrayLike, target: ArrayLike) -> float:
    """Return the root of the mean squared error of predictions (N,).

    >>> rmse([1.0, 5.0], [2.0, 12.0])
    5.0
    """
    return math.sqrt(float(np.square(_error(mean, target)).mean()))


def _gaussian_nll_influence(
    mean: ArrayLike, var: ArrayLike, target: ArrayLike
) -> Influence:
    nll = item_gaussian_nll(mean, var, target)
    influence = mean_influence(nll, about=about(gaussian_nll))
    return dataclasses.replace(influence, reason=SQUARES)


@as_score(
    label="NLL",
    better="lower",
    low=-math.inf,
    high=math.inf,
    influence=_gaussian_nll_influence,
)
@by_name
def gaussian_nll(*, mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> float:
    """Return the mean negative log density of the targets (N,), in nats.

    `var` must be positive: at zero variance there is no density.

    >>> round(gaussian_nll(mean=[0.0], var=[1.0], target=[0.0]), 6)
    0.918939
    """
    return float(item_gaussian_nll(mean, var, target).mean())


def _item_pinball(prediction: ArrayLike, target: ArrayLike, *, level: float) -> Array:
    short = -_error(prediction, target, name="prediction")
    return np.maximum(level * short, (level - 1.0) * short)


def _pinball_influence(
    prediction: ArrayLike, target: ArrayLike, *, level: float
) -> Influence:
    loss = _item_pinball(prediction, target, level=level)
    influence = mean_influence(loss, about=about(pinball))
    least = math.ceil(FEWEST_BEYOND / min(level, 1.0 - level) - 1e-9)
    if len(loss) >= least or influence.reason:
        return influence
    reason = (
        "it rests on the few targets beyond the quantile: with fewer than "
        f"{least} items no interval holds"
    )
    return dataclasses.replace(influence, reason=reason)


@as_score(label="pinball", better="lower", high=math.inf, influence=_pinball_influence)
@by_name
def pinball(*, prediction: ArrayLike, target: ArrayLike, level: float) -> float:
    """Return the mean pinball loss of a predicted quantile (Koenker & Bassett, 1978).

    >>> pinball(prediction=[1.0, 1.0], target=[2.0, 0.0], level=0.9)
    0.5
    """
    open_unit("level", level)
    return float(_item_pinball(prediction, target, level=level).mean())


@as_score(label="CRPS", better="lower", high=math.inf, items=item_crps_gaussian)
@by_name
def crps_gaussian(*, mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> float:
    """Return the mean ranked probability score of Gaussians (Gneiting et al., 2005).

    At zero variance it is the absolute error, its limit.

    >>> round(crps_gaussian(mean=[0.0], var=[1.0], target=[0.0]), 6)
    0.233695
    """
    return float(item_crps_gaussian(mean, var, target).mean())


@as_score(label="CRPS", better="lower", high=math.inf, items=item_crps_ensemble)
@by_name
def crps_ensemble(*, draws: ArrayLike, target: ArrayLike) -> float:
    """Return the mean continuous ranked probability score of draws (M, N).

    The draws are taken as the whole distribution: E|X - y| - E|X - X'| / 2 with both
    means over all M (pairs: M^2) draws (Gneiting & Raftery, 2007). Sorting turns the
    sum over pairs into one weighted sum, so the cost is M log M.

    >>> crps_ensemble(draws=[[0.0], [2.0]], target=[0.0])
    0.5
    """
    return float(item_crps_ensemble(draws, target).mean())


def _regression_ece_influence(
    mean: ArrayLike,
    var: ArrayLike,
    target: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
) -> Influence:
    """Return mean gap between nominal and observed coverage of central intervals."""
    nominal = np.sort(1.0 - np.asarray(alphas, dtype=np.float64))
    level = item_level(mean, var, target)
    items, levels = len(level), len(nominal)
    # An item of cell k lies inside all intervals from the k-th on; in none if k = K.
    cell = np.searchsorted(nominal, level, side="left")
    inside = np.arange(levels) >= np.arange(levels + 1)[:, None]
    tilt = np.zeros((levels + 1, levels + 1))
    tilt[:, :levels] = inside / items
    observed = np.cumsum(np.bincount(cell, minlength=levels + 1))[:levels] / items
    total = np.append(observed - nominal, 0.0)
    gaps = BinGaps(
        cell.astype(np.int64), np.zeros(items), total, tilt=tilt, factor=1.0 / levels
    )
    return Influence(
        value=float(np.abs(total).sum()) * gaps.factor,
        values=None,
        scale="linear",
        construction=gaps,
        fewest_clusters=CLUSTERS_OF_GAPS,
    )


@as_score(label="regression ECE", better="lower", influence=_regression_ece_influence)
@by_name
def regression_ece(
    *,
    mean: ArrayLike,
    var: ArrayLike,
    target: ArrayLike,
    alphas: Sequence[float] = ALPHAS,
) -> float:
    """Return the mean gap of nominal and observed coverage of Gaussian intervals.

    The mean over `alphas` of |observed - (1 - alpha)|, where an interval of level
    1 - alpha ends at the alpha/2 and 1 - alpha/2 quantiles, both ends included. By
    default over alpha = 0.05, 0.10, ..., 0.95 (after Kuleshov et al., 2018, who take
    one-sided intervals and squares).

    >>> regression_ece(mean=[0.0, 0.0], var=[1.0, 1.0], target=[0.0, 9.0], alphas=[0.5])
    0.0
    """
    if len(alphas) == 0:
        raise ValueError("alphas must name at least one alpha, got none")
    for alpha in alphas:
        open_unit("alpha", alpha)
    needed = np.sort(item_level(mean, var, target))
    nominal = 1 - np.asarray(alphas, dtype=np.float64)
    observed = np.searchsorted(needed, nominal, side="right") / len(needed)
    return float(np.abs(observed - nominal).mean())


def _error(prediction: ArrayLike, target: ArrayLike, *, name: str = "mean") -> Array:
    truth = vector("target", target)
    return vector(name, prediction, length=len(truth)) - truth


def _variance(var: ArrayLike, *, length: int, positive: bool = False) -> Array:
    array = vector("var", var, length=length)
    wrong = np.flatnonzero(array <= 0 if positive else array < 0)
    if wrong.size:
        row = int(wrong[0])
        need = "be greater than 0" if positive else "not be negative"
        raise ValueError(
            f"var must {need}, row {row} is {array[row]:g}; pass the variance, not its "
            "logarithm"
        )
    return array
