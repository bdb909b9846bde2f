"""Quantiles of the pixels of many maps, in memory that does not grow with them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.scores._arrays import Index
from qualms.scores._pixels import real_map

Keys = NDArray[np.uint32]

# About 100 MB while values are merged.
LIMIT = 1 << 22
_SIGN = np.uint32(1 << 31)
_DIGITS = 23


class PooledValues:
    """The values of many maps, counted, in float32 and in bounded memory.

    Quantiles are exact while at most `limit` distinct values occur. Beyond, values are
    rounded to as many binary digits as `limit` distinct values allow, and `accuracy`
    says how far a quantile may be off. The order of the maps does not matter.

    >>> pooled = PooledValues()
    >>> for uncertainty_map in ([[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]):
    ...     pooled.add(uncertainty_map)
    >>> pooled.quantile(0.5), pooled.accuracy
    (2.5, 0.0)
    """

    def __init__(self, *, limit: int = LIMIT) -> None:
        if limit < 2:
            raise ValueError(f"limit must be at least 2, got {limit}")
        self._limit = limit
        self._dropped = 0
        self._key: Keys = np.empty(0, dtype=np.uint32)
        self._count: Index = np.empty(0, dtype=np.int64)
        self._waiting: list[Keys] = []

    def add(self, values: ArrayLike) -> None:
        """Take in the values of one map of any shape."""
        single = real_map("values", values).astype(np.float32).ravel()
        self._waiting.append(_key_of(single))
        if sum(map(len, self._waiting)) >= self._limit:
            self._merge()

    def quantile(self, share: float) -> float:
        """The quantile of all values at `share` in [0, 1], linearly interpolated."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share must lie in [0, 1], got {share}")
        self._merge()
        if not self._count.size:
            raise ValueError("values must hold at least one item, got none")
        upto = np.cumsum(self._count)
        place = share * (upto[-1] - 1)
        below = int(place)
        ranks = np.array([below, min(below + 1, upto[-1] - 1)])
        found = self._key[np.searchsorted(upto, ranks, side="right")]
        # The middle of what a rounded value stands for.
        low, high = _value_of(found + np.uint32((1 << self._dropped) // 2))
        return float(low + (place - below) * (high - low))

    @property
    def accuracy(self) -> float:
        """Share of a quantile by which it may be off; 0 while quantiles are exact."""
        self._merge()
        return 0.0 if self._dropped == 0 else 2.0 ** (self._dropped - 1 - _DIGITS)

    def _merge(self) -> None:
        if not self._waiting:
            return
        new = np.sort(np.concatenate(self._waiting))
        self._waiting.clear()
        found, times = self._rounded(new, np.ones(len(new), dtype=np.int64))
        key = np.concatenate([self._key, found])
        # Two ascending runs, which a stable sort merges in one pass.
        order = np.argsort(key, kind="stable")
        count = np.concatenate([self._count, times])[order]
        self._key, self._count = _summed(key[order], count)
        while len(self._key) > self._limit:
            self._dropped += 1
            self._key, self._count = self._rounded(self._key, self._count)

    def _rounded(self, key: Keys, count: Index) -> tuple[Keys, Index]:
        dropped = np.uint32(self._dropped)
        return _summed(key >> dropped << dropped, count)


def _summed(key: Keys, count: Index) -> tuple[Keys, Index]:
    """The distinct values of ascending `key`, and the sums of their `count`."""
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    return key[first], np.add.reduceat(count, first)


def _key_of(values: NDArray[np.float32]) -> Keys:
    """Whole numbers in the order of `values`."""
    # Adding 0 makes -0 and 0 one value.
    bits = (values + np.float32(0.0)).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value_of(key: NDArray[Any]) -> NDArray[np.float64]:
    bits = np.where(key & _SIGN, key & ~_SIGN, ~key)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)
