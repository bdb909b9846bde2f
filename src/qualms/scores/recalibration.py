"""Recalibration of probabilities, fitted on validation items and applied to others.

Fit on the predictions of a validation split and apply to those of a test split. Draws
are averaged first, and their mean is recalibrated. Report NLL beside any calibration
error: recalibration can lower the error while losing information.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.scores.arguments import FLOOR, at_class, labelled, mean_probabilities
from qualms.scores.ties import ranked_items

__all__ = [
    "Isotonic",
    "Temperature",
    "fit_isotonic",
    "fit_temperature",
]

# On items that are all right (or all wrong) the best temperature is zero (or infinite):
# the search stops at these edges, or before, where the NLL is flat to rounding.
COLDEST, HOTTEST = 0.01, 100.0
FLAT, TOLERANCE, ROUNDS = 1e-14, 1e-10, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """One number that sharpens (below 1) or flattens (above 1) every prediction."""

    value: float

    def apply(self, probs: ArrayLike) -> Array:
        """Return (N, C) probabilities raised to the power 1 / value and renormalised.

        >>> Temperature(value=2.0).apply([0.9]).round(4)
        array([[0.25, 0.75]])
        """
        return _softmax(_logs(mean_probabilities(probs)) / self.value)


class Knots(NamedTuple):
    """A non-decreasing function: straight lines between knots, constant outside."""

    x: Array
    """(K,) distinct predicted probabilities, ascending."""
    y: Array
    """(K,) what they become."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isotonic:
    """Non-decreasing maps of the class probabilities."""

    maps: tuple[Knots, ...]
    """One per class; for two classes only that of P(y=1)."""

    def apply(self, probs: ArrayLike) -> Array:
        """Return (N, C) recalibrated probabilities, rows summing to one.

        With more than two classes the maps of the single classes are renormalised; a
        row that every map sends to zero becomes uniform.
        """
        checked = mean_probabilities(probs)
        classes = 2 if len(self.maps) == 1 else len(self.maps)
        if checked.shape[1] != classes:
            raise ValueError(
                f"probs must have the {classes} classes of the fit, "
                f"got {checked.shape[1]}"
            )
        if classes == 2:
            yes = np.interp(checked[:, 1], *self.maps[0])
            return np.stack([1.0 - yes, yes], axis=1)
        mapped = np.stack(
            [np.interp(checked[:, k], *knots) for k, knots in enumerate(self.maps)],
            axis=1,
        )
        mapped[~mapped.any(axis=1)] = 1.0
        total: Array = mapped.sum(axis=1, keepdims=True)
        return mapped / total


def fit_temperature(probs: ArrayLike, target: ArrayLike) -> Temperature:
    """Return the temperature with the smallest NLL on these items (Guo et al., 2017).

    `probs` is P(y=1) of shape (N,), class probabilities (N, C) or draws (M, N, C);
    their logarithms, floored at log 1e-15, stand in for the logits, which differ from
    them by a constant per item only. The NLL is convex in 1 / temperature, so the
    minimum is unique; it is sought between 0.01 and 100.

    >>> round(fit_temperature([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0]).value, 4)
    2.0
    """
    checked, truth = labelled(probs, target)
    logs = _logs(checked)
    low, high = 1.0 / HOTTEST, 1.0 / COLDEST
    sharpness = 1.0
    for _ in range(ROUNDS):
        slope, curvature = _slope_of_nll(logs, truth, sharpness)
        low, high = (low, sharpness) if slope > 0.0 else (sharpness, high)
        settled = abs(slope) <= max(FLAT, TOLERANCE * curvature * sharpness)
        if settled or high - low <= TOLERANCE * high:
            break
        newton = sharpness - slope / curvature if curvature > 0.0 else low
        sharpness = newton if low < newton < high else math.sqrt(low * high)
    return Temperature(value=1.0 / sharpness)


def fit_isotonic(probs: ArrayLike, target: ArrayLike) -> Isotonic:
    """Return the best non-decreasing map of the probabilities (Zadrozny & Elkan, 2002).

    Least squares by pooling adjacent violators (SciPy's). Two classes: one map, of
    P(y=1). More: one map per class against the rest, then renormalised. The map can
    reach 0 and 1 exactly, where the NLL of a wrong item is at its floor.

    >>> fit_isotonic([0.1, 0.6, 0.7, 0.8], [0, 1, 0, 1]).apply([0.65]).round(4)
    array([[0.5, 0.5]])
    """
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    fitted = (1,) if classes == 2 else range(classes)
    return Isotonic(maps=tuple(_knots(checked[:, k], truth == k) for k in fitted))


def _logs(probs: Array) -> Array:
    return np.log(np.maximum(probs, FLOOR))


def _softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    normalised: Array = weights / weights.sum(axis=1, keepdims=True)
    return normalised


def _slope_of_nll(logs: Array, truth: Index, sharpness: float) -> tuple[float, float]:
    """Return first and second derivative of the mean NLL by the inverse temperature."""
    weights = _softmax(sharpness * logs)
    mean = np.einsum("nc,nc->n", weights, logs)
    apart = logs - mean[:, None]
    curvature = np.einsum("nc,nc,nc->n", weights, apart, apart)
    return float((mean - at_class(logs, truth)).mean()), float(curvature.mean())


def _knots(values: Array, positive: Array) -> Knots:
    from scipy.optimize import isotonic_regression

    order, start = ranked_items(values)
    size = np.diff(start)
    share = np.add.reduceat(positive[order].astype(np.float64), start[:-1]) / size
    return Knots(values[order[start[:-1]]], isotonic_regression(share, weights=size).x)
