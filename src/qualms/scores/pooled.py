"""Quantiles of the pixels of many maps, in memory that does not grow with them."""

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.jit import jit
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
    says how far a quantile may be off. The order of the maps does not matter, and
    several threads may add them.

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
        self._lock = Lock()

    def add(self, values: ArrayLike) -> None:
        """Take in the values of one map of any shape."""
        single = real_map("values", values).astype(np.float32).ravel()
        key = _key_of(single)
        with self._lock:
            self._waiting.append(key)
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
        self._key, self._count = _merged(self._key, self._count, new, self._dropped)
        while len(self._key) > self._limit:
            self._dropped += 1
            none = np.empty(0, dtype=np.uint32)
            rounded = _merged(self._key, self._count, none, self._dropped)
            self._key, self._count = rounded


@jit
def _merged(
    key: Keys, count: Index, new: Keys, dropped: int
) -> tuple[Keys, NDArray[np.int64]]:
    """The distinct values of two ascending arrays with their counts, `new` one each.

    The last `dropped` binary digits of both are left out.
    """
    kept = np.uint32(0xFFFFFFFF >> dropped << dropped)
    most = len(key) + len(new)
    keys, counts = np.empty(most, np.uint32), np.empty(most, np.int64)
    used = at = other = 0
    while at < len(key) or other < len(new):
        if other == len(new) or (at < len(key) and key[at] <= new[other]):
            value, times = key[at] & kept, count[at]
            at += 1
        else:
            value, times = new[other] & kept, 1
            other += 1
        if used and keys[used - 1] == value:
            counts[used - 1] += times
        else:
            keys[used], counts[used] = value, times
            used += 1
    return keys[:used].copy(), counts[:used].copy()


def _key_of(values: NDArray[np.float32]) -> Keys:
    """Whole numbers in the order of `values`."""
    # Adding 0 makes -0 and 0 one value.
    bits = (values + np.float32(0.0)).view(np.uint32)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value_of(key: NDArray[Any]) -> NDArray[np.float64]:
    bits = np.where(key & _SIGN, key & ~_SIGN, ~key)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)
