"""How often items count in a few replicates, summed up once for all plans.

A ranking score goes through the tie groups in the order of their rank. It needs to know
how many copies each group holds, and what they carry (a risk, for example). Items that
carry the same value within a group form one cell. For most scores so do neighbouring
groups in which all items carry the same value. There are often far fewer cells than
items.
"""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.scores.resampling._kernels import counted, dot
from qualms.scores.resampling._weights import Weights
from qualms.scores.ties import levels, ranked_items

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Cells:
    """Cells in ascending order of the rank."""

    cell: NDArray[np.uint32]
    """(N,) the cell of each item."""
    carried: tuple[Array, ...]
    """(S,) each: what every item of a cell carries."""
    last: Flags
    """(S,) whether the cell is the last of its tie group."""

    def __len__(self) -> int:
        return len(self.last)


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """The weights of a few replicates; plans share the sums they make of them."""

    weights: Weights
    """(replicates, N) how often each item counts."""
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def total(self) -> Array:
        """(replicates,) how many copies there are of all items."""
        return self.shared("total", lambda: self.dot(np.ones(self.weights.shape[1])))

    def dot(self, values: Array) -> Array:
        """(replicates,) sums of `values` (N,) over all copies."""
        # Any other layout would be compiled for anew.
        return dot(self.weights, np.require(values, np.float64, ["C", "W"]))

    def mean(self, values: Array) -> Array:
        """(replicates,) means of `values` (N,) over all copies."""
        return self.dot(values) / self.total()

    def within(self, cells: Cells) -> Weights:
        """(replicates, S) how many copies there are of the items of each cell."""
        count = len(cells)
        return self.shared(cells, lambda: counted(self.weights, cells.cell, count))

    def of(self, index: Index) -> "Copies":
        """The copies of the items at `index` alone."""
        # The index itself is kept: its `id` must not pass to another array.
        _, copies = self.shared(
            id(index), lambda: (index, Copies(np.take(self.weights, index, axis=1)))
        )
        return copies

    def shared(self, key: Hashable, find: Callable[[], T]) -> T:
        """The result of `find`, computed once for each `key`."""
        if key not in self._known:
            self._known[key] = find()
        found: T = self._known[key]
        return found


# Plans of the same arrays get the same cells, so copies are counted only once.
_KNOWN: WeakValueDictionary[bytes, Cells] = WeakValueDictionary()


def ranked_cells(rank: Array, *carried: Array, alike: Flags) -> Cells:
    """The cells of items that carry `carried`, ascending by `rank`, all (N,).

    Neighbouring groups whose items all carry the same values become one cell where
    `alike` (N,) is true.
    """
    digest = hashlib.sha256()
    for array in (rank, *carried, alike):
        digest.update(array.tobytes())
    key = digest.digest()
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = _made(rank, carried, alike)
    return found


def _made(rank: Array, carried: tuple[Array, ...], alike: Flags) -> Cells:
    groups = ranked_items(rank)
    order = groups.order
    starts_group = np.zeros(len(order), dtype=np.bool_)
    starts_group[groups.start[:-1]] = True
    starts_cell = starts_group | _any_steps(carried, order)
    if (starts_cell & ~starts_group).any():
        # Items of a group that carry the same must stand together.
        order = np.lexsort((*carried, levels(groups)))
        starts_cell = starts_group | _any_steps(carried, order)
    first = np.flatnonzero(starts_cell)
    last = np.append(starts_group[first[1:]], True)
    whole = starts_group[first] & last & alike[order[first]]
    apart = _any_steps(carried, order[first])
    apart[1:] |= ~(whole[1:] & whole[:-1])
    cell = np.empty(len(order), dtype=np.uint32)
    cell[order] = (np.cumsum(apart) - 1)[np.cumsum(starts_cell) - 1]
    ends = np.append(apart[1:], True)
    return Cells(
        cell, tuple(array[order[first[ends]]] for array in carried), last[ends]
    )


def _any_steps(arrays: tuple[Array, ...], order: Index) -> Flags:
    """(N,) where any of the arrays, in this order, has a new value."""
    steps = np.zeros(len(order), dtype=np.bool_)
    for array in arrays:
        steps |= _steps(array[order])
    return steps


def _steps(ascending: Array) -> Flags:
    """(N,) where a value differs from the one before it; True for the first."""
    steps: Flags = np.append(True, ascending[1:] != ascending[:-1])
    return steps
