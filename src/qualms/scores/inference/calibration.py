"""Intervals of calibration errors, which are sums of absolute gaps.

A calibration error is never below its noise: a calibrated model has gaps that are all
noise, whose absolute values add up. Replicates add noise to noise, so that percentile
intervals lie above the truth. Here the noise of the gaps is drawn around 0, and an
error is kept as possible if gaps of that size, plus noise, look like those observed.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from qualms.arrays import Array, Index
from qualms.scores import calibration as errors
from qualms.scores._arrays import labelled, top_label
from qualms.scores._smooth import crossings, fixed_point, on_grid
from qualms.scores.inference._design import Design
from qualms.scores.inference._influence import (
    Influence,
    undefined,
    with_enough_errors,
)
from qualms.scores.inference.interval import student_quantile
from qualms.scores.regression import ALPHAS, item_level
from qualms.scores.ties import ranked_items

REPLICATES = 1_000
SMOOTH_REPLICATES = 250
LOWER_SHARE = 1.2
"""The upper end is missed less often than it may be; the lower end takes that up."""
ITEMS_PER_BIN = 30
"""Bins of equal mass, and of one class, need so many items on average."""
HALVINGS = 14
INVERTED = "inversion: sizes of the gaps that, with noise, give the observed error"
TOO_WIDE = "the interval of the smooth error is too wide where items stand in clusters"
MANY_BINS = (
    "with more than two classes no interval of the class-wise error was found that "
    "holds: most of its bins are nearly empty"
)


class Gaps(NamedTuple):
    """Gaps of bins as sums over items, each of which falls into one bin.

    An item of bin k adds its own gap there, and row k of `tilt` to all bins: one that a
    narrow interval holds is held by all wider ones.
    """

    cell: Index
    """(N,) bin of each item."""
    own: Array
    """(N,) its gap, over N."""
    tilt: Array
    """(bins, bins), over N."""
    total: Array
    """(bins,) the gaps."""

    def covariance(self, design: Design) -> Array:
        """(bins, bins) covariance of the gaps over new items or clusters."""
        bins, units = len(self.tilt), design.units()
        if design.cluster is None:
            found = self._of_items(design, bins)
        else:
            found = self._of_clusters(design, design.cluster, bins)
        scaled: Array = found * (units / max(units - 1, 1))
        return scaled

    def _of_items(self, design: Design, bins: int) -> Array:
        """(bins, bins) of items that stand alone, centred within samples."""
        if design.sample is None:
            return self._of_sample(self.cell, self.own, bins)
        found: Array = np.zeros((bins, bins))
        for part in np.unique(design.sample):
            inside = design.sample == part
            found += self._of_sample(self.cell[inside], self.own[inside], bins)
        return found

    def _of_sample(self, cell: Index, own: Array, bins: int) -> Array:
        count = np.bincount(cell, minlength=bins).astype(np.float64)
        first = np.bincount(cell, own, minlength=bins)
        second = np.bincount(cell, own**2, minlength=bins)
        crossed = first[:, None] * self.tilt
        square = (self.tilt * count[:, None]).T @ self.tilt
        mean = first + count @ self.tilt
        found: Array = np.diag(second) + crossed + crossed.T + square
        return found - np.outer(mean, mean) / max(len(cell), 1)

    def _of_clusters(self, design: Design, cluster: Index, bins: int) -> Array:
        """(bins, bins) of whole clusters, whose items are centred within samples."""
        items = len(self.cell)
        sample = np.zeros(items, np.int64)
        if design.sample is not None:
            # A set may lack a sample: shifted items hold none of the in-domain ones.
            sample = np.unique(design.sample, return_inverse=True)[1]
        size = np.bincount(sample)
        # What a cluster adds to the gaps is linear in a few sums over its items: most
        # are 0, so that all of them together are small.
        place = [self.cell, bins + self.cell, 2 * bins + sample]
        value = [self.own, np.ones(items), np.ones(items)]
        sums = sparse.coo_array(
            (np.concatenate(value), (np.tile(cluster, 3), np.concatenate(place))),
            shape=(int(cluster.max()) + 1, 2 * bins + len(size)),
        ).tocsr()
        pair = sample * bins + self.cell
        shape = len(size), bins
        first = np.bincount(pair, self.own, minlength=bins * len(size)).reshape(shape)
        count = np.bincount(pair, minlength=bins * len(size)).reshape(shape)
        mean = (first + count @ self.tilt) / size[:, None]
        weight = np.concatenate([np.eye(bins), self.tilt, -mean])
        found: Array = weight.T @ ((sums.T @ sums) @ weight)
        return found


def ece_influence(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Influence:
    """Expected calibration error in bins of equal width."""
    confidence, right = top_label(probs, target)
    cell = errors.equal_width_bin(confidence, bins)
    own = (right - confidence) / len(right)
    total: Array = np.bincount(cell, own, minlength=bins).astype(np.float64)
    return _inverted(Gaps(cell, own, np.zeros((bins, bins)), total))


def classwise_ece_influence(
    probs: ArrayLike, target: ArrayLike, *, bins: int = 15
) -> Influence:
    """Mean over classes of the error of that class's probability."""
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    value = errors.classwise_ece(checked, truth, bins=bins)
    if classes > 2:
        return undefined(MANY_BINS, value=value)
    # The gap of one class is that of the other with its sign changed, but for items
    # that lie on an edge: bins of class 1 alone tell everything.
    cell = errors.equal_width_bin(checked[:, 1], bins)
    own = (truth - checked[:, 1]) / items
    total: Array = np.bincount(cell, own, minlength=bins).astype(np.float64)
    mirrored = Gaps(cell, own, np.zeros((bins, bins)), total)
    return _filled_bins(_inverted(mirrored, value=value), items, bins)


def adaptive_ece_influence(
    probs: ArrayLike, target: ArrayLike, *, bins: int = 15
) -> Influence:
    """Expected calibration error in bins of equal mass."""
    confidence, right = top_label(probs, target)
    items = len(right)
    gap = (right - confidence) / items
    order, start = ranked_items(confidence)
    cumulated = np.concatenate([[0.0], np.cumsum(gap[order])])[start]
    edges = np.linspace(0.0, items, bins + 1)
    total = np.diff(np.interp(edges, start, cumulated))
    # The edges move with the items, too; what that adds is less than the error of
    # estimating it.
    cell, shares = _shared_cells(start, edges)
    cells = np.empty(items, np.int64)
    cells[order] = np.repeat(cell, np.diff(start))
    gaps = Gaps(cells, gap, np.zeros((len(shares),) * 2), total)
    return _filled_bins(_inverted(gaps, shares), items, bins)


def _shared_cells(start: Index, edges: Array) -> tuple[Index, Array]:
    """(G,) the cell of each tie group, and (cells, bins) the bins that a cell is of.

    A group that lies across an edge is a cell of its own, for its items belong to both
    bins in proportion.
    """
    bins = len(edges) - 1
    first = np.searchsorted(edges, start[:-1], side="right") - 1
    last = np.searchsorted(edges, start[1:], side="left") - 1
    across = np.flatnonzero(last > first)
    cell = first.copy()
    cell[across] = bins + np.arange(len(across))
    low, high = start[across, None], start[across + 1, None]
    inside = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    shares = np.maximum(inside, 0.0) / (high - low)
    return cell, np.concatenate([np.eye(bins), shares])


def regression_ece_influence(
    mean: ArrayLike,
    var: ArrayLike,
    target: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
) -> Influence:
    """Mean gap between nominal and observed coverage of central intervals."""
    nominal = np.sort(1.0 - np.asarray(alphas, dtype=np.float64))
    level = item_level(mean, var, target)
    items, levels = len(level), len(nominal)
    # Item of cell k lies inside all intervals from the k-th on, in none for k = K.
    cell = np.searchsorted(nominal, level, side="left")
    inside = np.arange(levels) >= np.arange(levels + 1)[:, None]
    tilt = np.zeros((levels + 1, levels + 1))
    tilt[:, :levels] = inside / items
    observed = np.cumsum(np.bincount(cell, minlength=levels + 1))[:levels] / items
    total = np.append(observed - nominal, 0.0)
    gaps = Gaps(cell.astype(np.int64), np.zeros(items), tilt, total)
    return _inverted(gaps, share=1.0 / levels)


def _inverted(
    gaps: Gaps,
    shares: Array | None = None,
    *,
    share: float = 1.0,
    value: float | None = None,
) -> Influence:
    """An influence whose interval comes from the gaps; the error is `share` of them.

    `shares` (cells, bins) says which bins the items of a cell are of, where cells are
    not the bins themselves.
    """
    size = float(np.abs(gaps.total).sum())

    def ends(design: Design, level: float) -> tuple[float, float]:
        covariance = gaps.covariance(_filled(design, len(gaps.cell)))
        if shares is not None:
            covariance = shares.T @ covariance @ shares
        low, high = inverted_ends(gaps.total, covariance, level)
        return low * share, min(1.0, high * share)

    return Influence(
        value=size * share if value is None else value,
        values=None,
        scale="linear",
        ends=ends,
        method=INVERTED,
    )


def _filled_bins(found: Influence, items: int, bins: int) -> Influence:
    """`found`, or no interval where bins hold so few items that all is noise."""
    if items >= ITEMS_PER_BIN * bins:
        return found
    reason = f"no interval holds with fewer than {ITEMS_PER_BIN * bins} items"
    return dataclasses.replace(found, reason=f"{reason} in {bins} bins")


def _filled(design: Design, items: int) -> Design:
    return design if design.items == items else Design(items=items)


def inverted_ends(gaps: Array, covariance: Array, level: float) -> tuple[float, float]:
    """Ends of the interval of sum |gaps| (bins,), whose noise has this covariance."""
    tail = (1.0 - level) / 2.0
    noise = _noise(covariance)
    size = float(np.abs(gaps).sum())
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # Gaps as they stand, and less half a standard error: how much of them is noise?
    clear = np.sign(gaps) * np.maximum(np.abs(gaps) - error / 2.0, 0.0)
    shapes = [shape for shape in (gaps, clear) if np.abs(shape).sum() > 0.0]
    low = min(
        (_least(shape, noise, size, tail * LOWER_SHARE) for shape in shapes),
        default=0.0,
    )
    high = max((_most(shape, noise, size, tail) for shape in shapes), default=size)
    # Absolute values add no less than the gaps with their signs.
    along = float((noise @ np.sign(gaps)).std())
    return low, max(high, size + student_quantile(level, math.inf) * along)


def _noise(covariance: Array) -> Array:
    """(B, bins) normal draws around 0, nearly the same for nearly equal covariances."""
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    drawn = rng.standard_normal((REPLICATES, len(size)))
    # The symmetric root: it does not depend on how the axes were found.
    root = (axes * np.sqrt(np.maximum(size, 0.0))) @ axes.T
    found: Array = drawn @ root
    return found


def _least(shape: Array, noise: Array, size: float, tail: float) -> float:
    """The smallest sum of gaps of this shape that reaches `size` often enough."""
    return _sought(
        shape, noise, lambda total: np.mean(total >= size) <= tail, size=size
    )


def _most(shape: Array, noise: Array, size: float, tail: float) -> float:
    """The largest sum of gaps of this shape that stays below `size` often enough."""
    return _sought(shape, noise, lambda total: np.mean(total <= size) > tail, size=size)


def _sought(
    shape: Array, noise: Array, below: Callable[[Array], np.bool_], *, size: float
) -> float:
    """By bisection: the sum of gaps at which `below` ceases to hold."""
    scale = float(np.abs(shape).sum())
    reach = float(np.quantile(np.abs(noise).sum(axis=1), 0.99))
    low, high = 0.0, (size + 1.5 * reach) / scale
    if not below(np.abs(noise).sum(axis=1)):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if below(np.abs(middle * shape + noise).sum(axis=1)):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0 * scale


def smooth_ece_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Calibration error without bins."""
    confidence, right = top_label(probs, target)
    residual = (right - confidence) / len(right)

    def ends(design: Design, level: float) -> tuple[float, float]:
        return _smooth_ends(confidence, residual, design, level)

    found = Influence(
        value=fixed_point(confidence, residual),
        values=None,
        scale="linear",
        ends=ends,
        method="norm bound: the error less that of the noise, and plus its spread",
        clustered=TOO_WIDE,
    )
    return with_enough_errors(found, int((~right).sum()), len(right))


def _smooth_ends(
    confidence: Array, residual: Array, design: Design, level: float
) -> tuple[float, float]:
    """The triangle inequality below, the spread of replicates above."""
    # The noise of many items is smoothed less, and needs a finer grid.
    steps = 1 << (7 if len(residual) < 5_000 else 9)
    grid = on_grid(confidence, residual, steps)
    cell = np.minimum((confidence * steps + 0.5).astype(np.int64), steps)
    gaps = Gaps(cell, residual, np.zeros((steps + 1, steps + 1)), grid)
    noise = _grid_noise(gaps, _filled(design, len(residual)))
    alone = crossings(noise, tolerance=1e-4)
    around = crossings(grid + noise, tolerance=1e-4)
    size = float(crossings(grid[None], tolerance=1e-7)[0])
    tail = (1.0 - level) / 2.0
    low = max(0.0, size - float(np.quantile(alone, 1.0 - tail)))
    high = size + student_quantile(level, math.inf) * float(around.std())
    return low, min(1.0, high)


def _grid_noise(gaps: Gaps, design: Design) -> Array:
    """(B, steps + 1) noise of many small gaps; quickly where items are independent."""
    if design.cluster is not None or design.sample is not None:
        return _noise(gaps.covariance(design))[:SMOOTH_REPLICATES]
    bins, items = len(gaps.total), len(gaps.cell)
    own = np.sqrt(np.bincount(gaps.cell, gaps.own**2, minlength=bins))
    drawn = np.random.default_rng(0).standard_normal((SMOOTH_REPLICATES, bins))
    # The covariance is diag(own^2) less the outer product of the gaps over N.
    axis = np.divide(
        np.bincount(gaps.cell, gaps.own, minlength=bins),
        own,
        out=np.zeros(bins),
        where=own > 0.0,
    )
    length = float(axis @ axis)
    if length > 0.0:
        shrunk = 1.0 - math.sqrt(max(0.0, 1.0 - length / items))
        drawn -= np.outer(drawn @ axis, axis) * (shrunk / length)
    found: Array = drawn * own
    return found
