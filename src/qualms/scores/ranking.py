"""Separation of positive and negative items by a score: ROC and precision-recall.

`score` (N,) is any real number, larger meaning more positive: a probability, an
uncertainty, a distance. `positive` (N,) is boolean. Only the order of the scores
matters. Tied scores are one threshold, so item order never matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores._sums import plain_dot
from qualms.scores.arguments import by_name, flags, not_negative, vector
from qualms.scores.influence import (
    CLUSTERS_OF_SLOPES,
    Exceedance,
    Influence,
    few_of_a_kind,
    undefined,
)
from qualms.scores.ties import TIE, Ranked, descending, levels, ranked_items

__all__ = [
    "PrecisionRecallCurve",
    "RocCurve",
    "auprc",
    "auroc",
    "average_precision",
    "fpr_at_tpr",
    "precision_recall_curve",
    "roc_curve",
    "weighted_auroc",
]

REACH = 3.0
"""Distance of the thresholds for a slope, in standard errors of a threshold's rank."""
ONE_KIND = "there must be items of both kinds, positive and negative"


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


def _threshold_change(level: Array, truth: Flags, tpr: float, rate: float) -> Array:
    """Return the change (N,) of the false positive rate due to each item.

    A negative item is counted or not; a positive one moves the threshold, and the rate
    changes by the slope between thresholds a little below and above.
    """
    positive_levels = np.sort(level[truth])[::-1]
    negative_levels = np.sort(level[~truth])
    positives = len(positive_levels)
    rank = max(math.ceil(tpr * positives * (1.0 - 1e-12)), 1)
    reach = max(math.ceil(REACH * math.sqrt(positives * tpr * (1.0 - tpr))), 1)
    first, last = max(rank - reach, 1), min(rank + reach, positives)
    rates = 1.0 - np.searchsorted(
        negative_levels, positive_levels[[first - 1, last - 1]]
    ) / len(negative_levels)
    slope = (rates[1] - rates[0]) / max((last - first) / positives, 1e-12)
    hit = level >= positive_levels[rank - 1]
    share = float(hit[truth].mean())
    moved: Array = (share - hit) * slope / positives
    return np.where(truth, moved, (hit - rate) / len(negative_levels))


def auroc_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """Return the AUROC by the placement of every item (DeLong et al., 1988)."""
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    return placed(values, truth.astype(np.float64), (~truth).astype(np.float64))


def weighted_auroc_influence(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Influence:
    """Return the same for items that are positive and negative by weights (N,)."""
    values = vector("score", score)
    return placed(
        values,
        vector("positive_weight", positive_weight, length=len(values)),
        vector("negative_weight", negative_weight, length=len(values)),
    )


def auprc_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """Return the area under precision against recall, by trapezoids."""
    return _precision_area(score, positive, trapezoid=True)


def average_precision_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """Return the area under precision against recall, by steps."""
    return _precision_area(score, positive, trapezoid=False)


def fpr_at_tpr_influence(
    score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95
) -> Influence:
    """Return the influence on the false positive rate where a share `tpr` is found."""
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    if truth.all() or not truth.any():
        return undefined(ONE_KIND)
    rank = ranked_items(values)
    # Levels instead of values: tied items pass a threshold together.
    level = levels(rank).astype(np.float64)
    value = fpr_at_tpr(score=values, positive=truth, tpr=tpr)
    return Influence(
        value=value,
        values=_threshold_change(level, truth, tpr, value),
        scale="share",
        part=truth.astype(np.int64),
        construction=Exceedance(level, truth, tpr),
    )


@as_score(label="AUROC", better="higher", influence=auroc_influence)
@by_name
def auroc(*, score: ArrayLike, positive: ArrayLike) -> float:
    """Return probability that a positive outscores a negative (Mann & Whitney, 1947).

    Ties count one half. Undefined, nan, with positives or negatives only.

    >>> auroc(score=[0.1, 0.4, 0.35, 0.8], positive=[False, False, True, True])
    0.75
    """
    return auroc_by_rule(score, positive)


@as_score(label="Weighted AUROC", better="higher", influence=weighted_auroc_influence)
@by_name
def weighted_auroc(
    *, score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> float:
    """Return the AUROC of items that are positive and negative by weights (N,), >= 0.

    Equals `auroc` of a set in which every item is repeated according to its weights, so
    items may also be partly positive. Undefined, nan, if either kind has no weight.

    >>> weighted_auroc(
    ...     score=[0.1, 0.4, 0.8],
    ...     positive_weight=[0.0, 1.0, 2.0],
    ...     negative_weight=[2.0, 1.0, 0.0],
    ... )
    0.9444444444444444
    """
    values = vector("score", score)
    positives = not_negative("positive_weight", positive_weight, length=len(values))
    negatives = not_negative("negative_weight", negative_weight, length=len(values))
    return _concordance(ranked_items(values), positives, negatives)


@as_score(label="AUPRC", better="higher", influence=auprc_influence)
@by_name
def auprc(*, score: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under precision against recall by trapezoids, from (0, 1) on.

    One point per distinct score (as Band et al., 2021); straight lines between points
    are optimistic, see `average_precision`. Undefined, nan, without positives; 1
    without negatives.

    >>> round(
    ...     auprc(score=[0.1, 0.4, 0.35, 0.8], positive=[False, False, True, True]), 4
    ... )
    0.7917
    """
    return auprc_by_rule(score, positive)


@as_score(label="AP", better="higher", influence=average_precision_influence)
@by_name
def average_precision(*, score: ArrayLike, positive: ArrayLike) -> float:
    """Return the precision at each distinct score, weighted by the recall gained there.

    The area under the precision-recall curve as steps (Davis & Goadrich, 2006, on why
    not straight lines). Undefined, nan, without positives.

    >>> round(
    ...     average_precision(
    ...         score=[0.1, 0.4, 0.35, 0.8], positive=[False, False, True, True]
    ...     ),
    ...     4,
    ... )
    0.8333
    """
    precision, recall, _ = precision_recall_curve(score=score, positive=positive)
    return plain_dot(np.diff(recall), precision[1:])


@as_score(label="FPR at TPR", better="lower", influence=fpr_at_tpr_influence)
@by_name
def fpr_at_tpr(*, score: ArrayLike, positive: ArrayLike, tpr: float = 0.95) -> float:
    """Return the least false positive rate of a threshold that finds a share `tpr`.

    A threshold is a score that occurs: no interpolation between them, and tied items
    pass it together. Undefined, nan, with positives or negatives only.

    >>> fpr_at_tpr(score=[0.1, 0.4, 0.35, 0.8], positive=[False, False, True, True])
    0.5
    """
    if not 0.0 < tpr <= 1.0:
        raise ValueError(f"tpr must lie in (0, 1], got {tpr}")
    curve = roc_curve(score=score, positive=positive)
    if np.isnan(curve.tpr[-1]):
        return float("nan")
    return float(curve.fpr[np.argmax(curve.tpr >= tpr)])


@by_name
def roc_curve(*, score: ArrayLike, positive: ArrayLike) -> RocCurve:
    """Return true against false positive rate at every distinct threshold.

    >>> roc_curve(score=[0.1, 0.4, 0.4], positive=[False, False, True]).tpr
    array([0., 1., 1.])
    """
    true, false, threshold = _above(score, positive, TIE)
    return RocCurve(_share(false), _share(true), threshold)


@by_name
def precision_recall_curve(
    *, score: ArrayLike, positive: ArrayLike
) -> PrecisionRecallCurve:
    """Return the precision against recall at every distinct threshold, none left out.

    >>> precision_recall_curve(
    ...     score=[0.1, 0.4, 0.4], positive=[False, False, True]
    ... ).precision
    array([1.        , 0.5       , 0.33333333])
    """
    return _precision_recall(score, positive, TIE)


def auroc_by_rule(score: ArrayLike, positive: ArrayLike, *, tie: float = TIE) -> float:
    """Return `auroc` with another tolerance for ties; 0 ties only identical values."""
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    rank = ranked_items(values, tie=tie)
    return _concordance(rank, truth.astype(np.float64), (~truth).astype(np.float64))


def auprc_by_rule(score: ArrayLike, positive: ArrayLike, *, tie: float = TIE) -> float:
    """Return `auprc` with another tolerance for ties; 0 ties only identical values."""
    precision, recall, _ = _precision_recall(score, positive, tie)
    return plain_dot(np.diff(recall), precision[1:] + precision[:-1]) / 2


class _Above(NamedTuple):
    """Numbers of items at or above each distinct threshold, descending."""

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
    """Return cumulative counts as shares of their last value; nan when that is zero."""
    return count / count[-1] if count[-1] > 0 else np.full_like(count, np.nan)


def _concordance(rank: Ranked, positives: Array, negatives: Array) -> float:
    """Return the weight of pairs in the right order, ties half, over that of all."""
    pairs = positives.sum() * negatives.sum()
    if pairs == 0.0:
        return float("nan")
    return _pairs_won(positives, negatives, *rank) / float(pairs)


@jit
def _pairs_won(positives: Array, negatives: Array, order: Index, start: Index) -> float:
    """Return the weight of pairs in the right order; tied ones count half."""
    won, part, below = 0.0, 0.0, 0.0
    for group in range(len(start) - 1):
        positive, negative = 0.0, 0.0
        for place in range(start[group], start[group + 1]):
            positive += positives[order[place]]
            negative += negatives[order[place]]
        part += positive * (below + negative / 2.0)
        below += negative
        if group % 1024 == 0:  # sums of sums lose fewer digits
            won += part
            part = 0.0
    return won + part


def placed(
    values: Array, positives: Array, negatives: Array, rank: Ranked | None = None
) -> Influence:
    """Return the AUROC of `values` (N,), from each item's rank in the other kind."""
    positive_total, negative_total = float(positives.sum()), float(negatives.sum())
    if positive_total == 0.0 or negative_total == 0.0:
        return undefined(ONE_KIND)
    smaller = min(positive_total, negative_total)
    rank = ranked_items(values) if rank is None else rank
    won, lost = _lower(negatives, *rank), _lower(positives, *rank)
    won /= negative_total
    lost /= -positive_total
    lost += 1.0
    value = float(plain_dot(positives, won) / positive_total)
    won -= value
    won *= positives
    won /= positive_total
    lost -= value
    lost *= negatives
    lost /= negative_total
    won += lost
    return Influence(
        value=value,
        values=won,
        scale="logit",
        part=(positives > negatives).astype(np.int64),
        welch=True,
        # A handful of items that happen to rank alike do not show their variance.
        inflation=1.0 + 3.0 / max(smaller - 1.0, 1.0),
        extreme=smaller,
        uncompared=few_of_a_kind(smaller),
    )


@jit
def _lower(weight: Array, order: Index, start: Index) -> Array:
    """Return (N,) the weight of the items below each one; tied ones count half."""
    lower = np.empty(len(order))
    below = 0.0
    for group in range(len(start) - 1):
        within = 0.0
        for place in range(start[group], start[group + 1]):
            within += weight[order[place]]
        for place in range(start[group], start[group + 1]):
            lower[order[place]] = below + within / 2.0
        below += within
    return lower


def _precision_area(
    score: ArrayLike, positive: ArrayLike, *, trapezoid: bool
) -> Influence:
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    weight = np.ones(len(values))
    rank = descending(ranked_items(values))
    return precision_area(truth, weight, rank, trapezoid=trapezoid)


def precision_area(
    truth: Flags, weight: Array, rank: Ranked, *, trapezoid: bool
) -> Influence:
    """Return the area of weighted items (N,); `rank` has the highest score first."""
    groups = _weights_above(truth, weight, *rank)
    positives = float(groups.true[-1])
    negatives = float(groups.everyone[-1]) - positives
    if positives == 0.0 or negatives == 0.0:
        return undefined(ONE_KIND, value=1.0 if positives else math.nan)
    area, by_true, by_count = _area_slopes(*groups, trapezoid)
    value = area / positives
    change = _changes(truth, weight, rank, value, positives, (by_true, by_count))
    return Influence(
        value=value,
        values=change,
        scale="logit",
        extreme=1.0,
        floor=_precision_floor(positives, negatives),
        fewest_clusters=CLUSTERS_OF_SLOPES,
        uncompared=few_of_a_kind(min(positives, negatives)),
    )


class _WeightsAbove(NamedTuple):
    """Weights of items by group of tied ones, the highest score first."""

    hits: Array
    """(G,) of the positive items of each group."""
    true: Array
    """(G,) of the positive items up to each group."""
    everyone: Array
    """(G,) of all items up to each group."""


@jit
def _weights_above(
    truth: Flags, weight: Array, order: Index, start: Index
) -> _WeightsAbove:
    hits, true, count = np.empty((3, len(start) - 1))
    all_hits, everyone = 0.0, 0.0
    for group in range(len(start) - 1):
        own = 0.0
        for place in range(start[group], start[group + 1]):
            item = order[place]
            everyone += weight[item]
            own += weight[item] if truth[item] else 0.0
        all_hits += own
        hits[group], true[group], count[group] = own, all_hits, everyone
    return _WeightsAbove(hits, true, count)


@jit
def _area_slopes(
    hits: Array, true: Array, count: Array, trapezoid: bool
) -> tuple[float, Array, Array]:
    """Return the area in hits, and its slopes by hits and by items of each group.

    An item counts at its own threshold and at all lower ones, so slopes are summed.
    """
    by_true, by_count = np.empty((2, len(hits)))
    area, part, own_true, own_count = 0.0, 0.0, 0.0, 0.0
    after, following = 0.0, 0.0
    for group in range(len(hits) - 1, -1, -1):
        own, items = hits[group], count[group] if count[group] > 0.0 else 1.0
        precision = true[group] / items
        if trapezoid:
            before = 1.0
            if group > 0:
                earlier = count[group - 1]
                before = true[group - 1] / (earlier if earlier > 0.0 else 1.0)
            part += own * (precision + before) / 2.0
            own_true += (before - following) / 2.0 + (own + after) / 2.0 / items
            own_count -= precision / items * (own + after) / 2.0
            if group == len(hits) - 1:
                own_true += precision / 2.0
        else:
            part += own * precision
            own_true += precision - following + own / items
            own_count -= precision / items * own
        by_true[group], by_count[group] = own_true, own_count
        after, following = own, precision
        if group % 1024 == 0:  # sums of sums lose fewer digits
            area += part
            part = 0.0
    return area, by_true, by_count


@jit
def _changes(
    truth: Flags,
    weight: Array,
    rank: Ranked,
    value: float,
    positives: float,
    slopes: tuple[Array, Array],
) -> Array:
    """Return (N,) the influence of each item, by the slopes of its group."""
    order, start = rank
    by_true, by_count = slopes
    change = np.empty(len(order))
    for group in range(len(start) - 1):
        for place in range(start[group], start[group + 1]):
            item = order[place]
            gained = by_count[group]
            if truth[item]:
                gained += by_true[group] - value
            change[item] = weight[item] * gained / positives
    return change


def _precision_floor(positives: float, negatives: float) -> Callable[[float], float]:
    """Return the worst area when all positives were above all negatives.

    Either a share of the positives lies below the negatives, or a share of the
    negatives above all positives; none was seen.
    """

    def floor(chance: float) -> float:
        missed = 1.0 - chance ** (1.0 / positives)
        above = (1.0 - chance ** (1.0 / negatives)) * negatives / positives
        return float(min(1.0 - missed, 1.0 - above * math.log1p(1.0 / above)))

    return floor
