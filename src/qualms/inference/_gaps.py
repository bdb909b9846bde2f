"""Intervals of calibration errors, which are sums of absolute gaps.

A calibration error is never below its noise: a calibrated model has gaps that are all
noise, whose absolute values add up. Replicates add noise to noise, so that percentile
intervals lie above the truth. Here the noise of the gaps is drawn around 0, and an
error is kept as possible if gaps of that size, plus noise, look like those observed.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import sparse

from qualms.arrays import Array, Index
from qualms.inference._design import Design
from qualms.inference._shares import student_quantile
from qualms.scores.calibration import bin_by_class
from qualms.scores.influence import BinGaps, ClassGaps, SmoothGaps
from qualms.scores.smoothing import crossings, on_grid

REPLICATES = 1_000
SMOOTH_REPLICATES = 250
LOWER_SHARE = 1.2
"""Factor on the tail of the lower end, as the upper end is missed less than allowed."""
FEW_NESTED, NESTED_SHARE = 1_000, 0.6
"""With fewer items than `FEW_NESTED`, nested levels spend only this share of the error,
because the noise of their gaps is taken at the observed shape."""
FEW_CLUSTERS, CLUSTERED_SHARE = 100, 0.5
"""The same for clusters, which leave most bins with the items of a few."""
HALVINGS = 14
INVERTED = "inversion: sizes of the gaps that, with noise, give the observed error"
BLOCK = 1 << 16
"""Items whose bins of all classes are in memory at a time."""
NORM_BOUND = "norm bound: the error less that of the noise, and plus its spread"
CLASS_BOUND = f"the error less that of the noise; above, {INVERTED}"


def covariance(gaps: BinGaps, design: Design) -> Array:
    """Return the covariance (bins, bins) of the gaps over new items or clusters."""
    units = design.units()
    if design.cluster is None:
        cells = _of_items(gaps, design)
    else:
        cells = _of_clusters(gaps, design, design.cluster)
    cells *= units / max(units - 1, 1)
    return cells if gaps.shares is None else gaps.shares.T @ cells @ gaps.shares


def _of_items(gaps: BinGaps, design: Design) -> Array:
    """Return the covariance of cells over independent items, within samples."""
    tilt = _tilt(gaps)
    if design.sample is None:
        return _of_sample(gaps.cell, gaps.own, tilt)
    total: Array = np.zeros(tilt.shape)
    for part in np.unique(design.sample):
        inside = design.sample == part
        total += _of_sample(gaps.cell[inside], gaps.own[inside], tilt)
    return total


def _tilt(gaps: BinGaps) -> Array:
    """Return the contribution of an item of each cell to all cells, (cells, cells)."""
    if gaps.tilt is not None:
        return gaps.tilt
    cells = len(gaps.total if gaps.shares is None else gaps.shares)
    return np.zeros((cells, cells))


def _of_sample(cell: Index, gap: Array, tilt: Array) -> Array:
    cells = len(tilt)
    count = np.bincount(cell, minlength=cells).astype(np.float64)
    first = np.bincount(cell, gap, minlength=cells)
    second = np.bincount(cell, gap**2, minlength=cells)
    crossed = first[:, None] * tilt
    square = (tilt * count[:, None]).T @ tilt
    mean = first + count @ tilt
    moments: Array = np.diag(second) + crossed + crossed.T + square
    return moments - np.outer(mean, mean) / max(len(cell), 1)


def _of_clusters(gaps: BinGaps, design: Design, cluster: Index) -> Array:
    """Return the covariance of cells over clusters, centred within samples."""
    items, tilt = len(gaps.cell), _tilt(gaps)
    cells = len(tilt)
    sample = np.zeros(items, np.int64)
    if design.sample is not None:
        # A subset may lack a sample: shifted items hold none of the in-domain ones.
        sample = np.unique(design.sample, return_inverse=True)[1]
    size = np.bincount(sample)
    # The contribution of a cluster to the gaps is linear in a few sums over its items.
    # Most sums are 0, so the sparse matrix of all of them is small.
    place = [gaps.cell, cells + gaps.cell, 2 * cells + sample]
    value = [gaps.own, np.ones(items), np.ones(items)]
    sums = sparse.coo_array(
        (np.concatenate(value), (np.tile(cluster, 3), np.concatenate(place))),
        shape=(int(cluster.max()) + 1, 2 * cells + len(size)),
    ).tocsr()
    pair = sample * cells + gaps.cell
    shape = len(size), cells
    first = np.bincount(pair, gaps.own, minlength=cells * len(size)).reshape(shape)
    count = np.bincount(pair, minlength=cells * len(size)).reshape(shape)
    mean = (first + count @ tilt) / size[:, None]
    weight = np.concatenate([np.eye(cells), tilt, -mean])
    product: Array = weight.T @ ((sums.T @ sums) @ weight)
    return product


def bin_ends(gaps: BinGaps, design: Design, level: float) -> tuple[float, float]:
    """Return the ends of the interval of an error that sums the gaps of bins."""
    whole = filled(design, len(gaps.cell))
    noise = covariance(gaps, whole)
    if whole.cluster is not None:
        along = whole.spread(gaps.own * np.sign(_cell_gaps(gaps))[gaps.cell])
        freedom = along.freedom if along.variance > 0.0 else math.inf
        noise, level = _over_clusters(noise, whole.units(), level, freedom)
    if gaps.tilt is not None and whole.units() < FEW_NESTED:
        level = 1.0 - NESTED_SHARE * (1.0 - level)
    low, high = inverted_ends(gaps.total, noise, level)
    return low * gaps.factor, min(1.0, high * gaps.factor)


def _over_clusters(
    noise: Array, clusters: int, level: float, freedom: float = math.inf
) -> tuple[Array, float]:
    """Return a covariance, which is itself uncertain over few clusters, and the level.

    It has no more than `freedom` degrees of freedom.
    """
    if clusters < FEW_CLUSTERS:
        level = 1.0 - CLUSTERED_SHARE * (1.0 - level)
    quantile = student_quantile(level, min(freedom, (clusters - 1) / 2.0))
    return noise * (quantile / student_quantile(level, math.inf)) ** 2, level


def _cell_gaps(gaps: BinGaps) -> Array:
    cells = np.bincount(gaps.cell, gaps.own, minlength=len(_tilt(gaps)))
    return cells.astype(np.float64, copy=False)


def filled(design: Design, items: int) -> Design:
    """Return `design`, or that of independent items where it is of none."""
    return design if design.items == items else Design(items=items)


def inverted_ends(gaps: Array, covariance: Array, level: float) -> tuple[float, float]:
    """Return the ends of the interval of sum |gaps| (bins,) with noise like this."""
    tail = (1.0 - level) / 2.0
    noise = _noise(covariance)
    size = float(np.abs(gaps).sum())
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # The observed gaps, and the same less half a standard error of noise.
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
    """Return normal draws (B, bins), nearly the same for nearly equal covariances."""
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    draws = rng.standard_normal((REPLICATES, len(size)))
    # The symmetric root: it does not depend on how the axes were found.
    root = (axes * np.sqrt(np.maximum(size, 0.0))) @ axes.T
    noise: Array = draws @ root
    return noise


def _least(shape: Array, noise: Array, size: float, tail: float) -> float:
    """Return the least sum of gaps of this shape that reaches `size` often enough."""
    return _sought(
        shape, noise, lambda total: np.mean(total >= size) <= tail, size=size
    )


def _most(shape: Array, noise: Array, size: float, tail: float) -> float:
    """Return the largest sum of gaps of this shape that often stays below `size`."""
    return _sought(shape, noise, lambda total: np.mean(total <= size) > tail, size=size)


def _sought(
    shape: Array, noise: Array, below: Callable[[Array], np.bool_], *, size: float
) -> float:
    """Return, by bisection, the sum of gaps at which `below` ceases to hold."""
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


def gap_ends(
    gaps: BinGaps | ClassGaps | SmoothGaps, design: Design, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of an error that sums gaps of any kind."""
    if isinstance(gaps, BinGaps):
        return bin_ends(gaps, design, level)
    if isinstance(gaps, ClassGaps):
        return class_ends(gaps, design, level)
    return smooth_ends(gaps, design, level)


def class_ends(gaps: ClassGaps, design: Design, level: float) -> tuple[float, float]:
    """Return the ends of the interval of an error that is a mean over classes.

    Most of its bins hold noise alone, which inversion mistakes for gaps. So the lower
    end is by the triangle inequality.
    """
    whole = filled(design, len(gaps.target))
    total, noise = _class_noise(gaps, whole)
    if whole.cluster is not None:
        noise, level = _over_clusters(noise, whole.units(), level)
    tail = (1.0 - level) / 2.0
    alone = np.abs(_noise(noise)).sum(axis=1)
    low = float(np.abs(total).sum()) - float(np.quantile(alone, 1.0 - tail))
    _, high = inverted_ends(total, noise, level)
    classes = gaps.probs.shape[1]
    return max(0.0, low) / classes, min(2.0, high) / classes


def _class_noise(gaps: ClassGaps, design: Design) -> tuple[Array, Array]:
    """Return the gaps (cells,) of all classes and their covariance (cells, cells)."""
    items, classes = gaps.probs.shape
    sample = np.zeros(items, np.int64)
    if design.sample is not None:
        sample = np.unique(design.sample, return_inverse=True)[1]
    size = np.bincount(sample)
    cells = gaps.bins * classes
    total, gram = np.zeros((len(size), cells)), np.zeros((cells + len(size),) * 2)
    step = BLOCK if design.cluster is None else items  # clusters may lie anywhere
    for start in range(0, items, step):
        part = slice(start, start + step)
        own = -gaps.probs[part]
        own[np.arange(len(own)), gaps.target[part]] += 1.0
        cell, own = bin_by_class(gaps.probs[part], gaps.bins), own / items
        unit = np.arange(len(own)) if design.cluster is None else design.cluster
        np.add.at(total, (sample[part, None], cell), own)
        # A unit contributes its gaps, and the number of its items of each sample.
        value = np.concatenate([own.ravel(), np.ones(len(own))])
        row = np.concatenate([np.repeat(unit, classes), unit])
        column = np.concatenate([cell.ravel(), cells + sample[part]])
        shape = int(unit.max()) + 1, len(gram)
        sums = sparse.coo_array((value, (row, column)), shape=shape).tocsr()
        gram += (sums.T @ sums).toarray()
    weight = np.concatenate([np.eye(cells), -total / size[:, None]])
    units = design.units()
    covariance = weight.T @ gram @ weight * (units / max(units - 1, 1))
    return total.sum(axis=0), covariance


def smooth_ends(gaps: SmoothGaps, design: Design, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a smooth error.

    By the triangle inequality below, by the spread of replicates above.
    """
    confidence, residual = gaps
    # The noise of many items is smoothed less, and needs a finer grid.
    steps = 1 << (7 if len(residual) < 5_000 else 9)
    grid = on_grid(confidence, residual, steps)
    cell = np.minimum((confidence * steps + 0.5).astype(np.int64), steps)
    noise = _grid_noise(BinGaps(cell, residual, grid), filled(design, len(residual)))
    alone = crossings(noise, tolerance=1e-4)
    around = crossings(grid + noise, tolerance=1e-4)
    size = float(crossings(grid[None], tolerance=1e-7)[0])
    tail = (1.0 - level) / 2.0
    low = max(0.0, size - float(np.quantile(alone, 1.0 - tail)))
    high = size + student_quantile(level, math.inf) * float(around.std())
    return low, min(1.0, high)


def _grid_noise(gaps: BinGaps, design: Design) -> Array:
    """Return noise (B, steps + 1) of many gaps; quickly for independent items."""
    if design.cluster is not None or design.sample is not None:
        return _noise(covariance(gaps, design))[:SMOOTH_REPLICATES]
    bins, items = len(gaps.total), len(gaps.cell)
    error = np.sqrt(np.bincount(gaps.cell, gaps.own**2, minlength=bins))
    draws = np.random.default_rng(0).standard_normal((SMOOTH_REPLICATES, bins))
    # The covariance is diag(own^2) less the outer product of the gaps over N.
    axis = np.divide(
        np.bincount(gaps.cell, gaps.own, minlength=bins),
        error,
        out=np.zeros(bins),
        where=error > 0.0,
    )
    length = float(axis @ axis)
    if length > 0.0:
        shrunk = 1.0 - math.sqrt(max(0.0, 1.0 - length / items))
        draws -= np.outer(draws @ axis, axis) * (shrunk / length)
    noise: Array = draws * error
    return noise
