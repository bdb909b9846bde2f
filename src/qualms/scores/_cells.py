"""Items that act alike in a ranking, counted together.

A ranking score reads, in the order of the rank, how many copies there are of each tie
group and what they carry. Copies that carry the same within a group need not be told
apart, nor, for most scores, those of neighbouring groups that all carry the same: such
cells are often far fewer than items.
"""

import hashlib
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qualms.scores._arrays import Array, Flags, Index


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


# Scores of the same arrays find the same cells, and so count copies only once.
_KNOWN: WeakValueDictionary[bytes, Cells] = WeakValueDictionary()


def ranked_cells(rank: Array, *carried: Array, alike: Flags) -> Cells:
    """The cells of items that carry `carried`, ascending by `rank`, all (N,).

    Groups next to each other whose items all carry the same are one where `alike`
    (N,) says so of what they carry.
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
    order = np.argsort(rank)
    starts_group = _steps(rank[order])
    starts_cell = starts_group | _any_steps(carried, order)
    if (starts_cell & ~starts_group).any():
        # Items of a group that carry the same must stand together.
        order = np.lexsort((*carried, rank))
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
