"""Exact quantiles of the pixels of many maps, in memory that does not grow with them.

The 32 bits of a number are counted in two passes: the first counts the leading halves
of all numbers, the second all bits of those few that share a leading half with the
quantile. Counts are whole numbers that add up, so the result does not depend on the
order of the maps or on the processes that counted them.

>>> maps = [[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]
>>> leading = leading_counts(maps[0]) + leading_counts(maps[1])
>>> around = leading.around(0.5)
>>> nearby = nearby_counts(maps[0], around) + nearby_counts(maps[1], around)
>>> leading.quantile(0.5, nearby)
2.5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Index
from qualms.scores._pixels import real_map

__all__ = [
    "PooledCounts",
    "leading_counts",
    "nearby_counts",
]

Keys = NDArray[np.uint32]

_SIGN = np.uint32(1 << 31)
_HALF = np.uint32(16)
_REST = np.uint32((1 << 16) - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledCounts:
    """Counts of the numbers in some maps; the counts of several maps add up."""

    key: Keys
    """(K,) distinct numbers, ascending: their bits in float32, as whole numbers."""
    count: Index
    """(K,) count of each number."""

    def __add__(self, other: PooledCounts) -> PooledCounts:
        if not len(self.key):
            return other
        at = np.searchsorted(self.key, other.key)
        # A number beyond the last is compared with the last, and differs from it.
        shared = self.key[np.minimum(at, len(self.key) - 1)] == other.key
        count = self.count.copy()
        count[at[shared]] += other.count[shared]
        new = at[~shared]
        return PooledCounts(
            key=np.insert(self.key, new, other.key[~shared]),
            count=np.insert(count, new, other.count[~shared]),
        )

    def span(self) -> tuple[float, float]:
        """Return close bounds of all numbers, for the result of `leading_counts`.

        >>> leading_counts([1.0, 2.0]).span()
        (1.0, 2.015625)
        """
        ends = np.array([self.key[0], self.key[-1] | _REST])
        low, high = _value_of(ends)
        return float(low), float(np.nextafter(high, np.inf, dtype=np.float32))

    def around(self, share: float) -> Keys:
        """Return the one or two leading halves that the quantile at `share` lies in."""
        return np.unique(self._at(self._ranks(share)))

    def quantile(self, share: float, nearby: PooledCounts) -> float:
        """Return quantile of all numbers at `share` in [0, 1], linearly interpolated.

        Args:
            share: Share of numbers below the quantile.
            nearby: The `nearby_counts` of the same maps, around this share.
        """
        ranks = self._ranks(share)
        below = self.count[self.key < self.around(share)[0]].sum()
        low, high = _value_of(nearby._at(ranks - below))
        place = share * (self.count.sum() - 1)
        return float(low + (place - ranks[0]) * (high - low))

    def _ranks(self, share: float) -> Index:
        """Return the two ranks, from 0, between which the quantile lies."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share must lie in [0, 1], got {share}")
        last = self.count.sum() - 1
        below = int(share * last)
        return np.array([below, min(below + 1, last)])

    def _at(self, ranks: Index) -> Keys:
        return self.key[np.searchsorted(np.cumsum(self.count), ranks, side="right")]


def leading_counts(values: ArrayLike) -> PooledCounts:
    """Return the count of each leading half of 32 bits in a map of any shape."""
    times = np.bincount(_keys("values", values) >> _HALF)
    halves = np.flatnonzero(times)
    return PooledCounts(key=halves.astype(np.uint32) << _HALF, count=times[halves])


def nearby_counts(values: ArrayLike, around: Keys) -> PooledCounts:
    """Return the count of each number that begins with a half in `around`."""
    key = _keys("values", values)
    near = np.zeros(key.shape, np.bool_)
    for leading in around:
        near |= key >> _HALF == leading >> _HALF
    numbers, times = np.unique(key[near], return_counts=True)
    return PooledCounts(key=numbers, count=times.astype(np.int64))


def _keys(name: str, values: ArrayLike) -> Keys:
    """Return whole numbers in the order of `values` in float32."""
    single = real_map(name, values).astype(np.float32).ravel()
    # Adding 0 makes -0 and 0 one number.
    bits = (single + np.float32(0.0)).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value_of(key: NDArray[Any]) -> NDArray[np.float64]:
    bits = np.where(key & _SIGN, key & ~_SIGN, ~key)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)
