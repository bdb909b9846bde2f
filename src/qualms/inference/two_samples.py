"""Were two samples drawn from the same population? Exact tests, and how far apart.

Both tests permute which sample a unit is of, so that they hold their level for any
population, with ties, and for any sizes: under the null all ways to split the units
are equally likely. Units must be independent: give one item of each cluster.
"""

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
# Places of all permutations that are held at a time.
_BLOCK = 1 << 21
# Keeps permutations apart from data that were simulated with the same seed.
_STREAM = 1987
# Statistics that differ by rounding alone are tied.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSamples:
    """Whether two samples differ by more than chance, and by how much."""

    p: float
    """Small where chance seldom makes samples of one population differ so much."""
    distance: float
    """Between 0 and 1: the largest difference of the shares that any set of classes,
    or any range of values that is open on one side, has in the two samples."""
    by_chance: float
    """How large it is on average where the same units are split at random."""

    @property
    def beyond_chance(self) -> float:
        """About how far apart the populations are: the distance less its noise."""
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
    distance is Kolmogorov and Smirnov's: how far a share below any threshold moves.

    >>> compare_values([1, 2, 3, 4], [3, 4, 5, 6]).distance
    0.5
    """
    one, other = vector("first", first), vector("second", second)
    both = np.concatenate([one, other])
    order = np.argsort(both, kind="stable")
    end = np.flatnonzero(np.append(np.diff(both[order]) != 0.0, True))
    if len(end) == 1:
        return ALIKE
    below, sizes = (end + 1).astype(np.float64), (len(one), len(other))
    expected, weight = below * (sizes[0] / len(both)), _anderson_darling(below)

    def measured(count: Index) -> tuple[Array, Array]:
        apart = count - expected
        furthest = np.maximum(apart.max(axis=1), -apart.min(axis=1))
        # The middle of a tie lies between the end of the one before it and its own.
        apart[:, 1:] += apart[:, :-1].copy()
        return np.square(apart) @ weight, furthest * (1.0 / sizes[0] + 1.0 / sizes[1])

    seen = measured(np.cumsum(order < len(one), dtype=np.int64)[None, end])
    splits = _splits(*sizes, end, permutations, seed)
    return _judged(seen, zip(*map(measured, splits), strict=True))


def compare_classes(
    first: ArrayLike,
    second: ArrayLike,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> TwoSamples:
    """Test whether counts (C,) of classes differ, by permutation.

    Of two classes it is Pearson's chi-square test. Of more, squared deviations are
    divided by the root of a class's count, not by the count: one item of a class that
    is nearly empty would else outweigh what many items of large classes say.

    The distance is that in total variation: the least share of one sample that has to
    change its class to get the shares of the other.

    >>> compare_classes([4, 4], [6, 2]).distance
    0.25
    """
    one, other = _counts("first", first), _counts("second", second)
    if one.shape != other.shape:
        raise ValueError(
            f"first and second must count the same classes, got {len(one)} and "
            f"{len(other)}"
        )
    total = one + other
    if (total > 0).sum() == 1:
        return ALIKE
    one, total = one[total > 0], total[total > 0]
    sizes = int(one.sum()), int(other.sum())
    expected = total * (sizes[0] / sum(sizes))

    def measured(count: Index) -> tuple[Array, Array]:
        apart = count - expected
        moved = np.abs(apart).sum(axis=1) / 2.0
        return np.square(apart) @ total**-0.5, moved * (1 / sizes[0] + 1 / sizes[1])

    rng = np.random.default_rng((seed, _STREAM))
    drawn = rng.multivariate_hypergeometric(
        total, sizes[0], size=permutations, method="marginals"
    )
    return _judged(measured(one[None]), ((part,) for part in measured(drawn)))


def holm(p: ArrayLike) -> Array:
    """Return p-values (K,) that may be compared with one level for all (Holm, 1979).

    >>> holm([0.01, 0.04]).tolist()
    [0.02, 0.04]
    """
    given = vector("p", p)
    order = np.argsort(given)
    times = np.arange(len(given), 0, -1)
    grown = np.minimum(1.0, np.maximum.accumulate(given[order] * times))
    adjusted = np.empty(len(given))
    adjusted[order] = grown
    return adjusted


def _judged(
    seen: tuple[Array, Array], drawn: Iterable[tuple[Array, ...]]
) -> TwoSamples:
    """Return statistic and distance that were seen, among those of random splits."""
    statistics, distances = (np.concatenate(parts) for parts in drawn)
    as_large = int((statistics >= seen[0][0] * (1.0 - _ROUNDING)).sum())
    return TwoSamples(
        p=(1 + as_large) / (1 + len(statistics)),
        distance=float(seen[1][0]),
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
    size: int, others: int, end: Index, permutations: int, seed: int
) -> Iterator[Index]:
    """Yield counts (B, L) up to each end, of random choices of `size` units."""
    rng = np.random.default_rng((seed, _STREAM))
    chosen = np.arange(size + others) < size
    step = max(1, _BLOCK // len(chosen))
    for start in range(0, permutations, step):
        yield _drawn(rng, chosen, min(step, permutations - start), end)


def _drawn(rng: Generator, chosen: Flags, times: int, end: Index) -> Index:
    mixed = rng.permuted(np.tile(chosen, (times, 1)), axis=1)
    return np.cumsum(mixed, axis=1, dtype=np.int64)[:, end]


def _counts(name: str, given: ArrayLike) -> Index:
    counts = np.asarray(given)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or not counts.sum():
        raise ValueError(
            f"{name} must be counts (C,) of at least one item, got {given!r:.60}"
        )
    if counts.min() < 0:
        raise ValueError(f"{name} must not be negative, got {counts.min()}")
    return counts.astype(np.int64)
