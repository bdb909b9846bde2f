"""Human alignment: are items that people disagree on less certain?"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from qualms.arrays import Array
from qualms.scores._about import as_score
from qualms.scores._arrays import matrix, vector
from qualms.scores._sums import plain_dot
from qualms.scores.ties import TIE, ranked_items


class Alignment(NamedTuple):
    """Rank correlation with human uncertainty, and how many items had no votes."""

    value: float
    dropped: int


@as_score(label="human alignment", better="higher", low=-1.0)
def human_alignment(uncertainty: ArrayLike, votes: ArrayLike) -> Alignment:
    """Spearman correlation of uncertainty (N,) with the entropy of votes (N, K).

    Ties get their average rank. Items nobody voted on are dropped and counted. nan
    where fewer than two items are left, or one side is constant.

    >>> human_alignment([0.1, 0.5, 0.9, 0.3], [[4, 0], [3, 1], [2, 2], [0, 0]])
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
    """Entropy (N,) in nats of the vote counts (N, K) of each item; nan without votes.

    >>> vote_entropy([[2, 2], [4, 0], [0, 0]])
    array([0.69314718, 0.        ,        nan])
    """
    # Sorted, the same counts in another order give the same bits: ties stay ties.
    counts = np.sort(matrix("votes", votes), axis=1)
    if counts.min() < 0:
        row = int(np.flatnonzero(counts.min(axis=1) < 0)[0])
        raise ValueError(f"votes must not be negative, row {row} is {counts[row, 0]:g}")
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    entropy: Array = np.abs(xlogy(share, share).sum(axis=1))
    return entropy


def spearman(first: Array, second: Array, *, tie: float = TIE) -> float:
    """Rank correlation of two vectors (N,), ties at their average rank, or nan.

    `tie` is the share of their size by which tied values may differ.

    >>> spearman(np.array([1.0, 2.0, 2.0]), np.array([3.0, 5.0, 5.0]))
    1.0
    """
    if len(first) < 2:
        return math.nan
    one, other = (_average_rank(values, tie) for values in (first, second))
    one -= one.mean()
    other -= other.mean()
    scale = math.sqrt(plain_dot(one, one) * plain_dot(other, other))
    if scale == 0:
        return math.nan
    return min(1.0, max(-1.0, plain_dot(one, other) / scale))


def _average_rank(values: Array, tie: float) -> Array:
    order, start = ranked_items(values, tie=tie)
    rank = np.empty(len(values))
    rank[order] = np.repeat((start[:-1] + start[1:]) / 2, np.diff(start))
    return rank
