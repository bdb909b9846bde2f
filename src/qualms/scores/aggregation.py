"""One uncertainty per item from its uncertainty map.

Sum, patch and threshold are those of Kahl et al. (2024, section 4.3). The others depend
on the position of the uncertainty in the map: its highest values, the part away from
predicted boundaries, or the sum relative to the size of the object. Maps may have any
number of axes and any float type. Sums are taken in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from qualms.arrays import Array, Flags
from qualms.scores._pixel_kernels import window_sums
from qualms.scores._pixels import (
    IGNORED,
    Labels,
    check_same_space,
    check_stack,
    checked_labels,
    pixel_mask,
    real_map,
)

__all__ = [
    "aggregate_boundary",
    "aggregate_image",
    "aggregate_object",
    "aggregate_patch",
    "aggregate_quantile",
    "aggregate_threshold",
    "background_share",
    "boundary_band",
    "patch_position",
    "patch_size",
    "threshold_from_validation",
]


def aggregate_image(
    uncertainty_map: ArrayLike, *, mask: ArrayLike | None = None
) -> float:
    """Return the sum of the map over the pixels of `mask` (0 without pixels).

    >>> aggregate_image(np.array([[0.1, 0.2], [0.3, 0.4]]))
    1.0
    """
    values = real_map("uncertainty_map", uncertainty_map)
    if mask is not None:
        values = values[pixel_mask(mask, values.shape)]
    return float(values.sum())


def aggregate_patch(uncertainty_map: ArrayLike, *, size: int = 10) -> float:
    """Return the largest sum over a window of `size` pixels along every axis.

    >>> aggregate_patch(np.array([0.1, 0.5, 0.4, 0.0]), size=2)
    0.9
    """
    return float(_window_sums(uncertainty_map, size).max())


def patch_size(shape: Sequence[int], *, size: int = 10) -> int:
    """Return the side of the window: `size`, or the map's shortest side if less.

    >>> patch_size((64, 64, 8))
    8
    """
    return min((size, *shape))


def patch_position(uncertainty_map: ArrayLike, *, size: int = 10) -> tuple[int, ...]:
    """Return the first corner of the window of `aggregate_patch`, one index per axis.

    Windows that differ by rounding alone count as equal; the first of them is given.

    >>> patch_position(np.array([0.1, 0.5, 0.4, 0.0]), size=2)
    (1,)
    """
    sums = _window_sums(uncertainty_map, size)
    highest = sums.max()
    near = sums >= highest - 1e-12 * abs(highest)
    corner = np.unravel_index(int(near.argmax()), sums.shape)
    return tuple(int(index) for index in corner)


def aggregate_threshold(uncertainty_map: ArrayLike, *, threshold: float) -> float:
    """Return the mean of the values at or above `threshold`; 0 without such values.

    >>> aggregate_threshold(np.array([0.1, 0.5, 0.4, 0.0]), threshold=0.4)
    0.45
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}")
    values = real_map("uncertainty_map", uncertainty_map)
    above = values[values >= threshold]
    return float(above.mean()) if above.size else 0.0


def aggregate_quantile(uncertainty_map: ArrayLike, *, share: float = 0.05) -> float:
    """Return the mean of the highest values: of the least certain `share` of pixels.

    These are ceil(share * pixels) values, so at least one. Every item has a threshold
    of its own, unlike in `aggregate_threshold`.

    >>> aggregate_quantile(np.array([0.1, 0.5, 0.4, 0.0]), share=0.5)
    0.45
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    values = real_map("uncertainty_map", uncertainty_map).ravel()
    # 0.07 * 100 is 7.000000000000001 instead of 7.
    few = max(1, math.ceil(share * values.size - 1e-9))
    return float(np.partition(values, -few)[-few:].mean())


def boundary_band(labels: ArrayLike, *, width: int = 2) -> Flags:
    """Return a mask of the pixels within `width` pixels of another label.

    The window of such a pixel, 2 `width` + 1 pixels along every axis as far as it lies
    in the map, holds more than one label.

    >>> boundary_band(np.array([0, 0, 0, 1, 1, 1]), width=1)
    array([False, False,  True,  True, False, False])
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    classes = np.atleast_1d(checked_labels("labels", labels, classes=IGNORED))
    windows = (f(classes, 2 * width + 1) for f in (maximum_filter, minimum_filter))
    highest, lowest = windows
    return np.asarray(highest != lowest)


def aggregate_boundary(
    uncertainty_map: ArrayLike, band: ArrayLike, *, within: bool = False
) -> float:
    """Return the mean of the map outside `band`, the `boundary_band` of the prediction.

    Borders are uncertain in every image, in proportion to their length, whether it is
    segmented well or not; the rest shows more about failures (Zenk et al., 2025). With
    `within`, the mean inside the band. 0 if no pixel is left.

    >>> values, band = np.array([0.1, 0.5, 0.4, 0.0]), np.array([0, 1, 1, 0], bool)
    >>> aggregate_boundary(values, band), aggregate_boundary(values, band, within=True)
    (0.05, 0.45)
    """
    values = real_map("uncertainty_map", uncertainty_map)
    near = pixel_mask(band, values.shape)
    left = values[near if within else ~near]
    return float(left.mean()) if left.size else 0.0


def aggregate_object(uncertainty_map: ArrayLike, labels: ArrayLike) -> float:
    """Return the sum of the map over the size of the object: all but class 0.

    A sum grows with the object's surface, so that large objects seem uncertain (Kahl et
    al., 2024, figure 8). If nothing is predicted, the result is the sum itself.

    >>> aggregate_object(np.array([0.1, 0.5, 0.4, 0.0]), np.array([0, 1, 1, 0]))
    0.5
    """
    values = real_map("uncertainty_map", uncertainty_map)
    classes = checked_labels("labels", labels, classes=IGNORED)
    check_same_space(("uncertainty_map", "labels"), values.shape, classes.shape)
    return float(values.sum() / max(np.count_nonzero(classes), 1))


def threshold_from_validation(
    maps: Iterable[ArrayLike], label_maps: Iterable[ArrayLike]
) -> float:
    """Return the threshold above which the share of pixels is that of the foreground.

    The `background_share` quantile, by linear interpolation, of all validation maps
    pooled (Kahl et al., 2024, appendix F.2). Both arguments are read once, so they may
    be generators; only the pooled values are stored, as float32 unless a map is
    float64.

    Args:
        maps: One uncertainty map per validation item.
        label_maps: Label maps (K, *space) of each item: those of its draws and of the
            mean prediction.

    >>> threshold_from_validation([np.arange(5.0)], [np.array([[0, 1, 0, 0]])])
    3.0
    """
    return pooled_quantile(maps, background_share(label_maps))


def background_share(label_maps: Iterable[ArrayLike]) -> float:
    """Return the mean share of class 0 in the label maps (K, *space) of each item.

    >>> background_share([np.array([[0, 1, 0, 0]]), np.array([[0, 1], [1, 1]])])
    0.5
    """
    shares = [float(item_shares(maps).mean()) for maps in label_maps]
    if not shares:
        raise ValueError("label_maps must hold at least one item, got none")
    return float(np.mean(shares))


def item_shares(maps: ArrayLike) -> Array:
    """Return the shares (K,) of class 0 in the label maps (K, *space) of one item."""
    labels = _flat_labels(maps)
    return np.asarray(1.0 - np.count_nonzero(labels, axis=1) / labels.shape[1])


def pooled_quantile(maps: Iterable[ArrayLike], share: float) -> float:
    """Return the linearly interpolated quantile of all values of `maps` together.

    All values are stored, 4 bytes each (8 for float64 maps). `PooledCounts` needs only
    bounded memory.
    """
    flat = [_compact(values) for values in maps]
    if not flat:
        raise ValueError("maps must hold at least one item, got none")
    pooled = np.concatenate(flat)
    place = share * (pooled.size - 1)
    below = int(place)
    above = min(below + 1, pooled.size - 1)
    pooled.partition((below, above))
    low, high = float(pooled[below]), float(pooled[above])
    return low + (place - below) * (high - low)


def _window_sums(uncertainty_map: ArrayLike, size: int) -> Array:
    """Return the sums over all windows, along one axis after the other."""
    sums = np.atleast_1d(real_map("uncertainty_map", uncertainty_map))
    if size < 1 or min(sums.shape) < size:
        raise ValueError(
            f"size must lie in 1..{min(sums.shape)}, the shortest axis of a map of "
            f"shape {sums.shape}, got {size}"
        )
    for axis, length in enumerate(sums.shape):
        shape = (*sums.shape[:axis], length - size + 1, *sums.shape[axis + 1 :])
        step = math.prod(sums.shape[axis + 1 :])
        # Neighbouring pixels along this axis are `step` apart in a row.
        rows = np.ascontiguousarray(sums).reshape(-1, length * step)
        windows = np.empty((len(rows), shape[axis] * step))
        window_sums(rows, windows, step, size)
        sums = windows.reshape(shape)
    return sums


def _compact(values: ArrayLike) -> NDArray[np.floating]:
    checked = real_map("maps", values).ravel()
    if np.asarray(values).dtype == np.float64:
        return checked
    return checked.astype(np.float32)


def _flat_labels(maps: ArrayLike) -> Labels:
    labels = checked_labels("label_maps", maps, classes=IGNORED)
    check_stack("label_maps", labels)
    return labels.reshape(len(labels), -1)
