"""Calibration of pixel uncertainties: Platt scaling on validation, then binned error.

A pixel rated by R people counts R times. The functions here take no repeated pixels but
the number of raters that agree with a prediction, and of all raters
(`rater_agreement`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from qualms.arrays import Array, Index
from qualms.scores._about import as_score
from qualms.scores._pixel_kernels import calibration_gaps
from qualms.scores._pixels import check_same_space, real_map
from qualms.scores._sums import plain_dot
from qualms.scores.arguments import SUM_TOLERANCE, by_name

__all__ = [
    "Platt",
    "UncertaintyHistogram",
    "ace",
    "fit_platt",
    "stated_ace",
    "uncertainty_histogram",
]

_MAX_STEPS = 100
_STEP_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Platt:
    """Confidence as a logistic function of uncertainty: 1 / (1 + exp(-u a + b))."""

    a: float
    b: float

    def confidence(self, uncertainty: ArrayLike) -> Array:
        """Return confidence in [0, 1] of every pixel, in the shape of `uncertainty`."""
        scaled = self.a * real_map("uncertainty", uncertainty) - self.b
        return np.asarray(expit(scaled), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyHistogram:
    """Pixels counted in equal bins of uncertainty; histograms of items add up.

    `fit_platt(h.mean, h.correct, total=h.total)` then fits all of them at once. Wrong
    pixels (row 0) and right ones (row 1) are counted separately, with the exact sum of
    their uncertainties, so that the fit differs from one on every pixel only by the
    curvature of the logistic inside a bin.
    """

    high: float
    total: Array
    """(2, B) numbers of pixels."""
    summed: Array
    """(2, B) sums of their uncertainties."""

    @property
    def correct(self) -> Array:
        """(2, B) numbers of right pixels: none in row 0, all in row 1."""
        return np.stack([np.zeros_like(self.total[1]), self.total[1]])

    @property
    def mean(self) -> Array:
        """(2, B) mean uncertainty of each bin; 0 if it is empty."""
        return self.summed / np.where(self.total > 0, self.total, 1.0)

    def __add__(self, other: UncertaintyHistogram) -> UncertaintyHistogram:
        bounds, other_bounds = (
            (self.high, self.total.shape[1]),
            (other.high, other.total.shape[1]),
        )
        if bounds != other_bounds:
            raise ValueError(
                "histograms must share their range and number of bins, "
                f"got (high, bins) = {bounds} and {other_bounds}"
            )
        return UncertaintyHistogram(
            high=self.high,
            total=self.total + other.total,
            summed=self.summed + other.summed,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Only bins with pixels are sent between processes: few of many thousand.
        filled = np.flatnonzero(self.total)
        parts = (self.total.flat[filled], self.summed.flat[filled])
        bins = self.total.shape[1]
        return _unpacked, (self.high, bins, filled.astype(np.uint32), *parts)


def _unpacked(
    high: float, bins: int, filled: Index, total: Array, summed: Array
) -> UncertaintyHistogram:
    flat = np.zeros((2, 2 * bins))
    flat[:, filled] = total, summed
    sums = flat.reshape(2, 2, bins)
    return UncertaintyHistogram(high=high, total=sums[0], summed=sums[1])


@as_score(label="ACE (Platt)", better="lower")
@by_name
def ace(
    *,
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike | None = None,
    bins: int = 20,
) -> float:
    """Return the average calibration error (Neumann et al., 2018).

    Mean over non-empty bins of |accuracy - mean confidence|. Every bin has the same
    weight, so that background does not dominate. Bins are equal and closed on the left.

    Args:
        confidence: Probability that a pixel is right, any shape.
        correct: True for right pixels; with `total`, the number of times it is right.
        total: Number of times that a pixel counts (raters), 0 to leave it out.
        bins: Number of bins on [0, 1].

    Returns:
        The error; nan if every pixel is left out.

    >>> ace(confidence=np.array([0.9, 0.9, 0.6]), correct=np.array([True, True, False]))
    0.35
    """
    return _mean_gap(_gaps("confidence", confidence, correct, total, bins))


@as_score(label="ACE as stated", better="lower")
@by_name
def stated_ace(
    *,
    mean_probs: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike | None = None,
    bins: int = 20,
) -> float:
    """Return `ace` of the model's own probabilities of the likeliest classes.

    `ace` of a `Platt` fit shows whether an uncertainty can be turned into confidences;
    this shows whether the model's own probabilities are calibrated.

    Args:
        mean_probs: (C, *space) probabilities, averaged over draws.
        correct: (*space) True where the likeliest class is right, as for `ace`.
        total: Number of times that a pixel counts (raters), 0 to leave it out.
        bins: Number of bins on [0, 1].

    >>> stated_ace(
    ...     mean_probs=[[0.9, 0.9, 0.4], [0.1, 0.1, 0.6]], correct=[True, True, False]
    ... )
    0.35
    """
    return _mean_gap(stated_gaps(mean_probs, correct, total=total, bins=bins))


class ConfidenceGaps(NamedTuple):
    """Counts behind `ace` and `stated_ace`; those of several maps add up."""

    size: Array
    """(B,) counts of pixels in each bin."""
    gap: Array
    """(B,) counts of right pixels minus the sums of their confidences."""


def stated_gaps(
    mean_probs: ArrayLike,
    correct: ArrayLike,
    *,
    total: ArrayLike | None = None,
    bins: int = 20,
) -> ConfidenceGaps:
    """Return the gaps of one map; arguments are those of `stated_ace`."""
    likeliest = np.asarray(mean_probs).max(axis=0)
    # Probabilities in float32 may add up to a little more than one.
    rounded = (likeliest > 1.0) & (likeliest <= 1.0 + SUM_TOLERANCE)
    conf = np.where(rounded, 1.0, likeliest)
    return _gaps("mean_probs", conf, correct, total, bins)


def _gaps(
    name: str,
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike | None,
    bins: int,
) -> ConfidenceGaps:
    conf, right, count = _flat_counts(name, confidence, correct, total)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    if conf.min() < 0.0 or conf.max() > 1.0:
        raise ValueError(
            f"{name} must lie in [0, 1], got {conf.min():.6g} to {conf.max():.6g}; "
            "turn uncertainties into confidences by fit_platt first"
        )
    edges = np.linspace(0.0, 1.0 + 1e-8, bins + 1)
    return ConfidenceGaps(*calibration_gaps(conf, right, count, edges))


def _mean_gap(gaps: ConfidenceGaps) -> float:
    filled = gaps.size > 0
    if not filled.any():
        return float("nan")
    return float(np.mean(np.abs(gaps.gap[filled]) / gaps.size[filled]))


@by_name
def fit_platt(
    *, uncertainty: ArrayLike, correct: ArrayLike, total: ArrayLike | None = None
) -> Platt:
    """Return the logistic fit of being right, with smoothed targets (Platt, 1999).

    One fit pools all validation pixels of a run; for many items add up their
    `uncertainty_histogram` first. Where the uncertainty does not vary, the slope is 0
    and the confidence is the smoothed accuracy.

    Args:
        uncertainty: Any shape.
        correct: Whether a pixel is right; with `total`, how many times it is.
        total: How many times a pixel counts (raters), 0 to leave it out.

    >>> platt = fit_platt(
    ...     uncertainty=np.array([0.0, 0.1, 0.8, 0.9]), correct=np.array([1, 1, 1, 0])
    ... )
    >>> platt.confidence(np.array([0.0, 0.9])).round(2)
    array([0.82, 0.53])
    """
    values, right, count = _flat_counts("uncertainty", uncertainty, correct, total)
    counts = count.sum()
    if counts == 0:
        raise ValueError("total must leave at least one pixel to fit on, all are 0")
    target = _smoothed(right, count)
    spread = float(np.ptp(values[count > 0]))
    if spread == 0.0:
        return Platt(a=0.0, b=-float(logit(target.sum() / counts)))
    centre = plain_dot(count, values) / float(counts)
    slope, level = _fit_logistic((values - centre) / spread, target, count)
    return Platt(a=slope / spread, b=slope * centre / spread - level)


@by_name
def uncertainty_histogram(
    *,
    uncertainty: ArrayLike,
    correct: ArrayLike,
    high: float,
    total: ArrayLike | None = None,
    bins: int = 16384,
) -> UncertaintyHistogram:
    """Return pixels of one item by uncertainty, to be added over items and fitted once.

    Args:
        uncertainty: Any shape.
        correct: Whether a pixel is right; with `total`, how many times it is.
        high: Upper end of the bins, for instance log(C); values beyond join the last.
        total: How many times a pixel counts (raters), 0 to leave it out.
        bins: Number of equal bins on [0, high].

    >>> item = uncertainty_histogram(
    ...     uncertainty=[0.1, 0.6], correct=[1, 0], high=1.0, bins=2
    ... )
    >>> (item + item).mean
    array([[0. , 0.6],
           [0.1, 0. ]])
    """
    values, right, count = _flat_counts("uncertainty", uncertainty, correct, total)
    if bins < 1 or not 0.0 < high < np.inf:
        raise ValueError(
            f"bins must be at least 1 and high positive, got {bins} and {high}"
        )
    cell = np.clip(values * (bins / high), 0, bins - 1).astype(np.int64)
    kinds = (count - right, right)
    return UncertaintyHistogram(
        high=float(high),
        total=np.stack([_sums(cell, kind, bins) for kind in kinds]),
        summed=np.stack([_sums(cell, kind * values, bins) for kind in kinds]),
    )


def _flat_counts(
    name: str, values: ArrayLike, correct: ArrayLike, total: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return the flat values, right counts and all counts of every pixel."""
    value = real_map(name, values)
    right = real_map("correct", correct)
    count = np.ones(value.shape) if total is None else real_map("total", total)
    check_same_space((name, "correct"), value.shape, right.shape)
    check_same_space((name, "total"), value.shape, count.shape)
    wrong: Index = np.flatnonzero((right < 0.0) | (right > count))
    if total is None and not wrong.size:
        wrong = np.flatnonzero((right != 0.0) & (right != 1.0))
    if wrong.size:
        raise ValueError(
            "correct must be 0 or 1, or lie in 0..total where total is given, "
            f"pixel {wrong[0]} is {right.flat[wrong[0]]:g}"
        )
    return value.ravel(), right.ravel(), count.ravel()


def _sums(cell: Index, weights: Array, bins: int) -> Array:
    """Return (B,) sum of `weights` in each bin."""
    return np.bincount(cell, weights, bins).astype(np.float64, copy=False)


def _smoothed(right: Array, count: Array) -> Array:
    """Return the sum of Platt's targets of each pixel, which are never 0 or 1."""
    positives = right.sum()
    negatives = count.sum() - positives
    high, low = (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)
    target: Array = right * high + (count - right) * low
    return target


def _fit_logistic(x: Array, target: Array, count: Array) -> tuple[float, float]:
    """Return slope and intercept of the log-odds of `target` successes out of `count`.

    The maximum of the likelihood. `x` must vary, and the sum of `target` must lie
    strictly between 0 and that of `count`. Newton steps are halved while they
    overshoot; the likelihood is concave, so this always converges.
    """
    line = np.array([0.0, logit(target.sum() / count.sum())])
    loss = _loss(line, x, target, count)
    for _ in range(_MAX_STEPS):
        step = _newton_step(line, x, target, count)
        tried = _loss(line - step, x, target, count)
        while tried > loss + 1e-12 * abs(loss):
            step = step / 2.0
            tried = _loss(line - step, x, target, count)
        line, loss = line - step, tried
        if np.abs(step).max() < _STEP_TOLERANCE * (1.0 + np.abs(line).max()):
            break
    return float(line[0]), float(line[1])


def _newton_step(line: Array, x: Array, target: Array, count: Array) -> Array:
    chance = expit(line[0] * x + line[1])
    residual = count * chance - target
    weight = count * chance * (1.0 - chance)
    mixed = plain_dot(weight, x)
    curvature = np.array([[plain_dot(weight, x**2), mixed], [mixed, weight.sum()]])
    gradient = np.array([plain_dot(residual, x), residual.sum()])
    return np.linalg.solve(curvature, gradient)


def _loss(line: Array, x: Array, target: Array, count: Array) -> float:
    odds = line[0] * x + line[1]
    softplus = np.maximum(odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))
    return plain_dot(count, softplus) - plain_dot(target, odds)
