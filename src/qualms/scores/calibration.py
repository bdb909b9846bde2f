"""Calibration: is a prediction with confidence 80 % right in 80 % of the cases?

The scores compare the probability of the predicted class, the confidence, with how
often that class is right (`classwise_ece` does so for every class). `probs` is P(y=1)
of shape (N,), class probabilities (N, C) or draws (M, N, C), which are averaged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Index
from qualms.scores._about import as_score
from qualms.scores._arrays import BLOCK, flags, labelled, top_label, vector
from qualms.scores._smooth import (
    COARSE_STEPS,
    COARSE_TOLERANCE,
    crossings,
    fixed_point,
)
from qualms.scores.resampling import Copies, Plan, binned, edge_plan
from qualms.scores.ties import TIE, ranked_items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """The points of a reliability diagram, one per bin; nan where a bin is empty."""

    confidence: Array
    """(bins,) mean confidence of the items in the bin."""
    accuracy: Array
    """(bins,) share of them that is right."""
    count: Index
    """(bins,) how many they are."""


def ece_plan(confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15) -> Plan:
    """`ece` of the top label: its probability and whether it is right, both (N,)."""
    claim, gap = _claims(confidence, correct)
    return _binned_plan(
        equal_width_bin(claim, bins).astype(np.uint32)[None], gap[None], bins
    )


def classwise_ece_plan(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Plan:
    """`classwise_ece` of `probs` (N, C) for `target` (N,)."""
    claim, truth = labelled(probs, target)
    gap = np.array(claim.T, order="C")
    cell = np.empty(gap.shape, dtype=np.uint32)
    for k, row in enumerate(gap):
        cell[k] = equal_width_bin(row, bins)
        row -= truth == k
    return _binned_plan(cell, gap, bins)


def adaptive_ece_plan(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15
) -> Plan:
    """`adaptive_ece` of the top label: its probability and whether it is right."""
    claim, gap = _claims(confidence, correct)
    _check_bins(bins)

    def edges(total: Array) -> Array:
        return np.ascontiguousarray(np.linspace(0.0, total, bins + 1, axis=1))

    def value(sums: Array, edge: Array) -> Array:
        off: Array = np.abs(np.diff(sums)).sum(axis=1) / edge[:, -1]
        return off

    return edge_plan(gap, claim, edges, value)


def smooth_ece_plan(confidence: ArrayLike, correct: ArrayLike) -> Plan:
    """`smooth_ece` of the top label on a coarse grid, within 1e-4 of the score."""
    claim, gap = _claims(confidence, correct)

    scaled = claim * COARSE_STEPS
    left = np.minimum(scaled.astype(np.uint32), COARSE_STEPS - 1)
    to_right = gap * (scaled - left)
    to_left = gap - to_right

    def value(copies: Copies) -> Array:
        grid = np.zeros((len(copies.weights), COARSE_STEPS + 1))
        grid[:, :-1] += binned(copies.weights, left, to_left, COARSE_STEPS)
        grid[:, 1:] += binned(copies.weights, left, to_right, COARSE_STEPS)
        return crossings(grid / copies.total()[:, None], tolerance=COARSE_TOLERANCE)

    return Plan(len(claim), value)


def _of_top_label(plan: Callable[..., Plan]) -> Callable[..., Plan]:
    """`plan` of confidence and correctness, made from `probs` and `target`."""

    def make(probs: ArrayLike, target: ArrayLike, **options: Any) -> Plan:
        return plan(*top_label(probs, target), **options)

    return make


@as_score(label="ECE", better="lower", plan=_of_top_label(ece_plan))
def ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Expected calibration error in bins of equal width (Guo et al., 2017).

    The mean over items of |accuracy - mean confidence| of their bin. Confidence c
    falls into bin floor(bins * c), c = 1 into the last.

    >>> round(ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.3333
    """
    confidence, correct = top_label(probs, target)
    index = equal_width_bin(confidence, bins)
    gap = np.bincount(index, correct - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(index))


@as_score(label="Adaptive ECE", better="lower", plan=_of_top_label(adaptive_ece_plan))
def adaptive_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Expected calibration error in bins of equal mass (Nguyen & O'Connor, 2015).

    Each bin holds exactly N / bins items: one that lies across an edge belongs to both
    sides in proportion, and items of equal confidence are spread evenly over the bins
    they reach, so that neither item order nor repetition matters.

    >>> round(adaptive_ece([0.1, 0.9, 0.8], [0, 1, 0], bins=3), 4)
    0.3333
    """
    confidence, correct = top_label(probs, target)
    _check_bins(bins)
    order, start = ranked_items(confidence)
    gap = np.concatenate([[0.0], np.cumsum((correct - confidence)[order])])
    edges = np.linspace(0.0, len(order), bins + 1)
    return float(
        np.abs(np.diff(np.interp(edges, start, gap[start]))).sum() / len(order)
    )


@as_score(label="Class-wise ECE", better="lower", plan=classwise_ece_plan)
def classwise_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Mean over classes of the ECE of that class's probability (Kull et al., 2019).

    For class k the bins run over P(y=k), and its mean is compared with the share of
    items of class k.

    >>> round(classwise_ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.3333
    """
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    per_bin = np.zeros(bins * classes)
    step = max(1, BLOCK // classes)
    for start in range(0, items, step):
        block, own = checked[start : start + step], truth[start : start + step]
        index = equal_width_bin(block, bins) + bins * np.arange(classes)
        gap = -block
        gap[np.arange(len(own)), own] += 1.0
        per_bin += np.bincount(index.ravel(), gap.ravel(), minlength=len(per_bin))
    return float(np.abs(per_bin).sum() / (items * classes))


@as_score(label="Smooth ECE", better="lower", plan=_of_top_label(smooth_ece_plan))
def smooth_ece(probs: ArrayLike, target: ArrayLike) -> float:
    """Calibration error without bins (Blasiok & Nakkiran, 2023).

    The residual, correctness minus confidence, is smoothed along the confidence by a
    Gaussian reflected at 0 and 1, and its absolute value integrated; the bandwidth is
    the one that equals the result. Resolved to about 1e-4.

    >>> round(smooth_ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.2
    """
    confidence, correct = top_label(probs, target)
    return fixed_point(confidence, (correct - confidence) / len(correct))


def reliability(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Reliability:
    """Mean confidence, accuracy and count per bin, binned as in `ece`.

    >>> reliability([0.1, 0.9, 0.8], [0, 1, 0], bins=2).accuracy
    array([       nan, 0.66666667])
    """
    confidence, correct = top_label(probs, target)
    index = equal_width_bin(confidence, bins)
    count = np.bincount(index, minlength=bins)
    size = np.where(count > 0, count, np.nan)
    return Reliability(
        confidence=np.bincount(index, confidence, minlength=bins) / size,
        accuracy=np.bincount(index, correct, minlength=bins) / size,
        count=count,
    )


def equal_width_bin(values: Array, bins: int) -> Index:
    """Index of the equal-width bin over [0, 1] that each value falls into."""
    _check_bins(bins)
    # A value that rounding left below an edge belongs above it.
    return np.minimum((values * (bins * (1 + TIE))).astype(np.int64), bins - 1)


def _binned_plan(cell: NDArray[np.uint32], gap: Array, bins: int) -> Plan:
    """Mean over K rows of the binned absolute gap; `cell` and `gap` are (K, N)."""

    def value(copies: Copies) -> Array:
        off = np.zeros(len(copies.weights))
        for row in zip(cell, gap, strict=True):
            off += np.abs(binned(copies.weights, *row, bins)).sum(axis=1)
        return off / (len(cell) * copies.total())

    return Plan(cell.shape[1], value)


def _claims(confidence: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """Confidence (N,) and how far it lies above being right."""
    claim = vector("confidence", confidence)
    if claim.min() < 0.0 or claim.max() > 1.0:
        row = int(np.argmax((claim < 0.0) | (claim > 1.0)))
        raise ValueError(f"confidence must lie in [0, 1], row {row} is {claim[row]}")
    return claim, claim - flags("correct", correct, length=len(claim))


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
