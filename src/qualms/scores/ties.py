"""One sort for every ranking score: ascending order and the groups of tied values.

Values that are equal in exact arithmetic may differ in their last bits: 0.1 + 0.2 and
0.3, the entropies of (6, 2, 1, 1) and (4, 3, 3, 0) votes, a mean that another program
computed in another order. So neighbours in the sorted list are tied if they differ by
no more than 1e-12 of their size. There is no grid of rounded values, whose edges would
separate some of these pairs; ties do not depend on the order of the items; and the
tolerance is relative, so that 1e-30 and 1e-20 differ.

Scores use whole groups, never the order inside one, so the sort need not be stable.

Many scores rank by the same values. Within `shared_sorts()` these are sorted once.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit

__all__ = [
    "TIE",
    "Ranked",
    "is_less",
    "levels",
    "ranked_items",
    "shared_sorts",
]

TIE = 1e-12
"""Largest relative difference of tied values."""


class Ranked(NamedTuple):
    """Items in ascending order of a value, cut into groups of tied values."""

    order: Index
    """(N,) item indices, smallest value first."""
    start: Index
    """(G + 1,) start of each group in `order`; the last entry is N."""


def ranked_items(values: Array, *, tie: float = TIE) -> Ranked:
    """Sort `values` (N,) ascending and find the groups of tied ones.

    With `tie=0.0` only values that are equal to the last bit are tied.

    >>> ranked_items(np.array([0.9, 0.3, 0.1 + 0.2])).start
    array([0, 2, 3])
    """
    shared = _SHARED.get()
    return _ranked(values, tie) if shared is None else shared.of(values, tie)


def _ranked(values: Array, tie: float) -> Ranked:
    # Of few values, such as errors of 0 and 1, a merge sort takes a quarter as long.
    few = len(np.unique(values[:1000])) < 3
    order = np.argsort(values, kind="stable" if few else None)
    steps = np.flatnonzero(new_groups(values[order], tie))
    return Ranked(order, np.append(steps, len(values)))


def descending(rank: Ranked) -> Ranked:
    """Return the same items and groups, the largest value first.

    >>> descending(ranked_items(np.array([0.9, 0.3, 0.1 + 0.2]))).start
    array([0, 1, 3])
    """
    return Ranked(rank.order[::-1], len(rank.order) - rank.start[::-1])


@contextmanager
def shared_sorts() -> Iterator[None]:
    """Sort each array once, however many scores rank by it.

    Arrays are identified by their memory and must not be changed meanwhile. An inner
    block uses the sorts of the outer one.

    >>> values = np.array([0.9, 0.3, 0.1 + 0.2])
    >>> with shared_sorts():
    ...     ranked_items(values) is ranked_items(values)
    True
    """
    if _SHARED.get() is not None:
        yield
        return
    token = _SHARED.set(_SharedSorts())
    try:
        yield
    finally:
        _SHARED.reset(token)


class _SharedSorts:
    """The latest few rankings, and more of them where they are small."""

    KEPT = 3
    ITEMS = 1 << 21
    """Most items of all further rankings in the cache: 16 bytes for each."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[Any, _Sort] = OrderedDict()

    def of(self, values: Array, tie: float) -> Ranked:
        """Return the ranking of `values`; wait if another thread is making it."""
        place = values.ctypes.data, values.dtype, values.strides, values.shape, tie
        with self._lock:
            sort = self._held.setdefault(place, _Sort(values))
            self._held.move_to_end(place)
            most = max(self.KEPT, self.ITEMS // len(values))
            while len(self._held) > most:
                self._held.popitem(last=False)
        return sort.ranked(tie)


class _Sort:
    """A ranking that is made on first use."""

    def __init__(self, values: Array) -> None:
        # The array is stored, so that no other array gets its address.
        self._values = values
        self._lock = Lock()
        self._found: Ranked | None = None

    def ranked(self, tie: float) -> Ranked:
        """Return the ranking."""
        with self._lock:
            if self._found is None:
                self._found = _ranked(self._values, tie)
            return self._found


_SHARED: ContextVar[_SharedSorts | None] = ContextVar("sorts", default=None)


def levels(rank: Ranked) -> Index:
    """Return (N,) number of the group of each item; the smallest values have number 0.

    >>> levels(ranked_items(np.array([0.9, 0.3, 0.1 + 0.2])))
    array([1, 0, 0])
    """
    level = np.empty(len(rank.order), dtype=np.int64)
    level[rank.order] = np.repeat(np.arange(len(rank.start) - 1), np.diff(rank.start))
    return level


def is_less(first: Array, second: Array | float, *, tie: float = TIE) -> Flags:
    """Return (N,) where `first` is less than `second` and not tied with it.

    >>> is_less(np.array([0.3, 0.1]), np.array([0.1 + 0.2, 0.2]))
    array([False,  True])
    """
    size = np.minimum(np.abs(first), np.abs(second))
    less: Flags = second - first > tie * size
    return less


@jit
def first_largest(rows: Array, tie: float) -> Index:
    """Return the first column (N,) of `rows` (N, C), 0 or more, that is the largest."""
    columns = np.zeros(len(rows), dtype=np.int64)
    for row in range(len(rows)):
        largest = rows[row, 0]
        for column in range(1, rows.shape[1]):
            if rows[row, column] - largest > tie * largest:
                largest = rows[row, column]
                columns[row] = column
    return columns


@jit
def new_groups(ascending: Array, tie: float) -> Flags:
    """Return a mask (N,) of values not tied with the one before; True for the first."""
    new = np.empty(len(ascending), dtype=np.bool_)
    new[:1] = True
    for i in range(1, len(ascending)):
        before, value = ascending[i - 1], ascending[i]
        # By the smaller size: infinity is then apart from every number. The difference
        # of two infinities is nan, and they are tied.
        new[i] = value - before > tie * min(abs(before), abs(value))
    return new
