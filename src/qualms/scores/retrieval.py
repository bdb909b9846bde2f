"""Retrieval: is the nearest item of the same class, and is a miss less certain?

The scores of the URL benchmark (Kirchhof et al., 2023). Neighbours are exact, by
cosine. An item is never its own neighbour. Where several items are equally near, a hit
is the share of them that has the right class: the expectation over a random choice. So
the order of the items never matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores._neighbours import neighbours
from qualms.scores.arguments import by_name, flags, vector
from qualms.scores.influence import Influence
from qualms.scores.ranking import weighted_auroc, weighted_auroc_influence
from qualms.scores.ties import is_less

__all__ = [
    "crop_rate",
    "mixed_r_auroc",
    "mixed_target",
    "nearest_neighbour",
    "r_auroc",
    "recall_at_1",
    "retrieval_hits",
]

# Larger tiles exceed the cache, smaller ones slow down the matrix product.
BLOCK = 512


def nearest_neighbour(embedding: ArrayLike, *, block: int = BLOCK) -> Index:
    """Return the index (N,) of the nearest other item by cosine, in `embedding` (N, D).

    The lowest index wins among equally near items. A zero vector has similarity 0 to
    everything.

    >>> nearest_neighbour([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1], [0.0, 1.0]])
    array([2, 3, 0, 1])
    """
    search = neighbours(embedding, block=block)
    for close in search.close:
        search.nearest[close.item] = close.candidate[close.tied.argmax(axis=1)]
    return search.nearest


def retrieval_hits(
    embedding: ArrayLike, target: ArrayLike, *, block: int = BLOCK
) -> Array:
    """Return the probability (N,) that the nearest other item has the same target.

    0 or 1 where one item is the nearest; the share of right ones among equally near
    items. The only member of a class is always a miss. Costs one matrix product;
    every score here takes the result as `hits`.

    >>> retrieval_hits([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], [0, 0, 1])
    array([0.5, 0.5, 0. ])
    """
    return retrieved(embedding, target, block=block).hits


class Retrieved(NamedTuple):
    """Results of one search for neighbours, (N,) each."""

    hits: Array
    """Probability that the nearest other item has the same target."""
    unit: Index
    """Number of the sampling unit: items that are each other's nearest share one,
    because they are right or wrong together."""


def retrieved(
    embedding: ArrayLike, target: ArrayLike, *, block: int = BLOCK
) -> Retrieved:
    """Return `retrieval_hits`, and which items retrieve each other.

    >>> retrieved([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]], [0, 0, 1]).unit
    array([0, 0, 1])
    """
    shape = np.shape(embedding)
    classes = _classes(target, length=shape[0] if shape else None)
    search = neighbours(embedding, block=block)
    hits: Array = (classes[search.nearest] == classes).astype(np.float64)
    single = np.ones(len(hits), dtype=np.bool_)
    query, nearest = [], []
    for close in search.close:
        right = classes[close.candidate] == classes[close.item, None]
        hits[close.item] = (right & close.tied).sum(axis=1) / close.tied.sum(axis=1)
        single[close.item] = False
        row, column = np.nonzero(close.tied)
        query.append(close.item[row])
        nearest.append(close.candidate[column])
    alone = np.flatnonzero(single)
    edges = (
        np.concatenate([alone, *query]),
        np.concatenate([search.nearest[alone], *nearest]),
    )
    return Retrieved(hits, _mutual(*edges, items=len(hits)))


def _mutual(query: Index, nearest: Index, *, items: int) -> Index:
    """Return numbers (N,) that items share if they are nearest to each other."""
    ones = np.ones(len(query), dtype=np.int8)
    edges = coo_array((ones, (query, nearest)), (items, items)).tocsr()
    mutual = edges.multiply(edges.T)
    unit: Index = connected_components(mutual, directed=False)[1].astype(np.int64)
    return unit


def _item_hits(
    embedding: ArrayLike, target: ArrayLike, *, hits: ArrayLike | None = None
) -> ArrayLike:
    return retrieval_hits(embedding, target) if hits is None else hits


@as_score(label="R@1", better="higher", items=_item_hits)
def recall_at_1(
    embedding: ArrayLike, target: ArrayLike, *, hits: ArrayLike | None = None
) -> float:
    """Return the share of items whose nearest other item has the same target.

    `embedding` is (N, D), `target` (N,); `hits` from `retrieval_hits`, if at hand,
    saves the search.

    >>> recall_at_1([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]], [0, 0, 1])
    0.6666666666666666
    """
    return float(_hits(embedding, target, hits).mean())


def _r_auroc_influence(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Influence:
    right = np.asarray(_item_hits(embedding, target, hits=hits), dtype=np.float64)
    return weighted_auroc_influence(uncertainty, 1.0 - right, right)


@as_score(label="R-AUROC", better="higher", influence=_r_auroc_influence)
@by_name
def r_auroc(
    *,
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    hits: ArrayLike | None = None,
) -> float:
    """Return the chance that a wrong retrieval is less certain than a right one.

    The headline score of URL (Kirchhof et al., 2023), by ranks alone. `embedding` is
    (N, D), the others (N,). A fractional hit counts as right by that share and as
    wrong by the rest. nan where all retrievals are right or all are wrong.

    >>> r_auroc(
    ...     embedding=[[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]],
    ...     target=[0, 0, 1],
    ...     uncertainty=[0.1, 0.2, 0.9],
    ... )
    1.0
    """
    right = _hits(embedding, target, hits)
    values = vector("uncertainty", uncertainty, length=len(right))
    return weighted_auroc(
        score=values, positive_weight=1 - right, negative_weight=right
    )


def _mixed_r_auroc_influence(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    upstream: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Influence:
    mixed = mixed_target(target=target, upstream=upstream)
    return _r_auroc_influence(embedding, mixed, uncertainty, hits=hits)


@as_score(label="mixed R-AUROC", better="higher", influence=_mixed_r_auroc_influence)
@by_name
def mixed_r_auroc(
    *,
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    upstream: ArrayLike,
    hits: ArrayLike | None = None,
) -> float:
    """Return the R-AUROC with upstream and downstream items in one pool.

    Neighbours are searched in the union; an upstream item (`upstream` (N,), bool) and a
    downstream item never share a class, even if their targets are equal.

    >>> mixed_r_auroc(
    ...     embedding=[[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]],
    ...     target=[0, 0, 0],
    ...     uncertainty=[3, 2, 9],
    ...     upstream=[1, 1, 0],
    ... )
    1.0
    """
    return r_auroc(
        embedding=embedding,
        target=mixed_target(target=target, upstream=upstream),
        uncertainty=uncertainty,
        hits=hits,
    )


@by_name
def mixed_target(*, target: ArrayLike, upstream: ArrayLike) -> Index:
    """Return targets (N,) that upstream and downstream items never share.

    >>> mixed_target(target=[5, 5, 7], upstream=[True, False, False])
    array([1, 0, 2])
    """
    classes = _classes(target)
    return 2 * classes + flags("upstream", upstream, length=len(classes))


def less_certain_cropped(uncertainty: ArrayLike, cropped: ArrayLike) -> Flags:
    """Return a mask (N,) of items that are less certain when cropped."""
    uncropped = vector("uncertainty", uncertainty)
    return is_less(uncropped, vector("cropped", cropped, length=len(uncropped)))


@as_score(label="crop rate", better="higher", items=less_certain_cropped)
@by_name
def crop_rate(*, uncertainty: ArrayLike, cropped: ArrayLike) -> float:
    """Return the share of items (N,) that are strictly less certain when `cropped`.

    >>> crop_rate(uncertainty=[0.1, 0.2, 0.3, 0.4], cropped=[0.2, 0.2, 0.1, 0.9])
    0.5
    """
    return float(less_certain_cropped(uncertainty, cropped).mean())


def _hits(embedding: ArrayLike, target: ArrayLike, hits: ArrayLike | None) -> Array:
    if hits is None:
        return retrieval_hits(embedding, target)
    checked = vector("hits", hits, length=len(_classes(target)))
    if checked.min() < 0 or checked.max() > 1:
        raise ValueError(
            f"hits must lie in [0, 1], got {checked.min():g} to {checked.max():g}"
        )
    return checked


def _classes(target: ArrayLike, *, length: int | None = None) -> Index:
    """Return targets of any kind (N,), numbered from 0."""
    array = np.asarray(target)
    if array.dtype.kind not in "US":
        array = vector("target", array, length=length)
    elif array.ndim != 1 or length not in (None, len(array)):
        raise ValueError(
            f"target must have shape ({length or 'N'},), got {array.shape}"
        )
    number = np.unique(array, return_inverse=True)[1]
    return number.astype(np.int64)
