"""Retrieval beyond the nearest item: among the k nearest, and in a gallery.

Similarity is the cosine, in float64. By default the neighbours of an item are the other
items of its file; a gallery is another set of items. If items are equally near, a hit
is the expectation over a random order of them, as for `recall_at_1`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores._neighbours import TIE, unit
from qualms.scores._precision import NOWHERE, Roles, add_roles, block_precisions
from qualms.scores.arguments import matrix
from qualms.scores.influence import Influence, mean_influence

__all__ = [
    "Nearest",
    "RightRanks",
    "average_precisions",
    "hits_within",
    "map_at_r",
    "nearest_items",
    "recall_at_k",
    "right_ranks",
]

BLOCK = 128


class RightRanks(NamedTuple):
    """Rank of the nearest item of the same class for each item, (N,) each."""

    ahead: Index
    """Number of items of other classes that are nearer."""
    wrong: Index
    """Number of items of other classes that are equally near."""
    right: Index
    """Number of items of the same class that are equally near; 0 if it has no other."""


class Nearest(NamedTuple):
    """The nearest items of some items, (Q, k) each, the nearest first."""

    item: Index
    cosine: Array


def nearest_items(
    embedding: ArrayLike,
    rows: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    k: int = 5,
    block: int = 4096,
) -> Nearest:
    """Return the `k` items that are nearest by cosine to the items at `rows`.

    `embedding` is (N, D), `rows` (Q,). Neighbours are searched in `gallery` (G, D), and
    are rows of it, or without one among the other items of the file. Of equally near
    items the lower row comes first; with fewer than `k` items all of them are returned.

    >>> nearest_items([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 2], k=2).item
    array([[1, 3],
           [3, 1]])
    >>> nearest_items([[1, 0], [0, 1]], [1], gallery=[[1, 0.1], [0, 2]], k=1).item
    array([[1]])
    """
    every = matrix("embedding", np.asarray(embedding))
    query = np.asarray(rows, np.int64)
    queries = unit(every[query])
    searched = every if gallery is None else _gallery_like(gallery, every)
    item = np.empty((len(query), 0), np.int64)
    cosine = np.empty((len(query), 0))
    for start in range(0, len(searched), block):
        candidates = np.arange(start, min(start + block, len(searched)))
        near = queries @ unit(searched[candidates]).T
        if gallery is None:
            near[query[:, None] == candidates] = NOWHERE
        cosine = np.concatenate([cosine, near], axis=1)
        item = np.concatenate([item, np.tile(candidates, (len(query), 1))], axis=1)
        order = np.argsort(-cosine, axis=1, kind="stable")[:, : max(k, 1)]
        cosine = np.take_along_axis(cosine, order, axis=1)
        item = np.take_along_axis(item, order, axis=1)
    places = min(k, len(searched) - (gallery is None))
    return Nearest(item[:, :places], cosine[:, :places])


def right_ranks(
    embedding: ArrayLike,
    target: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    gallery_target: ArrayLike | None = None,
    block: int = BLOCK,
) -> RightRanks:
    """Return the rank of the nearest item of the same class, for each item.

    `embedding` is (N, D), `target` (N,). Neighbours are searched in `gallery` (G, D)
    with `gallery_target` (G,), or without one among the other items of the file.

    >>> right_ranks([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 1, 1, 0]).ahead
    array([1, 2, 1, 1])
    """
    searched = _searched(
        embedding, target, gallery=gallery, gallery_target=gallery_target, block=block
    )
    counts = [_count_ranks(near, alike) for near, alike, _ in searched]
    return RightRanks(*np.concatenate(counts, axis=1))


class _Searched(NamedTuple):
    """Some queries, with their similarity to all candidates."""

    near: Array
    """(B, G) cosines; below any cosine for the query itself."""
    alike: Flags
    """(B, G) True for candidates of the class of the query."""
    row: Index
    """(B,) numbers of the queries."""


def _searched(
    embedding: ArrayLike,
    target: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    gallery_target: ArrayLike | None = None,
    block: int = BLOCK,
    counted: Flags | None = None,
) -> Iterator[_Searched]:
    """Yield the similarities of `block` queries at a time, of all or the `counted`."""
    queries = unit(matrix("embedding", np.asarray(embedding)))
    if (gallery is None) != (gallery_target is None):
        raise ValueError("a gallery must have both its embedding and its target")
    within = gallery is None
    candidates = queries if gallery is None else unit(_gallery_like(gallery, queries))
    truth, classes = _class_numbers(target, target if within else gallery_target)
    _check_lengths((queries, truth), (candidates, classes))
    chosen = np.arange(len(queries)) if counted is None else np.flatnonzero(counted)
    for start in range(0, len(chosen), block):
        rows = chosen[start : start + block]
        near = queries[rows] @ candidates.T
        alike = truth[rows, None] == classes
        if within:
            positions = np.arange(len(rows)), rows
            near[positions], alike[positions] = NOWHERE, False
        yield _Searched(near, alike, rows)


def _gallery_like(gallery: ArrayLike, items: Array) -> Array:
    """Return the gallery (G, D); raise unless it has the dimensions of the items."""
    candidates = matrix("gallery", np.asarray(gallery))
    if candidates.shape[1] != items.shape[1]:
        raise ValueError(
            f"the gallery must have {items.shape[1]} dimensions as the items have, "
            f"got {candidates.shape[1]}"
        )
    return candidates


def _count_ranks(near: Array, alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the counts (3, B) of `RightRanks` from similarities (B, G)."""
    best = np.where(alike, near, NOWHERE).max(axis=1, keepdims=True)
    tied = (np.abs(near - best) <= TIE) & (near > NOWHERE)
    ahead = near > best + TIE
    counts = ahead.sum(axis=1), (tied & ~alike).sum(axis=1), (tied & alike).sum(axis=1)
    return np.stack(counts)


def hits_within(ranks: RightRanks, k: int) -> Array:
    """Return the chance (N,) that one of the `k` nearest items is of the same class.

    >>> hits_within(RightRanks(*np.array([[0, 1], [1, 0], [1, 1]])), 1)
    array([0.5, 0. ])
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number from 1 on, got {k!r}")
    ahead, wrong, right = ranks
    missed = np.ones(len(ahead))
    for place in range(k):
        # The next place goes to one of the remaining equally near items.
        left = wrong + right - place
        share = np.maximum(wrong - place, 0) / np.maximum(left, 1)
        missed = np.where((place < k - ahead) & (left > 0), missed * share, missed)
    return np.where(right > 0, 1.0 - missed, 0.0)


def _item_hits(embedding: ArrayLike, target: ArrayLike, *, k: int = 5) -> Array:
    return hits_within(right_ranks(embedding, target), k)


@as_score(label="R@k", better="higher", items=_item_hits)
def recall_at_k(embedding: ArrayLike, target: ArrayLike, *, k: int = 5) -> float:
    """Return share of items with one of the same target among the `k` nearest others.

    `embedding` is (N, D), `target` (N,). For k = 1 it is `recall_at_1`.

    >>> recall_at_k([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 1, 1, 0], k=2)
    0.75
    """
    return float(hits_within(right_ranks(embedding, target), k).mean())


def precision_influence(  # noqa: PLR0913 - those of `map_at_r`, and two
    embedding: ArrayLike,
    target: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    gallery_target: ArrayLike | None = None,
    block: int = BLOCK,
    counted: Flags | None = None,
    values: Array | None = None,
) -> Influence:
    """Return the influence of items on `map_at_r`, as queries and as neighbours.

    The score is that of the queries that are `counted` (N,), or of all; their average
    precisions, `values` (N,), save one search. A gallery is fixed, so that items are
    queries alone.
    """
    if values is None:
        values = average_precisions(
            embedding,
            target,
            gallery=gallery,
            gallery_target=gallery_target,
            block=block,
        )
    if gallery is not None:
        own = values if counted is None else values[counted]
        return mean_influence(own, bound=1.0)
    classes = _class_numbers(target, target)[0]
    items = len(classes)
    roles = Roles(np.zeros(items), np.zeros(int(classes.max()) + 1), np.zeros(items))
    for near, alike, row in _searched(embedding, target, counted=counted, block=block):
        add_roles(near, alike, TIE, row, classes, roles)
    return _with_roles(values, roles.of(classes), counted)


def _with_roles(values: Array, roles: Array, counted: Flags | None) -> Influence:
    """Return the influence on the mean of `values` (N,) of the `counted` queries.

    `roles` (N,) are the changes of their sum without each item. Items that are not
    counted are neighbours only: what they add to the variance is a factor.
    """
    own = np.ones(len(values), np.bool_) if counted is None else counted
    influence = mean_influence(values[own], bound=1.0)
    assert influence.values is not None
    change = influence.values - (roles[own] - roles[own].mean()) / own.sum()
    other = (roles[~own] - roles[own].mean()) / own.sum()
    variance = float(np.square(change).sum())
    more = float(np.square(other).sum()) / variance if variance > 0.0 else 0.0
    return dataclasses.replace(influence, values=change, inflation=1.0 + more)


def average_precisions(
    embedding: ArrayLike,
    target: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    gallery_target: ArrayLike | None = None,
    block: int = BLOCK,
) -> Array:
    """Return (N,) average precision of each item among its R nearest ones.

    R is the number of candidates of its class. With a candidate of its class at place i
    the precision there is the share of its class among the first i; the average is over
    R places, those of other classes counting 0. Arguments are those of `right_ranks`;
    an item without candidates of its class has 0.

    >>> average_precisions([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 1, 1, 0])
    array([0., 0., 0., 0.])
    >>> average_precisions([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 0, 1, 0])
    array([1., 1., 0., 1.])
    """
    searched = _searched(
        embedding, target, gallery=gallery, gallery_target=gallery_target, block=block
    )
    values = [block_precisions(near, alike, TIE) for near, alike, _ in searched]
    return np.concatenate(values)


@as_score(label="MAP@R", better="higher", influence=precision_influence)
def map_at_r(
    embedding: ArrayLike,
    target: ArrayLike,
    *,
    gallery: ArrayLike | None = None,
    gallery_target: ArrayLike | None = None,
    block: int = BLOCK,
) -> float:
    """Return the mean average precision at R (Musgrave et al., 2020).

    `embedding` is (N, D), `target` (N,). Unlike R@1 it rewards that all items of a
    class are near, those of `average_precisions`.

    >>> map_at_r([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], [0, 0, 1, 0])
    0.75
    """
    return float(
        average_precisions(
            embedding,
            target,
            gallery=gallery,
            gallery_target=gallery_target,
            block=block,
        ).mean()
    )


def _class_numbers(target: ArrayLike, other: ArrayLike | None) -> tuple[Index, Index]:
    """Return both targets with common numbers."""
    targets = [np.asarray(target), np.asarray(other)]
    for name, array in zip(("target", "gallery_target"), targets, strict=True):
        if array.ndim != 1 or not len(array):
            raise ValueError(f"{name} must have shape (N,), N > 0, got {array.shape}")
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(f"{name} must not be nan")
    if len({array.dtype.kind in "US" for array in targets}) > 1:
        raise ValueError("targets of items and gallery must both be numbers, or words")
    joined: NDArray[Any] = np.concatenate(targets)
    number = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return number[: len(targets[0])], number[len(targets[0]) :]


def _check_lengths(*pairs: tuple[Array, Index]) -> None:
    for vectors, number in pairs:
        if len(vectors) != len(number):
            raise ValueError(
                f"target must have one entry for each of {len(vectors)} embeddings, "
                f"got {len(number)}"
            )
