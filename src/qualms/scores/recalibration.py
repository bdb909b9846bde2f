"""Recalibration of probabilities, fitted on validation items and applied to others.

Fit on the predictions of a validation split and apply to those of a test split. Draws
are averaged first, and their mean is recalibrated. Report NLL beside any calibration
error: recalibration can lower the error while losing information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Index
from qualms.scores.arguments import FLOOR, at_class, labelled, mean_probabilities
from qualms.scores.ties import ranked_items

__all__ = [
    "Binned",
    "Isotonic",
    "Linear",
    "Temperature",
    "VennAbers",
    "fit_dirichlet",
    "fit_histogram",
    "fit_isotonic",
    "fit_temperature",
    "fit_vector",
    "fit_venn_abers",
]

# On items that are all right (or all wrong) the best temperature is zero (or infinite):
# the search stops at these edges, or before, where the NLL is flat to rounding.
COLDEST, HOTTEST = 0.01, 100.0
FLAT, TOLERANCE, ROUNDS = 1e-14, 1e-10, 100
RIDGE = 1e-3
"""Penalty on squares of the weights that Dirichlet maps add to temperature's."""
VECTOR_RIDGE = 1e-6
"""Penalty that keeps the weights of a vector finite if all items are right."""
HISTOGRAM_BINS = 15
MOST_RANKS = 500
"""Most distinct probabilities for Venn-Abers; more are joined by rank."""


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
    """(K,) recalibrated probabilities."""


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
        checked = _of_classes(probs, _classes_of(len(self.maps)))
        columns = zip(_fitted_columns(checked), self.maps, strict=True)
        return _one_against_rest(
            checked, [np.interp(column, *knots) for column, knots in columns]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """A linear map of the logarithms of the probabilities, then a softmax."""

    weight: Array
    """(C, C) weight of each logarithm in each logit."""
    bias: Array
    """(C,) bias of each logit."""

    def apply(self, probs: ArrayLike) -> Array:
        """Return (N, C) recalibrated probabilities, rows summing to one."""
        checked = _of_classes(probs, len(self.bias))
        return _softmax(_logs(checked) @ self.weight.T + self.bias)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binned:
    """Maps of the class probabilities that are constant within bins."""

    edges: Array
    """(C, bins - 1) edges between the bins; one row, for P(y=1), with two classes."""
    share: Array
    """(C, bins) shares of items of the class."""

    def apply(self, probs: ArrayLike) -> Array:
        """Return (N, C) recalibrated probabilities, rows summing to one."""
        checked = _of_classes(probs, _classes_of(len(self.edges)))
        return _one_against_rest(
            checked,
            [
                share[np.searchsorted(edges, column, side="right")]
                for edges, share, column in zip(
                    self.edges, self.share, _fitted_columns(checked), strict=True
                )
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VennAbers:
    """Two isotonic maps for each class: with the item added as 0, and as 1."""

    ranks: tuple[Array, ...]
    """(K,) distinct validation probabilities of each class, ascending; of P(y=1) alone
    for two classes."""
    as_zero: tuple[Array, ...]
    """(2 K + 1,) the map at, below and between these, with the item added as 0."""
    as_one: tuple[Array, ...]

    def apply(self, probs: ArrayLike) -> Array:
        """Return (N, C) probabilities that join both maps, rows summing to one."""
        checked = _of_classes(probs, _classes_of(len(self.ranks)))
        columns = []
        for number, column in enumerate(_fitted_columns(checked)):
            place = _places(self.ranks[number], column)
            zero, one = self.as_zero[number][place], self.as_one[number][place]
            columns.append(one / (1.0 - zero + one))
        return _one_against_rest(checked, columns)


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
    fitted = _fitted_classes(checked)
    return Isotonic(maps=tuple(_knots(checked[:, k], truth == k) for k in fitted))


def fit_vector(probs: ArrayLike, target: ArrayLike) -> Linear:
    """Return the scale and shift of each class that minimise the NLL (Guo, 2017).

    The logarithm of each probability has a weight and a bias of its own (Guo et al.,
    2017). `probs` are as in `fit_temperature`.

    >>> fit = fit_vector([0.9] * 4 + [0.2] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> fit.apply([0.9]).round(3)
    array([[0.25, 0.75]])
    """
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    mask = np.eye(classes, dtype=np.bool_)
    return _fitted_linear(checked, truth, mask, VECTOR_RIDGE)


def fit_dirichlet(probs: ArrayLike, target: ArrayLike) -> Linear:
    """Return the linear map of log probabilities with the smallest NLL (Kull, 2019).

    Every class may depend on the probability of every other (Kull et al., 2019). The
    squares of biases, and of how far weights are from one temperature for all, cost
    0.001 of NLL each, so that few items do not decide many weights.

    >>> fit = fit_dirichlet([0.9] * 400 + [0.2] * 400, [1, 1, 1, 0] * 100 + [0] * 400)
    >>> bool(fit.apply([0.9])[0, 1] < 0.8)
    True
    """
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    mask = np.ones((classes, classes), np.bool_)
    return _fitted_linear(checked, truth, mask, RIDGE)


def fit_histogram(
    probs: ArrayLike, target: ArrayLike, *, bins: int = HISTOGRAM_BINS
) -> Binned:
    """Return the shares of each class in bins of its probability (Zadrozny, 2001).

    Bins hold equally many items, but for ties. Two classes: bins of P(y=1). More: bins
    of each class against the rest, then renormalised. A bin with few items has one item
    more of each kind (Laplace), so that no probability is 0 or 1.

    >>> fit = fit_histogram([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0], bins=2)
    >>> fit.apply([0.3, 0.9])
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    checked, truth = labelled(probs, target)
    classes = _fitted_classes(checked)
    edges, shares = [], []
    for number, column in zip(classes, _fitted_columns(checked), strict=True):
        cuts = np.quantile(column, np.arange(1, bins) / bins, method="higher")
        place = np.searchsorted(cuts, column, side="right")
        count = np.bincount(place, minlength=bins)
        hits = np.bincount(place, truth == number, minlength=bins)
        edges.append(cuts)
        shares.append((hits + 1.0) / (count + 2.0))
    return Binned(edges=np.array(edges), share=np.array(shares))


def fit_venn_abers(probs: ArrayLike, target: ArrayLike) -> VennAbers:
    """Return inductive Venn-Abers predictors (Vovk et al., 2015).

    Isotonic regression with the new item added, once as 0 and once as 1, gives two
    probabilities p0 and p1, one of which is calibrated whatever the population. They
    become p1 / (1 - p0 + p1). More than two classes: each against the rest, then
    renormalised. More than 500 distinct probabilities are joined by rank.

    >>> fit = fit_venn_abers([0.1, 0.6, 0.7, 0.8], [0, 1, 0, 1])
    >>> fit.apply([0.65]).round(4)
    array([[0.5, 0.5]])
    """
    checked, truth = labelled(probs, target)
    ranks, zeros, ones = [], [], []
    classes = _fitted_classes(checked)
    for number, column in zip(classes, _fitted_columns(checked), strict=True):
        levels, place = _joined_ranks(column)
        count = np.bincount(place, minlength=len(levels)).astype(np.float64)
        hits = np.zeros(len(levels))
        np.add.at(hits, place, truth == number)
        ranks.append(levels)
        zeros.append(_with_added(hits, count, 0.0))
        ones.append(_with_added(hits, count, 1.0))
    return VennAbers(ranks=tuple(ranks), as_zero=tuple(zeros), as_one=tuple(ones))


def _fitted_linear(
    probs: Array, truth: Index, mask: NDArray[np.bool_], ridge: float
) -> Linear:
    """Return the map with the smallest penalised NLL; weights outside `mask` are 0."""
    from scipy.optimize import minimize

    logs, classes = _logs(probs), probs.shape[1]
    start = 1.0 / fit_temperature(probs, truth).value
    rows, columns = np.nonzero(mask)
    diagonal = (rows == columns).astype(np.float64)
    hot = np.zeros_like(logs)
    hot[np.arange(len(truth)), truth] = 1.0

    def loss(parameters: Array) -> tuple[float, Array]:
        weight, bias = np.zeros(mask.shape), parameters[len(rows) :]
        weight[rows, columns] = parameters[: len(rows)]
        logits = logs @ weight.T + bias
        chance = _softmax(logits)
        nll = -np.log(np.maximum(at_class(chance, truth), 1e-300)).mean()
        away = parameters.copy()
        away[: len(rows)] -= start * diagonal
        slope = (chance - hot) / len(truth)
        gradient = np.concatenate([(slope.T @ logs)[rows, columns], slope.sum(axis=0)])
        return float(nll + ridge * away @ away), gradient + 2.0 * ridge * away

    first = np.concatenate([start * diagonal, np.zeros(classes)])
    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-9}
    solution = minimize(loss, first, jac=True, method="L-BFGS-B", options=options).x
    weight = np.zeros(mask.shape)
    weight[rows, columns] = solution[: len(rows)]
    return Linear(weight=weight, bias=solution[len(rows) :])


def _joined_ranks(values: Array) -> tuple[Array, Index]:
    """Return the distinct values (K,), at most `MOST_RANKS`, and the place of each."""
    levels = np.unique(values)
    if len(levels) > MOST_RANKS:
        cuts = np.arange(MOST_RANKS) / MOST_RANKS
        levels = np.unique(np.quantile(values, cuts, method="lower"))
    place = np.searchsorted(levels, values, side="right") - 1
    return levels, place.astype(np.int64)


def _with_added(hits: Array, count: Array, added: float) -> Array:
    """Return the isotonic values (2 K + 1,) of an item that is added at each place.

    Even places lie between levels, odd places at a level.
    """
    from scipy.optimize import isotonic_regression

    levels = len(count)
    value = np.empty(2 * levels + 1)
    for place in range(2 * levels + 1):
        level = place // 2
        if place % 2:
            more, sizes = hits.copy(), count.copy()
            more[level] += added
            sizes[level] += 1.0
        else:
            more = np.insert(hits, level, added)
            sizes = np.insert(count, level, 1.0)
        fitted = isotonic_regression(more / sizes, weights=sizes).x
        value[place] = fitted[level]
    return value


def _places(levels: Array, values: Array) -> Index:
    """Return the place (N,) of each value among levels and the gaps between them."""
    below = np.searchsorted(levels, values, side="left")
    at = np.searchsorted(levels, values, side="right") > below
    return (2 * below + at).astype(np.int64)


def _classes_of(maps: int) -> int:
    return 2 if maps == 1 else maps


def _fitted_classes(probs: Array) -> list[int]:
    """Return the classes with a map: all, but of two classes only class 1."""
    return [1] if probs.shape[1] == 2 else list(range(probs.shape[1]))


def _fitted_columns(probs: Array) -> list[Array]:
    return [np.ascontiguousarray(probs[:, k]) for k in _fitted_classes(probs)]


def _of_classes(probs: ArrayLike, classes: int) -> Array:
    checked = mean_probabilities(probs)
    if checked.shape[1] != classes:
        raise ValueError(
            f"probs must have the {classes} classes of the fit, got {checked.shape[1]}"
        )
    return checked


def _one_against_rest(probs: Array, mapped: Sequence[Array]) -> Array:
    """Return probabilities (N, C) from the maps of classes, renormalised."""
    if probs.shape[1] == 2:
        return np.stack([1.0 - mapped[0], mapped[0]], axis=1)
    joined = np.stack(mapped, axis=1)
    joined[~joined.any(axis=1)] = 1.0
    total: Array = joined.sum(axis=1, keepdims=True)
    return joined / total


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
