"""Influence on scores that depend on thresholds chosen on other items.

A conformal offset and a selection threshold are order statistics of validation items.
New validation items would move them and thereby the score of the test items. The slope
is estimated from the score at order statistics a little below and above.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.scores.arguments import vector
from qualms.scores.influence import Influence, undefined


class OrderStatistic(NamedTuple):
    """The `rank`-th smallest of values (V,), counted from 1."""

    values: ArrayLike
    rank: int

    def around(self) -> tuple[float, ...]:
        """Return the statistic and its neighbours that `quantile_influence` reads."""
        ordered = _Sorted(*self)
        if self.rank > len(ordered.values):
            return ()
        return tuple(ordered.at(step) for step in (-1, 0, 1))


def quantile_influence(
    at: Callable[..., Influence], thresholds: Sequence[OrderStatistic]
) -> Influence:
    """Return influence on `at(*thresholds)` of test items and then of validation items.

    `at` gives the influence of the N test items for given thresholds; each threshold is
    an order statistic of the same V validation items. The result is about N + V items:
    `test_design.joined(validation_design)` is their design.

    >>> from qualms.inference import mean_influence
    >>> score = lambda q: mean_influence(np.array([1.0, 2.0, 3.0, 4.0]) <= q)
    >>> result = quantile_influence(score, [OrderStatistic([1.0, 2.0, 3.0, 5.0], 3)])
    >>> result.value, len(result.values)
    (0.75, 8)
    """
    ordered = [_Sorted(*threshold) for threshold in thresholds]
    if any(column.rank > len(column.values) for column in ordered):
        return undefined("the validation items are too few for the threshold")
    influence = at(*(column.at(0) for column in ordered))
    if influence.values is None:
        return influence
    change = np.zeros(len(ordered[0].values))
    for place, column in enumerate(ordered):
        moved = [
            at(*(other.at(step * (j == place)) for j, other in enumerate(ordered)))
            for step in (-1, 1)
        ]
        change += column.change(moved[1].value - moved[0].value)
    return dataclasses.replace(
        influence,
        values=np.concatenate([influence.values, change]),
        part=None,
        welch=False,
    )


class _Sorted:
    """Validation values, and the ranks on either side of a threshold's own."""

    def __init__(self, values: ArrayLike, rank: int) -> None:
        self.values = vector("values", values)
        self.ordered = np.sort(self.values)
        self.rank = rank
        items = len(self.values)
        reach = max(1, math.ceil(math.sqrt(rank * max(items - rank, 1) / items)))
        self.below, self.above = max(1, rank - reach), min(items, rank + reach)

    def at(self, step: int) -> float:
        """Return the threshold, or the one a little below or above it."""
        rank = (self.below, self.rank, self.above)[step + 1]
        return float(self.ordered[rank - 1])

    def change(self, difference: float) -> Array:
        """Return the change (V,) due to each item, from a `difference` of the score."""
        items = len(self.values)
        if self.above == self.below or not np.isfinite(difference):
            return np.zeros(items)
        slope = difference / ((self.above - self.below) / items)
        inside = self.values <= self.at(0)
        change: Array = (inside.mean() - inside) / items * slope
        return change
