"""How well a score separates the positive items from the negative ones.

`score` (N,) is any real number, larger meaning more positive: a probability, an
uncertainty, a distance. `positive` (N,) is boolean. Only the order of the scores
matters. Equal scores are one threshold, taken whole, so item order never matters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._about import score
from qualms.scores._arrays import Array, flags, vector
from qualms.scores._ties import ranked


class RocCurve(NamedTuple):
    """One point per distinct threshold, the highest first, after the point (0, 0)."""

    fpr: Array
    """Share of the negatives at or above the threshold; nan without negatives."""
    tpr: Array
    """Share of the positives at or above the threshold; nan without positives."""
    threshold: Array
    """The distinct scores, descending, after infinity."""


class PrecisionRecallCurve(NamedTuple):
    """One point per distinct threshold, highest first, after recall 0, precision 1."""

    precision: Array
    """Share of positives among the items at or above the threshold."""
    recall: Array
    """Share of the positives at or above the threshold; nan without positives."""
    threshold: Array
    """The distinct scores, descending, after infinity."""


@score(label="AUROC", better="higher")
def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Probability that a positive outscores a negative (Mann & Whitney, 1947).

    Ties count one half. Undefined, nan, with positives or negatives only.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    return _area(values, truth.astype(np.float64), (~truth).astype(np.float64))


@score(label="Weighted AUROC", better="higher")
def weighted_auroc(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> float:
    """AUROC when each item is positive and negative by a weight (both (N,), >= 0).

    Equals `auroc` of a set in which every item is repeated as often as its weights
    say, so items may also be partly positive. Undefined, nan, when either kind has no
    weight at all.

    >>> weighted_auroc([0.1, 0.4, 0.8], [0.0, 1.0, 2.0], [2.0, 1.0, 0.0])
    0.9444444444444444
    """
    values = vector("score", score)
    positives = _weights("positive_weight", positive_weight, len(values))
    negatives = _weights("negative_weight", negative_weight, len(values))
    return _area(values, positives, negatives)


@score(label="AUPRC", better="higher")
def auprc(score: ArrayLike, positive: ArrayLike) -> float:
    """Area under the precision-recall curve by trapezoids, from recall 0, precision 1.

    One point per distinct score (as Band et al., 2021); straight lines between points
    are optimistic, see `average_precision`. Undefined, nan, without positives; 1
    without negatives.

    >>> round(auprc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]), 4)
    0.7917
    """
    precision, recall, _ = precision_recall_curve(score, positive)
    return float(np.diff(recall) @ (precision[1:] + precision[:-1]) / 2)


@score(label="AP", better="higher")
def average_precision(score: ArrayLike, positive: ArrayLike) -> float:
    """Precision at each distinct score, weighted by the recall gained there.

    The area under the precision-recall curve as steps (Davis & Goadrich, 2006, on why
    not straight lines). Undefined, nan, without positives.

    >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [False, False, True, True]), 4)
    0.8333
    """
    precision, recall, _ = precision_recall_curve(score, positive)
    return float(np.diff(recall) @ precision[1:])


@score(label="FPR at TPR", better="lower")
def fpr_at_tpr(score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95) -> float:
    """Smallest false positive rate of a threshold with true positive rate >= `tpr`.

    A threshold is a score that occurs: no interpolation between them, and tied items
    pass it together. Undefined, nan, with positives or negatives only.

    >>> fpr_at_tpr([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.5
    """
    if not 0.0 < tpr <= 1.0:
        raise ValueError(f"tpr must lie in (0, 1], got {tpr}")
    curve = roc_curve(score, positive)
    if np.isnan(curve.tpr[-1]):
        return float("nan")
    return float(curve.fpr[np.argmax(curve.tpr >= tpr)])


def roc_curve(score: ArrayLike, positive: ArrayLike) -> RocCurve:
    """True against false positive rate at every distinct threshold, none left out.

    >>> roc_curve([0.1, 0.4, 0.4], [False, False, True]).tpr
    array([0., 1., 1.])
    """
    true, false, threshold = _above(score, positive)
    return RocCurve(_share(false), _share(true), threshold)


def precision_recall_curve(
    score: ArrayLike, positive: ArrayLike
) -> PrecisionRecallCurve:
    """Precision against recall at every distinct threshold, none left out.

    >>> precision_recall_curve([0.1, 0.4, 0.4], [False, False, True]).precision
    array([1.        , 0.5       , 0.33333333])
    """
    true, false, threshold = _above(score, positive)
    precision = np.ones_like(true)
    precision[1:] = true[1:] / (true[1:] + false[1:])
    return PrecisionRecallCurve(precision, _share(true), threshold)


class _Above(NamedTuple):
    """How many items lie at or above each distinct threshold, descending."""

    true: Array
    false: Array
    threshold: Array


def _above(score: ArrayLike, positive: ArrayLike) -> _Above:
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    order, start = ranked(values)
    below = np.concatenate([[0], np.cumsum(truth[order])])[start]
    true = (below[-1] - below)[::-1].astype(np.float64)
    everyone = (len(values) - start)[::-1]
    threshold = np.concatenate([[np.inf], values[order[start[:-1]]][::-1]])
    return _Above(true, everyone - true, threshold)


def _share(count: Array) -> Array:
    """Cumulative counts as shares of their last value; nan when that is zero."""
    return count / count[-1] if count[-1] > 0 else np.full_like(count, np.nan)


def _weights(name: str, values: ArrayLike, length: int) -> Array:
    weights = vector(name, values, length=length)
    if weights.min() < 0.0:
        row = int(np.argmax(weights < 0.0))
        raise ValueError(f"{name} must not be negative, row {row} is {weights[row]}")
    return weights


def _area(values: Array, positives: Array, negatives: Array) -> float:
    """Weight of the pairs in the right order, ties one half, over that of all pairs."""
    pairs = positives.sum() * negatives.sum()
    if pairs == 0.0:
        return float("nan")
    order, start = ranked(values)
    positive = np.add.reduceat(positives[order], start[:-1])
    negative = np.add.reduceat(negatives[order], start[:-1])
    below = np.cumsum(negative) - negative / 2
    return float(positive @ below / pairs)
