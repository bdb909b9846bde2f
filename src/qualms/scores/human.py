"""Human alignment: are items that people disagree on less certain?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from qualms.arrays import Array
from qualms.scores._about import as_score
from qualms.scores._sums import plain_dot
from qualms.scores.arguments import by_name, matrix, vector
from qualms.scores.influence import Influence, undefined
from qualms.scores.ties import TIE, Ranked, ranked_items

__all__ = [
    "Alignment",
    "human_alignment",
    "spearman",
    "vote_entropy",
]


class Alignment(NamedTuple):
    """Rank correlation with human uncertainty, and how many items had no votes."""

    value: float
    dropped: int


def _human_alignment_influence(uncertainty: ArrayLike, votes: ArrayLike) -> Influence:
    """Return the rank correlation of uncertainty (N,) with the entropy of votes (N, K).

    Items without votes have no influence; their number counts as random.
    """
    values = vector("uncertainty", uncertainty)
    disagreement = vote_entropy(votes)
    voted = ~np.isnan(disagreement)
    influence = spearman_influence(values[voted], disagreement[voted])
    if influence.values is None or voted.all():
        return influence
    change = np.zeros(len(values))
    change[voted] = influence.values
    return Influence(
        value=influence.value, values=change, scale=influence.scale, low=-1.0, high=1.0
    )


@as_score(
    label="human alignment",
    better="higher",
    low=-1.0,
    influence=_human_alignment_influence,
)
@by_name
def human_alignment(*, uncertainty: ArrayLike, votes: ArrayLike) -> Alignment:
    """Return the rank correlation of uncertainty (N,) with the entropy of votes (N, K).

    Ties get their average rank. Items without votes are left out and counted. nan if
    fewer than two items are left, or one side is constant.

    >>> human_alignment(
    ...     uncertainty=[0.1, 0.5, 0.9, 0.3], votes=[[4, 0], [3, 1], [2, 2], [0, 0]]
    ... )
    Alignment(value=1.0, dropped=1)
    """
    ranks = vector("uncertainty", uncertainty)
    disagreement = vote_entropy(votes)
    if len(disagreement) != len(ranks):
        raise ValueError(f"votes must have {len(ranks)} items, got {len(disagreement)}")
    voted = ~np.isnan(disagreement)
    value = spearman(ranks[voted], disagreement[voted])
    return Alignment(value, int((~voted).sum()))


def vote_entropy(votes: ArrayLike) -> Array:
    """Return the entropy (N,) in nats of vote counts (N, K); nan without votes.

    >>> vote_entropy([[2, 2], [4, 0], [0, 0]])
    array([0.69314718, 0.        ,        nan])
    """
    # Sorted, so that the same counts in another order give the same bits: ties stay.
    counts = np.sort(matrix("votes", votes), axis=1)
    if counts.min() < 0:
        row = int(np.flatnonzero(counts.min(axis=1) < 0)[0])
        raise ValueError(f"votes must not be negative, row {row} is {counts[row, 0]:g}")
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    entropy: Array = np.abs(xlogy(share, share).sum(axis=1))
    return entropy


def spearman(first: Array, second: Array, *, tie: float = TIE) -> float:
    """Return the rank correlation of two vectors (N,), ties averaged, or nan.

    `tie` is the share of their size by which tied values may differ.

    >>> spearman(np.array([1.0, 2.0, 2.0]), np.array([3.0, 5.0, 5.0]))
    1.0
    """
    if len(first) < 2:
        return math.nan
    left, right = (_average_rank(values, tie) for values in (first, second))
    left -= left.mean()
    right -= right.mean()
    scale = math.sqrt(plain_dot(left, left) * plain_dot(right, right))
    if scale == 0:
        return math.nan
    return min(1.0, max(-1.0, plain_dot(left, right) / scale))


def _average_rank(values: Array, tie: float) -> Array:
    order, start = ranked_items(values, tie=tie)
    rank = np.empty(len(values))
    rank[order] = np.repeat((start[:-1] + start[1:]) / 2, np.diff(start))
    return rank


def spearman_influence(first: Array, second: Array) -> Influence:
    """Return the influence on the rank correlation of two vectors (N,), ties averaged.

    An item contributes its own ranks, and one rank to all items above it.
    """
    if len(first) < 3:
        return undefined("there must be at least three items")
    left, right = _Ranks(first), _Ranks(second)
    scale = math.sqrt(left.variance * right.variance)
    if scale == 0.0:
        return undefined("one of the two quantities is the same on every item")
    value = min(1.0, max(-1.0, float(np.mean(left.centred * right.centred)) / scale))
    joint = left.centred * right.centred
    joint = joint + left.lifted(right.centred) + right.lifted(left.centred)
    change = (joint - joint.mean()) / scale
    for ranks in (left, right):
        square = ranks.centred**2 + 2.0 * ranks.lifted(ranks.centred)
        change -= value / 2.0 * (square - square.mean()) / ranks.variance
    return Influence(
        value=value, values=change / len(first), scale="fisher", low=-1.0, high=1.0
    )


class _Ranks:
    """Average ranks over N, centred, and the effect of one more item on them."""

    def __init__(self, values: Array) -> None:
        self.rank: Ranked = ranked_items(values)
        order, start = self.rank
        self.centred = np.empty(len(order))
        middle = (start[:-1] + start[1:]) / 2 / len(order) - 0.5
        self.centred[order] = np.repeat(middle, np.diff(start))
        self.variance = float(np.mean(self.centred**2))

    def lifted(self, weight: Array) -> Array:
        """Return the mean `weight` (N,) of items above each one, of tied ones half."""
        order, start = self.rank
        within = np.add.reduceat(weight[order], start[:-1])
        above = np.cumsum(within[::-1])[::-1] - within / 2
        mean = np.empty(len(order))
        mean[order] = np.repeat(above, np.diff(start)) / len(order)
        return mean
