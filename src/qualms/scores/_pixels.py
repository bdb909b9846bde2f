"""Checks of maps over pixels, which may have any number of axes.

A label map holds one class per pixel, in any integer type; inside a score it is uint8
and ignored pixels have one code. An uncertainty map holds one number per pixel, in any
float type; inside a score it is finite and float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Flags, Index
from qualms.scores.arguments import as_array, finite

Labels = NDArray[np.uint8]

# Inside the library an ignored pixel is 255, whatever value the caller ignores.
IGNORED = 255
# Pixels compared at once: blocks of this size stay in the cache.
BLOCK = 1 << 18


def checked_labels(
    name: str, values: ArrayLike, *, classes: int, ignore: int | None = None
) -> Labels:
    """Return `values` as uint8 classes, `IGNORED` where they equal `ignore`."""
    array = _integers(name, values, classes)
    if ignore is None:
        _check_range(name, array, classes)
        return array.astype(np.uint8, copy=False)
    dropped = array == ignore
    labels = np.where(dropped, 0, array)
    _check_range(name, labels, classes)
    labels = labels.astype(np.uint8, copy=False)
    labels[dropped] = IGNORED
    return labels


def real_map(name: str, values: ArrayLike, *, remedy: str = "") -> Array:
    """Return `values` as finite float64 numbers of any shape with at least one pixel.

    `remedy` ends the message about numbers that are not finite.
    """
    array = as_array(name, values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}")
    if array.size == 0:
        raise ValueError(f"{name} must have at least one pixel, got {array.shape}")
    array = array.astype(np.float64, copy=False)
    finite(name, array, remedy=remedy)
    return array


def pixel_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Flags:
    """Return `mask` as booleans of `shape`, true where a pixel counts."""
    chosen: NDArray[np.generic] = np.asarray(mask)
    if chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(
            f"mask must be booleans of shape {shape}, "
            f"got {chosen.dtype} of shape {chosen.shape}"
        )
    return chosen.astype(np.bool_, copy=False)


def check_stack(name: str, maps: NDArray[Any]) -> None:
    """Refuse anything but at least one map over space: (K, *space)."""
    if maps.ndim < 2:
        raise ValueError(
            f"{name} must have shape (K, *space), got {maps.shape}; "
            "add an axis in front of a single map"
        )
    if maps.size == 0:
        raise ValueError(f"{name} must have at least one pixel, got {maps.shape}")


def check_same_space(
    names: tuple[str, str], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    """Refuse two shapes that do not describe the same pixels."""
    if first != second:
        raise ValueError(
            f"{names[0]} and {names[1]} must cover the same pixels, "
            f"got {first} and {second}"
        )


def overlaps(first: Labels, second: Labels, *, classes: int) -> Index:
    """Return the numbers (K, L) of pixels on which maps agree; of two classes, class 1.

    `first` is (K, P) and `second` (L, P).
    """
    counts = np.zeros((len(first), len(second)), dtype=np.int64)
    alike = first is second
    for start in range(0, first.shape[1], BLOCK):
        a, b = (maps[:, start : start + BLOCK] for maps in (first, second))
        if classes == 2:
            bits = _packed(a)
            ones = bits, bits if alike else _packed(b)
        for i, j in np.ndindex(counts.shape):
            if not alike or i <= j:
                counts[i, j] += (
                    np.bitwise_count(ones[0][i] & ones[1][j]).sum(dtype=np.int64)
                    if classes == 2
                    else np.count_nonzero(a[i] == b[j])
                )
    return np.maximum(counts, counts.T) if alike else counts


def _packed(maps: Labels) -> NDArray[np.uint64]:
    """Return bits (K, W) that are set where maps (K, P) are 1, 64 pixels per number."""
    packed = np.packbits(maps == 1, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(np.uint64)


def sizes(maps: Labels, *, classes: int) -> Index:
    """Return the number (K,) of counted pixels of each map; of two classes, class 1."""
    marks = maps == 1 if classes == 2 else maps != IGNORED
    # Counting row by row is many times faster than counting along an axis.
    return np.array([np.count_nonzero(row) for row in marks], dtype=np.int64)


def _integers(name: str, values: ArrayLike, classes: int) -> NDArray[np.integer]:
    if not 2 <= classes <= IGNORED:
        raise ValueError(f"classes must lie in 2..{IGNORED}, got {classes}")
    array = as_array(name, values)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be integer classes, got an array of {array.dtype}; "
            "take the argmax of probabilities first"
        )
    if array.size == 0:
        raise ValueError(f"{name} must have at least one pixel, got {array.shape}")
    return array


def _check_range(name: str, array: NDArray[np.integer], classes: int) -> None:
    if array.min() >= 0 and array.max() < classes:
        return
    where = tuple(int(i) for i in np.argwhere((array < 0) | (array >= classes))[0])
    raise ValueError(
        f"{name} must lie in 0..{classes - 1} for {classes} classes, position {where} "
        f"is {array[where]}; pass ignore= if that value marks pixels to leave out"
    )
