"""Were two samples drawn from the same population? Exact tests, and how far apart.

Both tests permute which sample a unit is of, so that they hold their level for any
population, with ties, and for any sizes: under the null all ways to split the units
are equally likely. Units must be independent: give one item of each cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores.arguments import vector

PERMUTATIONS = 999
"""Ways to split the units that are drawn; the smallest p-value is one in 1,000."""
# Most elements of permutations in memory at a time.
_BLOCK = 1 << 21
# Number of the random stream: data simulated with the same seed stay independent.
_STREAM = 1987
# Statistics that differ by rounding alone are tied.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSamples:
    """Result of a test of two samples: the p value and the distance."""

    p: float
    """The p value: small if samples of one population seldom differ so much."""
    distance: float
    """Between 0 and 1: the largest difference of the shares that any set of classes,
    or any range of values that is open on one side, has in the two samples."""
    by_chance: float
    """Average distance where the same units are split at random."""

    @property
    def beyond_chance(self) -> float:
        """Distance of the populations: the distance of the samples less its noise."""
        return math.sqrt(max(0.0, self.distance**2 - self.by_chance**2))


ALIKE = TwoSamples(p=1.0, distance=0.0, by_chance=0.0)


def compare_values(
    first: ArrayLike,
    second: ArrayLike,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> TwoSamples:
    """Test whether values (n,) and (m,) differ, by permutation.

    The statistic is that of Scholz and Stephens (1987, equation 7), with midranks for
    ties; it sees differences in the tails that Kolmogorov and Smirnov's does not. The
    distance is Kolmogorov and Smirnov's: the largest change of the share below any
    threshold.

    >>> compare_values([1, 2, 3, 4], [3, 4, 5, 6]).distance
    0.5
    """
    left, right = vector("first", first), vector("second", second)
    pooled = np.concatenate([left, right])
    order = np.argsort(pooled, kind="stable")
    end = np.flatnonzero(np.append(np.diff(pooled[order]) != 0.0, True))
    if len(end) == 1:
        return ALIKE
    below, sizes = (end + 1).astype(np.float64), (len(left), len(right))
    expected, weight = below * (sizes[0] / len(pooled)), _anderson_darling(below)

    def measured(count: Index) -> tuple[Array, Array]:
        apart = count - expected
        furthest = np.maximum(apart.max(axis=1), -apart.min(axis=1))
        # The middle of a tie lies between the end of the one before it and its own.
        apart[:, 1:] += apart[:, :-1].copy()
        return np.square(apart) @ weight, furthest * (1.0 / sizes[0] + 1.0 / sizes[1])

    observed = measured(np.cumsum(order < len(left), dtype=np.int64)[None, end])
    splits = _splits(*sizes, end, permutations, seed)
    return _permutation_test(observed, zip(*map(measured, splits), strict=True))


def compare_classes(
    first: ArrayLike,
    second: ArrayLike,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> TwoSamples:
    """Test whether counts (C,) of classes differ, by permutation.

    For two classes it is Pearson's chi-square test. For more, squared deviations are
    divided by the root of a class's count, not by the count: otherwise one item of a
    nearly empty class would outweigh many items of large classes.

    The distance is that in total variation: the least share of one sample that has to
    change its class to get the shares of the other.

    >>> compare_classes([4, 4], [6, 2]).distance
    0.25
    """
    left, right = _counts("first", first), _counts("second", second)
    if left.shape != right.shape:
        raise ValueError(
            f"first and second must count the same classes, got {len(left)} and "
            f"{len(right)}"
        )
    total = left + right
    if (total > 0).sum() == 1:
        return ALIKE
    left, total = left[total > 0], total[total > 0]
    sizes = int(left.sum()), int(right.sum())
    expected = total * (sizes[0] / sum(sizes))

    def measured(count: Index) -> tuple[Array, Array]:
        apart = count - expected
        moved = np.abs(apart).sum(axis=1) / 2.0
        return np.square(apart) @ total**-0.5, moved * (1 / sizes[0] + 1 / sizes[1])

    rng = np.random.default_rng((seed, _STREAM))
    splits = rng.multivariate_hypergeometric(
        total, sizes[0], size=permutations, method="marginals"
    )
    return _permutation_test(
        measured(left[None]), ((part,) for part in measured(splits))
    )


def holm(p: ArrayLike) -> Array:
    """Return p-values (K,) that may be compared with one level for all (Holm, 1979).

    >>> holm([0.01, 0.04]).tolist()
    [0.02, 0.04]
    """
    values = vector("p", p)
    order = np.argsort(values)
    times = np.arange(len(values), 0, -1)
    grown = np.minimum(1.0, np.maximum.accumulate(values[order] * times))
    adjusted = np.empty(len(values))
    adjusted[order] = grown
    return adjusted


def _permutation_test(
    observed: tuple[Array, Array], splits: Iterable[tuple[Array, ...]]
) -> TwoSamples:
    """Return the observed statistic and distance compared with random splits."""
    statistics, distances = (np.concatenate(parts) for parts in splits)
    as_large = int((statistics >= observed[0][0] * (1.0 - _ROUNDING)).sum())
    return TwoSamples(
        p=(1 + as_large) / (1 + len(statistics)),
        distance=float(observed[1][0]),
        by_chance=float(distances.mean()),
    )


def _anderson_darling(below: Array) -> Array:
    """Return (L,) weights of squared deviations at the middle of each of L ties.

    `below` is how many of all units lie at or below each value.
    """
    tied = np.diff(below, prepend=0.0)
    middle, units = below - tied / 2.0, below[-1]
    weight: Array = tied / (middle * (units - middle) - units * tied / 4.0)
    return weight


def _splits(
    size: int, rest: int, end: Index, permutations: int, seed: int
) -> Iterator[Index]:
    """Yield counts (B, L) up to each end, of random choices of `size` units."""
    rng = np.random.default_rng((seed, _STREAM))
    chosen = np.arange(size + rest) < size
    step = max(1, _BLOCK // len(chosen))
    for start in range(0, permutations, step):
        yield _random_counts(rng, chosen, min(step, permutations - start), end)


def _random_counts(rng: Generator, chosen: Flags, times: int, end: Index) -> Index:
    mixed = rng.permuted(np.tile(chosen, (times, 1)), axis=1)
    return np.cumsum(mixed, axis=1, dtype=np.int64)[:, end]


def _counts(name: str, values: ArrayLike) -> Index:
    counts = np.asarray(values)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or not counts.sum():
        raise ValueError(
            f"{name} must be counts (C,) of at least one item, got {values!r:.60}"
        )
    if counts.min() < 0:
        raise ValueError(f"{name} must not be negative, got {counts.min()}")
    return counts.astype(np.int64)
