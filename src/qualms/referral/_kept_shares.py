"""Shares among the kept items of a set at many thresholds at once, with intervals.

The values and exact intervals are those of `_outcome`, which treats one threshold at a
time, but come from running sums over the items in order of their uncertainty. With
clusters, the variance of a share needs sums over clusters of squared counts, which are
running sums as well.
"""

from typing import NamedTuple

import numpy as np

from qualms.arrays import Array, Flags, Index
from qualms.inference import exact_ends
from qualms.referral._items import ReferralItems


class Estimates(NamedTuple):
    """Values with the ends of their intervals, one for each threshold."""

    value: Array
    low: Array
    high: Array


class _ClusterSums(NamedTuple):
    """Running sums over clusters, (N + 1,) each."""

    wrong_squared: Index
    products: Index
    """Products of the numbers of wrong and of counted items."""
    counted_squared: Index
    units: Index
    """Numbers of clusters with a counted item."""


class RunningShare(NamedTuple):
    """The share of right items among the k least uncertain ones, for k = 0 to N."""

    counted: Index
    """(N + 1,) numbers of items that count."""
    wrong: Index
    """(N + 1,) numbers of those that are wrong."""
    sums: _ClusterSums | None
    """Sums over clusters; None if no two items share a cluster."""

    def at(self, kept: Index, level: float) -> Estimates:
        """Return the shares among the first `kept` items; nan where none counts."""
        counted, wrong = self.counted[kept], self.wrong[kept]
        some = counted > 0
        items = np.maximum(counted, 1).astype(np.float64)
        share = (counted - wrong) / items
        variance = units = None
        if self.sums is not None:
            variance, units = self._spread(kept, items)
        low, high = exact_ends(share, items, level, variance=variance, units=units)
        return Estimates(*(np.where(some, each, np.nan) for each in (share, low, high)))

    def _spread(self, kept: Index, items: Array) -> tuple[Array, Array]:
        """Return variances of the shares over clusters, and numbers of clusters."""
        assert self.sums is not None
        squared, products, counted_squared, units = (s[kept] for s in self.sums)
        wrong = self.wrong[kept] / items
        total = squared - 2.0 * wrong * products + wrong**2 * counted_squared
        scale = units / np.maximum(units - 1, 1)
        variance = np.maximum(total, 0.0) * scale / items**2
        return variance, units.astype(np.float64)


class AscendingItems:
    """The items of a set in order of their uncertainty."""

    def __init__(self, items: ReferralItems) -> None:
        order = np.argsort(items.uncertainty, kind="stable")
        self.n = items.n
        self.order = order
        self._uncertainty = items.uncertainty[order]
        self._cluster = None if items.cluster is None else items.cluster[order]

    def kept(self, thresholds: Array) -> Index:
        """Return the number of items strictly below each threshold."""
        count: Index = np.searchsorted(self._uncertainty, thresholds, side="left")
        return count

    def largest_kept(self, kept: Index) -> Array:
        """Return the largest uncertainty of the first `kept` items; -inf for none."""
        return np.append(-np.inf, self._uncertainty)[kept]

    def share_right(self, correct: Flags, counted: Flags) -> RunningShare:
        """Return the share of correct items among the kept items that count."""
        counts, wrong = counted[self.order], (counted & ~correct)[self.order]
        return RunningShare(
            counted=_running(counts),
            wrong=_running(wrong),
            sums=self._cluster_sums(counts, wrong),
        )

    def share_referred(self) -> RunningShare:
        """Return the share of referred items among all items."""
        everyone = np.full(self.n + 1, self.n)
        return RunningShare(
            counted=everyone, wrong=np.arange(self.n + 1), sums=self._whole_clusters()
        )

    def _cluster_sums(self, counts: Flags, wrong: Flags) -> _ClusterSums | None:
        if self._cluster is None:
            return None
        counted_before = _before_in_cluster(counts, self._cluster)
        wrong_before = _before_in_cluster(wrong, self._cluster)
        counted_after, wrong_after = counted_before + counts, wrong_before + wrong
        return _ClusterSums(
            wrong_squared=_running(wrong_after**2 - wrong_before**2),
            products=_running(
                wrong_after * counted_after - wrong_before * counted_before
            ),
            counted_squared=_running(counted_after**2 - counted_before**2),
            units=_running(counts & (counted_before == 0)),
        )

    def _whole_clusters(self) -> _ClusterSums | None:
        """Return sums in which all items count, and kept items replace wrong ones."""
        if self._cluster is None:
            return None
        size = np.bincount(self._cluster)
        everyone = np.ones(self.n, np.bool_)
        before = _before_in_cluster(everyone, self._cluster)
        steps = np.ones(self.n + 1, np.int64)
        return _ClusterSums(
            wrong_squared=_running(2 * before + 1),
            products=_running(size[self._cluster]),
            counted_squared=int((size**2).sum()) * steps,
            units=int(np.count_nonzero(size)) * steps,
        )


def _running(steps: Index | Flags) -> Index:
    """Return the sums (N + 1,) of the first 0, 1, ..., N steps."""
    sums: Index = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])
    return sums


def _before_in_cluster(flags: Flags, cluster: Index) -> Index:
    """Return for each item the number of flagged items before it in its cluster."""
    order = np.argsort(cluster, kind="stable")
    grouped = flags[order].astype(np.int64)
    sums = np.cumsum(grouped) - grouped
    first = np.flatnonzero(np.append(True, np.diff(cluster[order]) > 0))
    size = np.diff(np.append(first, len(cluster)))
    counts = np.empty(len(cluster), np.int64)
    counts[order] = sums - np.repeat(sums[first], size)
    return counts
