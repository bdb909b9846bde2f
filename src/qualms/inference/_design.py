"""The sampling design: items in one sample or several, alone or in clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from qualms.arrays import Array, Index
from qualms.jit import jit
from qualms.scores.influence import FEWEST_CLUSTERS
from qualms.wording import plural

LEAST_FREEDOM = 3.0
"""Least degrees of freedom: smaller estimates are an accident of a few large values."""


class Spread(NamedTuple):
    """The variance of a sum over independent units, and its degrees of freedom."""

    variance: float
    freedom: float
    """Satterthwaite's degrees of freedom of `variance`, at least `LEAST_FREEDOM`, and
    at most one less than `units`; with clusters half as many."""
    units: int
    """Number of independent units (clusters, or items)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """The sample and the cluster of every item.

    Samples have sizes that were fixed beforehand, such as a set of in-domain and one of
    shifted images; clusters, such as patients, were drawn whole. Make it by
    `sampling_design`, once per file: it numbers the samples and clusters.
    """

    items: int
    sample: Index | None = None
    """(N,) numbers 0, 1, ...; None where there is one sample."""
    cluster: Index | None = None
    """(N,) numbers 0, 1, ...; None where every item stands alone."""

    def of(self, index: Index) -> Design:
        """Return the design of the items at `index`; an item twice there is one unit.

        Clusters keep the numbers that they have in this design.
        """
        repeated = self.cluster is None and np.bincount(index).max() > 1
        cluster = index if repeated else _subset_codes(self.cluster, index)
        return Design(
            items=len(index), sample=_subset_codes(self.sample, index), cluster=cluster
        )

    def joined(self, other: Design) -> Design:
        """Return this sample followed by `other`, drawn independently of it."""
        first, second = self._samples(), other._samples()
        sample = np.concatenate([first, second + first.max() + 1])
        cluster = None
        if self.cluster is not None or other.cluster is not None:
            clusters, other_clusters = self._clusters(), other._clusters()
            cluster = np.concatenate([clusters, other_clusters + clusters.max() + 1])
        return Design(items=len(sample), sample=sample, cluster=cluster)

    def _samples(self) -> Index:
        return np.zeros(self.items, np.int64) if self.sample is None else self.sample

    def _clusters(self) -> Index:
        return np.arange(self.items) if self.cluster is None else self.cluster

    def units(self) -> int:
        """Return the number of items or clusters that were drawn."""
        if self.cluster is None:
            return self.items
        return int(np.count_nonzero(np.bincount(self.cluster)))

    def why_too_few(self, fewest: int = FEWEST_CLUSTERS) -> str:
        """Return why no interval holds with so few clusters; '' if one can."""
        if self.cluster is None or self.units() >= fewest:
            return ""
        units = self.units()
        return (
            f"the items come from {units} {plural(units, 'cluster')}: no interval "
            f"holds with fewer than {fewest}"
        )

    def parts(self, part: Index | None) -> Index | None:
        """Return (N,) kinds of items; different samples have different kinds."""
        if part is None or self.sample is None:
            return self.sample if part is None else part
        return part * (int(self.sample.max()) + 1) + self.sample

    def sums(self, values: Array, part: Index | None = None) -> Array:
        """Return (units,) `values` (N,) centred within samples and parts, per unit.

        Their sum of squares estimates the variance of the sum of `values`: each part
        is scaled up for the mean that was taken from it.
        """
        kind = self.parts(part)
        if kind is None:
            units = self.units()
            centred: Array = values - values.mean()
            centred *= np.sqrt(units / max(units - 1, 1))
        else:
            count = np.bincount(kind)
            units_in = self._units_within(kind, count)
            scale = np.sqrt(units_in / np.maximum(units_in - 1, 1))
            mean = np.bincount(kind, values) / np.maximum(count, 1)
            centred = _centred_within(values, kind, mean, scale)
        if self.cluster is None:
            return centred
        # Clusters of the whole file without an item in this subset add only zeros.
        sums: Array = np.bincount(self.cluster, centred).astype(np.float64, copy=False)
        return sums

    def _units_within(self, kind: Index, count: Index) -> Index:
        """Return the number (parts,) of units in each part, which has `count` items."""
        if self.cluster is None:
            return count
        clusters, kinds = int(self.cluster.max()) + 1, int(kind.max()) + 1
        # Counting is many times faster than sorting for the distinct pairs.
        pair = np.bincount(kind * clusters + self.cluster, minlength=kinds * clusters)
        units: Index = np.count_nonzero(pair.reshape(kinds, clusters), axis=1)
        return units

    def spread(
        self, values: Array, part: Index | None = None, *, welch: bool = False
    ) -> Spread:
        """Return variance of the sum of `values` (N,) over new draws of the units."""
        sums = self.sums(values, part)
        units = self.units()
        square = np.square(sums)
        variance = float(square.sum())
        if variance <= 0.0:
            return Spread(0.0, 1.0, units)
        # 2 V^2 / Var(V), with Var(V) from the fourth powers.
        left = float(square @ square) - variance**2 / units
        freedom = 2.0 * variance**2 / left if left > 0.0 else float(units)
        if welch:
            freedom = min(freedom, self._welch(square, variance, part))
        freedom = min(max(freedom, LEAST_FREEDOM), max(units - 1.0, 1.0))
        # Sums over few clusters are so skewed that fourth powers do not show it.
        clustered = self.cluster is not None
        return Spread(variance, freedom / 2.0 if clustered else freedom, units)

    def _welch(self, square: Array, variance: float, part: Index | None) -> float:
        kind = self.parts(part)
        if kind is None:
            return float(max(self.units() - 1, 1))
        if self.cluster is not None:
            kind, square = self._kinds_of_clusters(kind, square)
        variances, size = np.bincount(kind, square), np.bincount(kind)
        return float(variance**2 / np.sum(variances**2 / np.maximum(size - 1, 1)))

    def _kinds_of_clusters(self, kind: Index, square: Array) -> tuple[Index, Array]:
        """Return the kind that most items of each cluster have, and its `square`."""
        assert self.cluster is not None
        kinds = int(kind.max()) + 1
        pair = np.bincount(self.cluster * kinds + kind, minlength=len(square) * kinds)
        count = pair.reshape(len(square), kinds)
        # Clusters of the whole file without an item in this subset are left out.
        present = count.any(axis=1)
        return count[present].argmax(axis=1), square[present]


@jit
def _centred_within(values: Array, kind: Index, mean: Array, scale: Array) -> Array:
    """Return (N,) `values` less the mean of their kind, scaled by their kind."""
    centred = np.empty(len(values))
    for item in range(len(values)):
        centred[item] = (values[item] - mean[kind[item]]) * scale[kind[item]]
    return centred


def sampling_design(
    items: int, *, sample: ArrayLike | None = None, cluster: ArrayLike | None = None
) -> Design:
    """Return the design of `items` items, by labels (N,) of any kind.

    >>> sampling_design(4, cluster=["a", "a", "b", "c"]).units()
    3
    """
    if items < 1:
        raise ValueError(f"items must be at least 1, got {items}")
    return Design(
        items=items,
        sample=_label_numbers("sample", sample, items),
        cluster=_label_numbers("cluster", cluster, items),
    )


def joined_clusters(unit: ArrayLike, cluster: ArrayLike | None = None) -> Index:
    """Return clusters (N,) that join items of one `unit`, or of one `cluster`.

    >>> joined_clusters([0, 0, 1, 2], ["a", "b", "b", "c"])
    array([0, 0, 0, 1])
    """
    first = np.unique(np.asarray(unit), return_inverse=True)[1].astype(np.int64)
    if cluster is None:
        return first
    second = np.unique(np.asarray(cluster), return_inverse=True)[1].astype(np.int64)
    # Units and clusters are the points of a graph, and every item an edge.
    units = int(first.max()) + 1
    points = units + int(second.max()) + 1
    graph = coo_array((np.ones(len(first)), (first, units + second)), (points, points))
    component: Index = connected_components(graph, directed=False)[1].astype(np.int64)
    return component[first]


def _label_numbers(name: str, values: ArrayLike | None, items: int) -> Index | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (items,):
        raise ValueError(f"{name} must have shape ({items},), got {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(f"{name} must be given for every item, row {row} is nan")
    levels, number = np.unique(array, return_inverse=True)
    if len(levels) == (1 if name == "sample" else items):
        return None
    return number.astype(np.int64)


def _subset_codes(codes: Index | None, index: Index) -> Index | None:
    return None if codes is None else codes[index]
