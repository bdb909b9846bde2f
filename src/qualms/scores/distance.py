"""Distance of features to the training features, as an uncertainty."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.scores._neighbours import unit
from qualms.scores.arguments import by_name, matrix

__all__ = [
    "mean_neighbour_distance",
]

Metric = Literal["angular", "l2"]


@by_name
def mean_neighbour_distance(
    *,
    query: ArrayLike,
    reference: ArrayLike,
    k: int = 10,
    metric: Metric = "angular",
    block: int = 1024,
) -> Array:
    """Return the mean distance (N,) of queries (N, D) to their `k` nearest references.

    `angular` is sqrt(2 - 2 cos), `l2` Euclidean; the nearest are exact, and the
    defaults are those of Gustafsson et al. (2023). `reference` is (R, D), R at least
    `k`; a query that is itself in it counts at distance 0. A zero vector has cosine 0
    to everything.

    >>> mean_neighbour_distance(
    ...     query=[[0.0, 1.0]], reference=[[0.0, 3.0], [1.0, 0.0]], k=1
    ... )
    array([0.])
    """
    queries, references = matrix("query", query), matrix("reference", reference)
    _check(queries, references, k=k, metric=metric, block=block)
    if metric == "angular":
        queries, references = (
            _directions(queries, spare=0),
            _directions(references, spare=1),
        )
    else:
        # Centring changes no distance, and reduces cancellation in their squares.
        centre = references.mean(axis=0)
        queries, references = queries - centre, references - centre
    half = np.einsum("nd,nd->n", references, references) / 2
    mean = np.empty(len(queries))
    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        nearest = np.argpartition(half - rows @ references.T, k - 1, axis=1)[:, :k]
        mean[start : start + block] = _mean_distance(rows, references, nearest)
    return mean


def _check(
    queries: Array, references: Array, *, k: int, metric: str, block: int
) -> None:
    if queries.shape[1] != references.shape[1] or references.shape[1] < 1:
        raise ValueError(
            "query and reference must have the same number of features, at least one, "
            f"got {queries.shape[1]} and {references.shape[1]}"
        )
    if not 1 <= k <= len(references):
        raise ValueError(
            f"k must lie in 1..{len(references)}, the size of reference, got {k}"
        )
    if metric not in get_args(Metric):
        raise ValueError(f"metric must be 'angular' or 'l2', got {metric!r}")
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}")


def _directions(rows: Array, *, spare: int) -> Array:
    """Return unit rows with two more axes, which keep zero rows orthogonal to all."""
    lifted = np.pad(unit(rows), ((0, 0), (0, 2)))
    lifted[~rows.any(axis=1), rows.shape[1] + spare] = 1.0
    return lifted


def _mean_distance(rows: Array, references: Array, nearest: Index) -> Array:
    # Computed from differences: 2 - 2 cos of a near neighbour is only a rounding error.
    total: Array = np.zeros(len(rows))
    for column in nearest.T:
        gap = references[column] - rows
        total += np.sqrt(np.einsum("nd,nd->n", gap, gap))
    total /= nearest.shape[1]
    return total
