"""Rows that may be the best, and the intervals of their differences from the best.

A row is left out exactly when the interval of its difference from the best row does not
hold 0. Of two rows this is the interval of that difference. Of more rows it allows for
their number: its quantile is that of the largest studentised difference which any two
of the rows that are left show if all are equal. The worst row is asked first; when it
is left out, the others are asked with the quantile of fewer rows (Hansen, Lunde &
Nason, 2011).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qualms.arrays import Array
from qualms.inference._seeds import SeedDraws

UNLIMITED = 1e9
"""Degrees of freedom of a variance that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSet:
    """The rows that cannot be told apart from the best."""

    best: str
    """The row with the best value; empty where no value is defined."""
    members: tuple[str, ...]
    """`best` and its equals, in the order of the table."""
    p: Mapping[str, float]
    """Largest level of error at which a row leaves; 1 for the best, nan where the value
    is undefined."""
    eliminated: tuple[str, ...]
    """Rows that left, the first to leave first."""
    reason: str = ""
    """Reason for comparing nothing, in which case all rows are members; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullDraws:
    """Noise of rows that are all equal, in replicates."""

    noise: Array
    """(B, K) due to the items, around 0."""
    items: Array
    """(K, K) variance of each difference due to the items."""
    freedom: float = UNLIMITED
    """Degrees of freedom of `items`."""
    seeds: SeedDraws | None = None

    def scores(self, row: int, others: Sequence[int]) -> Array:
        """Return the score (B, ...) of each difference of a row from `others`."""
        places = list(others)
        gap = self.noise[:, places] - self.noise[:, row, None]
        variance = np.broadcast_to(self.items[row, places], gap.shape)
        left = variance**2 / self.freedom
        if self.seeds is not None:
            noise, own, open_to, _ = self.seeds
            gap = gap + noise[:, places] - noise[:, row, None]
            variance = variance + own[:, places] + own[:, row, None]
            left = left + open_to[:, places] + open_to[:, row, None]
        return normal_score(np.abs(gap), variance, left)


def normal_score(gap: Array, variance: Array, left: Array) -> Array:
    """Return how many normal standard errors are as rare as a studentised difference.

    `left` is the variance's square over its degrees of freedom (Satterthwaite). Wallace
    (1959); differences of unlike degrees of freedom are compared by this score. It is
    0 where a difference never varies.
    """
    known = variance > 0.0
    some = np.where(known, variance, 1.0)
    freedom = some**2 / np.maximum(left, some**2 / UNLIMITED)
    score = np.sqrt(freedom * np.log1p(gap**2 / some / freedom))
    score *= (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    return np.where(known, score, 0.0)


def student_of(score: float, freedom: float) -> float:
    """Return the studentised difference that has this normal score.

    >>> gap, variance, left = np.array([2.5]), np.array([1.0]), np.array([0.25])
    >>> round(student_of(float(normal_score(gap, variance, left)[0]), 4.0), 6)
    2.5
    """
    freedom = min(freedom, UNLIMITED)
    square = (score * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)) ** 2 / freedom
    return math.sqrt(freedom * math.expm1(min(square, 600.0)))


class Elimination(NamedTuple):
    """Which rows are left out, and the quantiles of their intervals."""

    left_out: tuple[int, ...]
    """The first to leave first."""
    p: Array
    """(K,) smallest level of error at which each row leaves; 1 for the best."""
    limit: Array
    """(K,) normal score at the ends of the interval of each row."""


def step_down(score: Array, best: int, draws: NullDraws, level: float) -> Elimination:
    """Leave out rows (K,) by the `score` of their difference from the best row."""
    rows = len(score)
    order = sorted(range(rows), key=lambda row: (row != best, score[row]))
    # 1 - 0.9 falls short of 0.1 by rounding.
    replicates = len(draws.noise)
    allowed = math.floor((1.0 - level + 1e-12) * (1 + replicates)) - 1
    largest = np.zeros(replicates)
    p, limit = np.ones(rows), np.full(rows, math.inf)
    for size in range(1, rows):
        row = order[size]
        scores = draws.scores(row, order[:size])
        np.maximum(largest, scores.max(axis=1), out=largest)
        if allowed >= 0:
            place = replicates - 1 - allowed
            limit[row] = np.partition(largest, place)[place]
        p[row] = (1 + int((largest >= score[row]).sum())) / (1 + replicates)
    worst_first = order[:0:-1]
    p[worst_first] = np.maximum.accumulate(p[worst_first])
    left_out = []
    for row in worst_first:
        if not score[row] > limit[row]:
            limit[order[: order.index(row)]] = limit[row]
            break
        left_out.append(row)
    return Elimination(tuple(left_out), p, limit)


def group_of(names: Sequence[str], best: int, steps: Elimination) -> ConfidenceSet:
    """Return the rows that are left."""
    gone = tuple(names[row] for row in steps.left_out)
    return ConfidenceSet(
        best=names[best],
        members=tuple(name for name in names if name not in gone),
        p=dict(zip(names, steps.p.tolist(), strict=True)),
        eliminated=gone,
    )
