"""Influence on the ranking scores, and on the rank correlation of two quantities.

The ranking scores are AUROC, AUPRC, average precision and FPR at a TPR.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._arrays import flags, vector
from qualms.scores._sums import plain_dot
from qualms.scores.human import vote_entropy
from qualms.scores.inference._design import Design
from qualms.scores.inference._influence import Influence, undefined
from qualms.scores.inference._shares import effective_size, wilson
from qualms.scores.ties import Ranked, descending, levels, ranked_items

ONE_SIGMA = 0.16
ONE_KIND = "there must be items of both kinds, positive and negative"


def auroc_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """AUROC by the placement of every item (DeLong et al., 1988)."""
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    return placed(values, truth.astype(np.float64), (~truth).astype(np.float64))


def weighted_auroc_influence(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Influence:
    """The same where items are positive and negative by weights (N,)."""
    values = vector("score", score)
    return placed(
        values,
        vector("positive_weight", positive_weight, length=len(values)),
        vector("negative_weight", negative_weight, length=len(values)),
    )


def placed(
    values: Array, positives: Array, negatives: Array, rank: Ranked | None = None
) -> Influence:
    """AUROC of `values`, all (N,), from the rank of each item in the other kind."""
    found, passed = float(positives.sum()), float(negatives.sum())
    if found == 0.0 or passed == 0.0:
        return undefined(ONE_KIND)
    smaller = min(found, passed)
    rank = ranked_items(values) if rank is None else rank
    below, within = _cumulated(negatives, rank)
    won = (below - within / 2) / passed
    below, within = _cumulated(positives, rank)
    lost = 1.0 - (below - within / 2) / found
    value = float(plain_dot(positives, won) / found)
    change = positives * (won - value) / found + negatives * (lost - value) / passed
    return Influence(
        value=value,
        values=change,
        scale="logit",
        part=(positives > negatives).astype(np.int64),
        welch=True,
        # A handful of items that happen to rank alike do not show how they vary.
        inflation=1.0 + 3.0 / max(smaller - 1.0, 1.0),
        extreme=smaller,
    )


def auprc_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """Area under precision against recall, by trapezoids."""
    return _precision_area(score, positive, trapezoid=True)


def average_precision_influence(score: ArrayLike, positive: ArrayLike) -> Influence:
    """Area under precision against recall, by steps."""
    return _precision_area(score, positive, trapezoid=False)


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
    """Area of items of some `weight` (N,), the highest score first in `rank`."""
    order, start = rank
    counted = weight[order]
    hits = np.add.reduceat(truth[order] * counted, start[:-1])
    true = np.cumsum(hits)
    count = np.cumsum(np.add.reduceat(counted, start[:-1]))
    positives, negatives = float(true[-1]), float(count[-1] - true[-1])
    if positives == 0.0 or negatives == 0.0:
        return undefined(ONE_KIND, value=1.0 if positives else math.nan)
    count = np.where(count > 0.0, count, 1.0)
    area, by_true, by_count = _area_slopes(hits, true / count, count, trapezoid)
    # An item counts at its own threshold and at all lower ones.
    own_true, own_count = _from_here(by_true), _from_here(by_count)
    group = np.repeat(np.arange(len(hits)), np.diff(start))
    value = area / positives
    change = np.empty(len(truth))
    gained = truth[order] * (own_true[group] - value) + own_count[group]
    change[order] = counted * gained / positives
    return Influence(
        value=value,
        values=change,
        scale="logit",
        extreme=1.0,
        floor=_precision_floor(positives, negatives),
    )


def _area_slopes(
    hits: Array, precision: Array, count: Array, trapezoid: bool
) -> tuple[float, Array, Array]:
    """Area in hits, and its slopes by hits and by items up to each threshold."""
    after, following = np.append(hits[1:], 0.0), np.append(precision[1:], 0.0)
    if not trapezoid:
        by_true = precision - following + hits / count
        return plain_dot(hits, precision), by_true, -precision / count * hits
    before = np.append(1.0, precision[:-1])
    area = plain_dot(hits, precision + before) / 2
    by_true = (before - following) / 2 + (hits + after) / 2 / count
    by_true[-1] += precision[-1] / 2
    return area, by_true, -precision / count * (hits + after) / 2


def _precision_floor(positives: float, negatives: float) -> Callable[[float], float]:
    """The worst area when all positives were above all negatives.

    Either a share of the positives lies below the negatives, or a share of the
    negatives above all positives; none was seen.
    """

    def floor(chance: float) -> float:
        missed = 1.0 - chance ** (1.0 / positives)
        above = (1.0 - chance ** (1.0 / negatives)) * negatives / positives
        return float(min(1.0 - missed, 1.0 - above * math.log1p(1.0 / above)))

    return floor


def fpr_at_tpr_influence(
    score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95
) -> Influence:
    """False positive rate at the threshold that finds a share `tpr`: by its two errors.

    The threshold is an order statistic of the positives, so its own uncertainty is
    known without any density; that of the rate at a fixed threshold is Wilson's. Both
    are combined by squares (MOVER; Zou & Donner, 2008).
    """
    values = vector("score", score)
    truth = flags("positive", positive, length=len(values))
    if truth.all() or not truth.any():
        return undefined(ONE_KIND)
    # By level rather than value: what is tied passes a threshold together.
    level = levels(ranked_items(values)).astype(np.float64)
    cut = ThresholdShare(level, truth, tpr)
    return Influence(
        value=cut.value,
        values=None,
        scale="share",
        ends=cut.ends,
        method="order statistics of the threshold and Wilson's interval, by squares",
    )


class ThresholdShare:
    """Share of one sample at or above the quantile of another."""

    def __init__(self, values: Array, truth: Flags, tpr: float) -> None:
        self.above, self.truth, self.tpr = values, truth, tpr
        self.found = np.sort(values[truth])[::-1]
        self.passed = np.sort(values[~truth])
        needed = math.ceil(tpr * len(self.found) * (1.0 - 1e-12))
        self.needed = max(needed, 1)
        self.value = self.share(self.needed)

    def share(self, rank: int) -> float:
        """Share of the others at or above the `rank`-th highest value, 1 beyond all."""
        if rank > len(self.found):
            return 1.0
        if rank < 1:
            return 0.0
        below = np.searchsorted(self.passed, self.found[rank - 1])
        return 1.0 - float(below) / len(self.passed)

    def ends(self, design: Design, level: float) -> tuple[float, float]:
        """Both errors combined; clusters make fewer effective items of each kind."""
        tail = (1.0 - level) / 2.0
        hit = self.above >= self.found[self.needed - 1]
        size = _effective(hit, self.truth, design, max(self.tpr, 0.5))
        least, most = _order_ranks(size, self.tpr, tail)
        stretch = len(self.found) / size
        low = self.share(math.floor(least * stretch))
        nearer, _ = _order_ranks(size, self.tpr, ONE_SIGMA)
        likely = self.share(math.floor(nearer * stretch))
        high = self.share(math.ceil(most * stretch))
        others = _effective(hit, ~self.truth, design, None)
        wilson_low, wilson_high = wilson(self.value, others, level)
        down = math.hypot(self.value - low, self.value - wilson_low)
        up = math.hypot(high - self.value, wilson_high - self.value)
        # With few distinct scores the rate jumps, and its error is that after the jump.
        jumped = wilson(likely, others, level)[0]
        return max(0.0, min(self.value - down, jumped)), min(1.0, self.value + up)


def _order_ranks(size: float, share: float, tail: float) -> tuple[int, int]:
    """Ranks between which the quantile lies but for `tail` on either side."""
    trials = round(size)
    count = np.arange(trials + 1)
    cumulated = bdtr(count, trials, share)
    least = int(np.searchsorted(cumulated, tail))
    most = int(np.searchsorted(cumulated, 1.0 - tail)) + 1
    return least, most


def _effective(hit: Flags, kind: Flags, design: Design, share: float | None) -> float:
    """How many independent items of this kind know their share of `hit` as well."""
    count = int(kind.sum())
    if design.cluster is None:
        return float(count)
    value = float(hit[kind].mean()) if share is None else share
    change = np.where(kind, hit - float(hit[kind].mean()), 0.0) / count
    return effective_size(value, design.spread(change, kind.astype(np.int64)), count)


def _cumulated(weight: Array, rank: Ranked) -> tuple[Array, Array]:
    """(N,) twice, in item order: weight up to and with its tie group, and of it."""
    order, start = rank
    within = np.add.reduceat(weight[order], start[:-1])
    up_to, own = np.empty(len(order)), np.empty(len(order))
    _hand_out(np.cumsum(within), order, start, up_to)
    _hand_out(within, order, start, own)
    return up_to, own


@jit
def _hand_out(of_group: Array, order: Index, start: Index, found: Array) -> None:
    """Give every item the number of its tie group."""
    for group in range(len(of_group)):
        for place in range(start[group], start[group + 1]):
            found[order[place]] = of_group[group]


def _from_here(values: Array) -> Array:
    """Sums from each place to the end."""
    found: Array = np.cumsum(values[::-1])[::-1]
    return found


def human_alignment_influence(uncertainty: ArrayLike, votes: ArrayLike) -> Influence:
    """Spearman correlation of uncertainty (N,) with the entropy of votes (N, K).

    Items without votes have no influence; how many there are counts as random.
    """
    values = vector("uncertainty", uncertainty)
    disagreement = vote_entropy(votes)
    voted = ~np.isnan(disagreement)
    found = spearman_influence(values[voted], disagreement[voted])
    if found.values is None or voted.all():
        return found
    change = np.zeros(len(values))
    change[voted] = found.values
    return Influence(
        value=found.value, values=change, scale=found.scale, low=-1.0, high=1.0
    )


def spearman_influence(first: Array, second: Array) -> Influence:
    """Rank correlation of two vectors (N,), ties at their average rank.

    An item counts by its own ranks, and by one rank that it adds to all items above it.
    """
    if len(first) < 3:
        return undefined("there must be at least three items")
    one, other = _Ranks(first), _Ranks(second)
    scale = math.sqrt(one.variance * other.variance)
    if scale == 0.0:
        return undefined("one of the two quantities is the same on every item")
    value = min(1.0, max(-1.0, float(np.mean(one.centred * other.centred)) / scale))
    joint = one.centred * other.centred
    joint = joint + one.lifted(other.centred) + other.lifted(one.centred)
    change = (joint - joint.mean()) / scale
    for ranks in (one, other):
        square = ranks.centred**2 + 2.0 * ranks.lifted(ranks.centred)
        change -= value / 2.0 * (square - square.mean()) / ranks.variance
    return Influence(
        value=value, values=change / len(first), scale="fisher", low=-1.0, high=1.0
    )


class _Ranks:
    """Average ranks over N, centred, and what one more item adds to them."""

    def __init__(self, values: Array) -> None:
        self.rank: Ranked = ranked_items(values)
        order, start = self.rank
        self.centred = np.empty(len(order))
        middle = (start[:-1] + start[1:]) / 2 / len(order) - 0.5
        self.centred[order] = np.repeat(middle, np.diff(start))
        self.variance = float(np.mean(self.centred**2))

    def lifted(self, weight: Array) -> Array:
        """(N,) mean `weight` of the items above each one, those tied with it half."""
        order, start = self.rank
        within = np.add.reduceat(weight[order], start[:-1])
        above = np.cumsum(within[::-1])[::-1] - within / 2
        found = np.empty(len(order))
        found[order] = np.repeat(above, np.diff(start)) / len(order)
        return found
