"""Influence on the rank correlation of two quantities."""

import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._arrays import Array, vector
from qualms.scores.human import vote_entropy
from qualms.scores.inference._influence import Influence, undefined
from qualms.scores.ties import Ranked, ranked_items


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
