"""Exact cosine neighbours of every item, without the N x N matrix.

A float32 matrix product finds the best and second best similarity of each item, tile by
tile (each pair of items once, since the matrix is symmetric). Where these two differ by
less than the error of float32, the few candidates are compared again in float64. So
neither the tiles nor the order of the items change the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Flags, Index
from qualms.scores.arguments import finite, matrix

Single = NDArray[np.float32]

# Similarities this close are equal: the rounding error of a float64 cosine is smaller.
TIE = 1e-12


class Close(NamedTuple):
    """Items whose nearest neighbours had to be found in float64."""

    item: Index
    """(K,) the items."""
    candidate: Index
    """(L,) all items that may be nearest to one of them, ascending."""
    tied: Flags
    """(K, L) True where the candidate is a nearest neighbour of the item."""


class Neighbours(NamedTuple):
    """The nearest neighbours of every item, self excluded by index."""

    nearest: Index
    """(N,) neighbour of each item; correct for all items that are not in `close`."""
    close: Iterator[Close]
    """All nearest neighbours of the other items, block by block."""


class _Screen(NamedTuple):
    nearest: Index
    best: Single
    second: Single


def neighbours(embedding: ArrayLike, *, block: int) -> Neighbours:
    """Return the nearest neighbours by cosine in `embedding` (N, D), N at least 2.

    Memory is a float32 copy of the embedding and one tile of `block` x `block`, then
    `block` x N for items with close neighbours.
    """
    raw = _numbers(embedding)
    if len(raw) < 2 or raw.shape[1] < 1:
        raise ValueError(
            "embedding must have at least two items and one feature, got shape "
            f"{raw.shape}"
        )
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}")
    single = np.empty(raw.shape, dtype=np.float32)
    for start in range(0, len(single), block):
        single[start : start + block] = unit(raw[start : start + block])
    screen = _screened(single, block)
    close = np.flatnonzero(screen.best - screen.second <= _margin(single))
    return Neighbours(screen.nearest, _settled(raw, single, close, block))


def _numbers(embedding: ArrayLike) -> NDArray[Any]:
    """Return a finite matrix; float32 is not widened, as a copy may be gigabytes."""
    raw = np.asarray(embedding)
    if raw.dtype != np.float32 or raw.ndim != 2 or not len(raw):
        return matrix("embedding", raw)
    finite("embedding", raw)
    return raw


def unit(rows: NDArray[Any]) -> Array:
    """Return `rows` (K, D) at length one, in float64; a zero row stays zero."""
    wide = rows.astype(np.float64)
    # Divide by the largest entry first, so that no square overflows or vanishes.
    wide /= _or_one(np.abs(wide).max(axis=1))[:, None]
    wide /= _or_one(np.sqrt(np.einsum("nd,nd->n", wide, wide)))[:, None]
    return wide


def _or_one(length: Array) -> Array:
    return np.where(length > 0, length, 1.0)


def _screened(single: Single, block: int) -> _Screen:
    count = len(single)
    lowest = np.full((2, count), -np.inf, dtype=np.float32)
    screen = _Screen(np.zeros(count, dtype=np.int64), *lowest)
    buffer = np.empty((2, block, block), dtype=np.float32)
    for first in range(0, count, block):
        rows = single[first : first + block]
        for other in range(first, count, block):
            columns = single[other : other + block]
            tile = buffer[0, : len(rows), : len(columns)]
            np.matmul(rows, columns.T, out=tile)
            if first == other:
                np.fill_diagonal(tile, -np.inf)
            else:
                turned = buffer[1, : len(columns), : len(rows)]
                np.copyto(turned, tile.T)
                _take_in(screen, other, first, turned)
            _take_in(screen, first, other, tile)
    return screen


def _take_in(screen: _Screen, first: int, other: int, tile: Single) -> None:
    """Update items from `first` on with their similarities to items from `other` on."""
    line = np.arange(len(tile))
    place = tile.argmax(axis=1)
    best = tile[line, place]
    tile[line, place] = -np.inf
    nearest, old, second = (array[first : first + len(tile)] for array in screen)
    np.maximum(second, np.maximum(tile.max(axis=1), np.minimum(old, best)), out=second)
    np.copyto(nearest, place + other, where=best > old)
    np.maximum(old, best, out=old)


def _settled(
    raw: NDArray[Any], single: Single, items: Index, block: int
) -> Iterator[Close]:
    for start in range(0, len(items), block):
        item = items[start : start + block]
        rough = single[item] @ single.T
        rough[np.arange(len(item)), item] = -np.inf
        near = rough >= rough.max(axis=1, keepdims=True) - _margin(single)
        candidate = np.flatnonzero(near.any(axis=0))
        exact = unit(raw[item]) @ unit(raw[candidate]).T
        exact[item[:, None] == candidate] = -np.inf
        yield Close(item, candidate, exact >= exact.max(axis=1, keepdims=True) - TIE)


def _margin(single: Single) -> float:
    # A float32 dot product of D-long unit vectors errs by less than D + 2 units of
    # rounding, in any order of summation, and their own rounding adds two; two
    # similarities are compared.
    return float(2 * (single.shape[1] + 8) * 2.0**-24)
