"""Calibration: is a prediction with confidence 80 % right in 80 % of the cases?

The scores compare the probability of the predicted class, the confidence, with how
often that class is right (`classwise_ece` does so for every class, so that for two
classes it is about P(y=1)). `probs` is P(y=1) of shape (N,), class probabilities (N, C)
or draws (M, N, C), which are averaged.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores.arguments import BLOCK, labelled, top_label
from qualms.scores.influence import (
    CLUSTERS_OF_GAPS,
    BinGaps,
    ClassGaps,
    Influence,
    SmoothGaps,
    undefined,
    with_rare_errors,
)
from qualms.scores.smoothing import fixed_point
from qualms.scores.ties import TIE, ranked_items

__all__ = [
    "Reliability",
    "adaptive_ece",
    "classwise_ece",
    "ece",
    "reliability",
    "smooth_ece",
]

ROUNDING = 1e-12
"""Largest gap of a bin that rounding alone may leave."""
ITEMS_PER_BIN = 30
"""Items per bin that bins of equal mass need on average."""
FEWEST_PER_BIN = 10
"""Items per bin that bins of P(y=1) need on average."""
MOST_CLASSES = 20
"""Most classes for which the class-wise error has an interval."""
TOO_WIDE = "the interval of the smooth error is too wide where items stand in clusters"
FEWEST_COMPARED = 30
FEW_GAPS = f"calibration errors of fewer than {FEWEST_COMPARED} items are not compared"
MANY_BINS = (
    f"the class-wise error of more than {MOST_CLASSES} classes has no interval: most of"
    " its bins are nearly empty"
)
NEARLY_EMPTY = (
    "class-wise errors of more than two classes are not compared: most of their bins"
    " are nearly empty"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """The points of a reliability diagram, one per bin; nan where a bin is empty."""

    confidence: Array
    """(bins,) mean confidence of the items in the bin."""
    accuracy: Array
    """(bins,) share of right items in the bin."""
    count: Index
    """(bins,) number of items in the bin."""


def _ece_influence(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Influence:
    """Return the expected calibration error in bins of equal width."""
    confidence, right = top_label(probs, target)
    cell = equal_width_bin(confidence, bins)
    gap = (right - confidence) / len(right)
    total: Array = np.bincount(cell, gap, minlength=bins).astype(np.float64)
    return _of_rare_errors(_of_gaps(BinGaps(cell, gap, total)), right, confidence)


@as_score(label="ECE", better="lower", influence=_ece_influence)
def ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Return the expected calibration error in bins of equal width (Guo et al., 2017).

    The mean over items of |accuracy - mean confidence| of their bin. Confidence c
    falls into bin floor(bins * c), c = 1 into the last.

    >>> round(ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.3333
    """
    confidence, correct = top_label(probs, target)
    index = equal_width_bin(confidence, bins)
    gap = np.bincount(index, correct - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(index))


def _adaptive_ece_influence(
    probs: ArrayLike, target: ArrayLike, *, bins: int = 15
) -> Influence:
    """Return the expected calibration error in bins of equal mass."""
    confidence, right = top_label(probs, target)
    items = len(right)
    gap = (right - confidence) / items
    order, start = ranked_items(confidence)
    cumulated = np.concatenate([[0.0], np.cumsum(gap[order])])[start]
    edges = np.linspace(0.0, items, bins + 1)
    total = np.diff(np.interp(edges, start, cumulated))
    # The edges vary with the items, too; this contribution is smaller than the error of
    # its estimate.
    cell, shares = _shared_cells(start, edges)
    cells = np.empty(items, np.int64)
    cells[order] = np.repeat(cell, np.diff(start))
    gaps = _of_gaps(BinGaps(cells, gap, total, shares=shares))
    gaps = _of_rare_errors(gaps, right, confidence)
    return _with_filled_bins(gaps, items, bins, ITEMS_PER_BIN)


def _shared_cells(start: Index, edges: Array) -> tuple[Index, Array]:
    """Return the cell (G,) of each tie group, and the bins (cells, bins) of cells.

    A group across an edge is a cell of its own, because its items belong to both bins
    in proportion.
    """
    bins = len(edges) - 1
    first = np.searchsorted(edges, start[:-1], side="right") - 1
    last = np.searchsorted(edges, start[1:], side="left") - 1
    across = np.flatnonzero(last > first)
    cell = first.copy()
    cell[across] = bins + np.arange(len(across))
    low, high = start[across, None], start[across + 1, None]
    inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    shares = np.maximum(inside, 0.0) / (high - low)
    return cell, np.concatenate([np.eye(bins), shares])


def _with_filled_bins(
    influence: Influence, items: int, bins: int, per_bin: int
) -> Influence:
    """Return `influence`, without an interval if bins are nearly empty."""
    if items >= per_bin * bins:
        return influence
    reason = f"no interval holds with fewer than {per_bin * bins} items"
    return dataclasses.replace(influence, reason=f"{reason} in {bins} bins")


@as_score(label="Adaptive ECE", better="lower", influence=_adaptive_ece_influence)
def adaptive_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Return the calibration error in bins of equal mass (Nguyen & O'Connor, 2015).

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


def _classwise_ece_influence(
    probs: ArrayLike, target: ArrayLike, *, bins: int = 15
) -> Influence:
    """Return the mean over classes of the error of that class's probability."""
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    value = classwise_ece(checked, truth, bins=bins)
    if classes > MOST_CLASSES:
        return undefined(MANY_BINS, value=value)
    if classes > 2:
        return _of_classes(value, checked, truth, bins)
    # The gap of one class is minus that of the other, except for items on an edge, so
    # the bins of class 1 are enough.
    cell = equal_width_bin(checked[:, 1], bins)
    gap = (truth - checked[:, 1]) / items
    total: Array = np.bincount(cell, gap, minlength=bins).astype(np.float64)
    mirrored = _of_gaps(BinGaps(cell, gap, total))
    mirrored = dataclasses.replace(mirrored, value=value)
    chosen = checked[:, 1] > 0.5
    confidence = np.maximum(checked[:, 1], 1.0 - checked[:, 1])
    mirrored = _of_rare_errors(mirrored, truth == chosen, confidence)
    if not isinstance(mirrored.construction, BinGaps):
        return mirrored
    return _with_filled_bins(mirrored, items, bins, FEWEST_PER_BIN)


def _of_classes(value: float, probs: Array, target: Index, bins: int) -> Influence:
    """Return the influence on the class-wise error of more than two classes."""
    classes = probs.shape[1]
    influence = Influence(
        value=value,
        values=None,
        scale="linear",
        construction=ClassGaps(probs, target, bins),
        fewest_clusters=CLUSTERS_OF_GAPS,
    )
    confidence, right = top_label(probs, target)
    stated_errors = float(1.0 - confidence.mean())

    def ends(_least: float, most: float) -> tuple[float, float]:
        # Stated and true probabilities differ by no more than both miss of the
        # predicted class, in half of the sum over classes.
        return 0.0, 2.0 / classes * min(1.0, stated_errors + most)

    bounded = with_rare_errors(influence, ~right, ends)
    return dataclasses.replace(bounded, uncompared=NEARLY_EMPTY)


def bin_by_class(probs: Array, bins: int) -> Index:
    """Return the bin of each probability (N, C), numbered over all classes."""
    return equal_width_bin(probs, bins) + bins * np.arange(probs.shape[1])


@as_score(label="Class-wise ECE", better="lower", influence=_classwise_ece_influence)
def classwise_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Return the mean over classes of the ECE of each probability (Kull et al., 2019).

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
        block, true = checked[start : start + step], truth[start : start + step]
        index = bin_by_class(block, bins)
        gap = -block
        gap[np.arange(len(true)), true] += 1.0
        per_bin += np.bincount(index.ravel(), gap.ravel(), minlength=len(per_bin))
    return float(np.abs(per_bin).sum() / (items * classes))


def _smooth_ece_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    confidence, right = top_label(probs, target)
    residual = (right - confidence) / len(right)
    influence = Influence(
        value=fixed_point(confidence, residual),
        values=None,
        scale="linear",
        construction=SmoothGaps(confidence, residual),
        clustered=TOO_WIDE,
    )
    return _of_rare_errors(influence, right, confidence)


@as_score(label="Smooth ECE", better="lower", influence=_smooth_ece_influence)
def smooth_ece(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the calibration error without bins (Blasiok & Nakkiran, 2023).

    The residual, correctness minus confidence, is smoothed along the confidence by a
    Gaussian reflected at 0 and 1, and its absolute value integrated; the bandwidth is
    the one that equals the result. Resolved to about 1e-4.

    >>> round(smooth_ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.2
    """
    confidence, correct = top_label(probs, target)
    return fixed_point(confidence, (correct - confidence) / len(correct))


def reliability(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Reliability:
    """Return the mean confidence, accuracy and count per bin, binned as in `ece`.

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
    """Return the index of the equal-width bin over [0, 1] for each value."""
    _check_bins(bins)
    # A value below an edge only by rounding belongs above it.
    return np.minimum((values * (bins * (1 + TIE))).astype(np.int64), bins - 1)


def _of_gaps(gaps: BinGaps) -> Influence:
    return Influence(
        value=float(np.abs(gaps.total).sum()),
        values=None,
        scale="linear",
        construction=_with_signs(gaps),
        fewest_clusters=CLUSTERS_OF_GAPS,
    )


def _of_rare_errors(influence: Influence, right: Flags, confidence: Array) -> Influence:
    """Return `influence`, with the interval of rare errors if few items are wrong.

    The absolute gaps of all bins add up to at least the difference between the stated
    and the true share of errors, and to at most their sum; so for right items.
    """
    stated_errors = float(1.0 - confidence.mean())

    def ends(least: float, most: float) -> tuple[float, float]:
        low = max(0.0, least - stated_errors, stated_errors - most)
        return low, min(most + stated_errors, 2.0 - least - stated_errors, 1.0)

    few = FEW_GAPS if len(right) < FEWEST_COMPARED else ""
    influence = dataclasses.replace(influence, uncompared=few)
    return with_rare_errors(influence, ~right, ends)


def _with_signs(gaps: BinGaps) -> BinGaps:
    """Return `gaps` with a positive sign for gaps that are zero up to rounding.

    Otherwise the order of the items would decide their sign.
    """
    zero = np.abs(gaps.total) <= ROUNDING
    if gaps.shares is None:
        zero &= np.bincount(gaps.cell, minlength=len(zero)) > 0
    return gaps._replace(total=np.where(zero, ROUNDING, gaps.total))


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
