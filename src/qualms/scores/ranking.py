"""How well a score separates the positive items from the negative ones.

`score` (N,) is any real number, larger meaning more positive: a probability, an
uncertainty, a distance. `positive` (N,) is boolean. Only the order of the scores
matters. Tied scores are one threshold, taken whole, so item order never matters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.scores._about import as_score
from qualms.scores._arrays import flags, not_negative, vector
from qualms.scores._sums import plain_dot
from qualms.scores.resampling import (
    Cells,
    Copies,
    Plan,
    concordance,
    precision_areas,
    ranked_cells,
    share,
)
from qualms.scores.ties import TIE, Ranked, ranked_items


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


def auroc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auroc` of `score` (N,) for `positive` (N,)."""
    truth = flags("positive", positive)
    return weighted_auroc_plan(score, truth, ~truth)


def weighted_auroc_plan(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Plan:
    """`weighted_auroc`: items are positive and negative by a share, all (N,)."""
    values = vector("score", score)
    cells = _descending(
        values,
        not_negative("positive_weight", positive_weight, length=len(values)),
        not_negative("negative_weight", negative_weight, length=len(values)),
    )

    def value(copies: Copies) -> Array:
        return concordance(copies.within(cells), cells.last, *cells.carried)

    return Plan(len(values), value)


def auprc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auprc` of `score` (N,) for `positive` items, by trapezoids."""
    return _precision_plan(score, positive, trapezoid=True)


def average_precision_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`average_precision` of `score` (N,) for `positive` items, by steps."""
    return _precision_plan(score, positive, trapezoid=False)


def fpr_at_tpr_plan(
    score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95
) -> Plan:
    """`fpr_at_tpr` of `score` (N,) for `positive` (N,)."""
    if not 0.0 < tpr <= 1.0:
        raise ValueError(f"tpr must lie in (0, 1], got {tpr}")
    cells = _detected(score, positive)
    true, false = cells.carried

    def value(copies: Copies) -> Array:
        counts = copies.within(cells)
        found = np.cumsum(counts * true, axis=1)[:, cells.last]
        passed = np.cumsum(counts * false, axis=1)[:, cells.last]
        enough = found / np.maximum(found[:, -1:], 1.0) >= tpr
        false_there = passed[np.arange(len(passed)), enough.argmax(axis=1)]
        return share(false_there, passed[:, -1] * (found[:, -1] > 0.0))

    return Plan(len(cells.cell), value)


@as_score(label="AUROC", better="higher", plan=auroc_plan)
def auroc(score: ArrayLike, positive: ArrayLike) -> float:
    """Probability that a positive outscores a negative (Mann & Whitney, 1947).

    Ties count one half. Undefined, nan, with positives or negatives only.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    return auroc_by_rule(score, positive)


@as_score(label="Weighted AUROC", better="higher", plan=weighted_auroc_plan)
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
    positives = not_negative("positive_weight", positive_weight, length=len(values))
    negatives = not_negative("negative_weight", negative_weight, length=len(values))
    return _concordance(ranked_items(values), positives, negatives)


@as_score(label="AUPRC", better="higher", plan=auprc_plan)
def auprc(score: ArrayLike, positive: ArrayLike) -> float:
    """Area under the precision-recall curve by trapezoids, from recall 0, precision 1.

    One point per distinct score (as Band et al., 2021); straight lines between points
    are optimistic, see `average_precision`. Undefined, nan, without positives; 1
    without negatives.

    >>> round(auprc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]), 4)
    0.7917
    """
    return auprc_by_rule(score, positive)


@as_score(label="AP", better="higher", plan=average_precision_plan)
def average_precision(score: ArrayLike, positive: ArrayLike) -> float:
    """Precision at each distinct score, weighted by the recall gained there.

    The area under the precision-recall curve as steps (Davis & Goadrich, 2006, on why
    not straight lines). Undefined, nan, without positives.

    >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [False, False, True, True]), 4)
    0.8333
    """
    precision, recall, _ = precision_recall_curve(score, positive)
    return plain_dot(np.diff(recall), precision[1:])


@as_score(label="FPR at TPR", better="lower", plan=fpr_at_tpr_plan)
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
    true, false, threshold = _above(score, positive, TIE)
    return RocCurve(_share(false), _share(true), threshold)


def precision_recall_curve(
    score: ArrayLike, positive: ArrayLike
) -> PrecisionRecallCurve:
    """Precision against recall at every distinct threshold, none left out.

    >>> precision_recall_curve([0.1, 0.4, 0.4], [False, False, True]).precision
    array([1.        , 0.5       , 0.33333333])
    """
    return _precision_recall(score, positive, TIE)


def auroc_by_rule(score: ArrayLike, positive: ArrayLike, *, tie: float = TIE) -> float:
    """`auroc` with another rule for ties; 0 ties what is equal to the last bit."""
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    rank = ranked_items(values, tie=tie)
    return _concordance(rank, truth.astype(np.float64), (~truth).astype(np.float64))


def auprc_by_rule(score: ArrayLike, positive: ArrayLike, *, tie: float = TIE) -> float:
    """`auprc` with another rule for ties; 0 ties what is equal to the last bit."""
    precision, recall, _ = _precision_recall(score, positive, tie)
    return plain_dot(np.diff(recall), precision[1:] + precision[:-1]) / 2


def _precision_plan(score: ArrayLike, positive: ArrayLike, *, trapezoid: bool) -> Plan:
    cells = _detected(score, positive)
    hit, _ = cells.carried

    def areas(copies: Copies) -> Array:
        return precision_areas(copies.within(cells), cells.last, hit)

    def value(copies: Copies) -> Array:
        both = copies.shared((cells, "precision"), lambda: areas(copies))
        area: Array = both[0 if trapezoid else 1]
        return area

    return Plan(len(cells.cell), value)


def _detected(score: ArrayLike, positive: ArrayLike) -> Cells:
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    return _descending(values, truth.astype(np.float64), (~truth).astype(np.float64))


def _descending(score: Array, positive: Array, negative: Array) -> Cells:
    """Cells of what counts as positive and negative, the highest score first."""
    # Between two positives the order of the negatives changes nothing.
    return ranked_cells(-score, positive, negative, alike=positive == 0.0)


class _Above(NamedTuple):
    """How many items lie at or above each distinct threshold, descending."""

    true: Array
    false: Array
    threshold: Array


def _precision_recall(
    score: ArrayLike, positive: ArrayLike, tie: float
) -> PrecisionRecallCurve:
    true, false, threshold = _above(score, positive, tie)
    precision = np.ones_like(true)
    precision[1:] = true[1:] / (true[1:] + false[1:])
    return PrecisionRecallCurve(precision, _share(true), threshold)


def _above(score: ArrayLike, positive: ArrayLike, tie: float) -> _Above:
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    order, start = ranked_items(values, tie=tie)
    below = np.concatenate([[0], np.cumsum(truth[order])])[start]
    true = (below[-1] - below)[::-1].astype(np.float64)
    everyone = (len(values) - start)[::-1]
    threshold = np.concatenate([[np.inf], values[order[start[:-1]]][::-1]])
    return _Above(true, everyone - true, threshold)


def _share(count: Array) -> Array:
    """Cumulative counts as shares of their last value; nan when that is zero."""
    return count / count[-1] if count[-1] > 0 else np.full_like(count, np.nan)


def _concordance(rank: Ranked, positives: Array, negatives: Array) -> float:
    """Weight of the pairs in the right order, ties one half, over that of all pairs."""
    pairs = positives.sum() * negatives.sum()
    if pairs == 0.0:
        return float("nan")
    order, start = rank
    positive = np.add.reduceat(positives[order], start[:-1])
    negative = np.add.reduceat(negatives[order], start[:-1])
    below = np.cumsum(negative) - negative / 2
    return float(plain_dot(positive, below) / pairs)
