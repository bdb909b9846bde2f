"""Does a confidence of 80 % mean right in 80 % of the cases?

The scores look at the top label: how sure the prediction is of its own class against
how often that class is right (`classwise_ece` looks at every class). `probs` is P(y=1)
of shape (N,), class probabilities (N, C) or draws (M, N, C), which are averaged.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._about import score
from qualms.scores._arrays import Array, Index
from qualms.scores._labelled import labelled, top_label
from qualms.scores._smooth import fixed_point
from qualms.scores._ties import ranked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """The points of a reliability diagram, one per bin; nan where a bin is empty."""

    confidence: Array
    """(bins,) mean confidence of the items in the bin."""
    accuracy: Array
    """(bins,) share of them that is right."""
    count: Index
    """(bins,) how many they are."""


@score(label="ECE", better="lower")
def ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Expected calibration error in bins of equal width (Guo et al., 2017).

    The mean over items of |accuracy - mean confidence| of their bin. Confidence c
    falls into bin floor(bins * c), c = 1 into the last.

    >>> round(ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.3333
    """
    confidence, correct = top_label(probs, target)
    index = _bin(confidence, bins)
    gap = np.bincount(index, correct - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(index))


@score(label="Adaptive ECE", better="lower")
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
    order, start = ranked(confidence)
    gap = np.concatenate([[0.0], np.cumsum((correct - confidence)[order])])
    edges = np.linspace(0.0, len(order), bins + 1)
    return float(
        np.abs(np.diff(np.interp(edges, start, gap[start]))).sum() / len(order)
    )


@score(label="Class-wise ECE", better="lower")
def classwise_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> float:
    """Mean over classes of the ECE of that class's probability (Kull et al., 2019).

    For class k the bins run over P(y=k), and its mean is held against the share of
    items that are of class k.

    >>> round(classwise_ece([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.3333
    """
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    index = _bin(checked, bins) + bins * np.arange(classes)
    gap = -checked
    gap[np.arange(items), truth] += 1.0
    per_bin = np.bincount(index.ravel(), gap.ravel(), minlength=bins * classes)
    return float(np.abs(per_bin).sum() / (items * classes))


@score(label="Smooth ECE", better="lower")
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
    index = _bin(confidence, bins)
    count = np.bincount(index, minlength=bins)
    size = np.where(count > 0, count, np.nan)
    return Reliability(
        confidence=np.bincount(index, confidence, minlength=bins) / size,
        accuracy=np.bincount(index, correct, minlength=bins) / size,
        count=count,
    )


def _bin(values: Array, bins: int) -> Index:
    """Index of the equal-width bin over [0, 1] that each value falls into."""
    _check_bins(bins)
    return np.minimum((values * bins).astype(np.int64), bins - 1)


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
