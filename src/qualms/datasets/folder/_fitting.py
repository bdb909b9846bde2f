"""Resize images to one size: stretched, padded or cropped.

Values are interpolated linearly; where an image shrinks the filter is as much wider, so
that every pixel counts. It is the rule of Pillow's BILINEAR, for any number of axes and
for more than 8 bits. Labels are those of the nearest pixel.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Fit = Literal["stretch", "pad", "crop"]


class ItemSize(NamedTuple):
    """Size that an image gets, and how it is fitted."""

    space: tuple[int, ...]
    fit: Fit = "stretch"


def fit_pixels(pixels: NDArray[Any], size: ItemSize) -> NDArray[Any]:
    """Resize an image (*space, channels) to (*size.space, channels), of its dtype."""
    old = pixels.shape[:-1]
    if old == size.space:
        return pixels
    changed = pixels.astype(np.float32)
    for axis, side in enumerate(_scaled_sides(old, size)):
        if side != changed.shape[axis]:
            changed = _resize(changed, axis, side)
    if pixels.dtype == np.uint8:
        changed = np.clip(np.rint(changed), 0, 255)
    return _frame(changed, size, 0).astype(pixels.dtype)


def fit_labels(
    labels: NDArray[np.uint8], size: ItemSize, outside: int
) -> NDArray[np.uint8]:
    """Resize labels (*space) to (*size.space); padded pixels are `outside`."""
    old = labels.shape
    if old == size.space:
        return labels
    for axis, side in enumerate(_scaled_sides(old, size)):
        nearest = ((np.arange(side) + 0.5) * old[axis] / side).astype(np.intp)
        labels = labels.take(nearest, axis=axis)
    framed: NDArray[np.uint8] = _frame(labels[..., None], size, outside)[..., 0]
    return framed


def fitted_spacing(
    spacing: Sequence[float], old: Sequence[int], size: ItemSize
) -> tuple[float, ...]:
    """Return the distances between the pixels of an image that is fitted to `size`."""
    sides = old if tuple(old) == size.space else _scaled_sides(old, size)
    return tuple(
        gap * before / after
        for gap, before, after in zip(spacing, old, sides, strict=True)
    )


def _scaled_sides(old: Sequence[int], size: ItemSize) -> tuple[int, ...]:
    """Return the sides after scaling, before anything is padded or cropped."""
    if size.fit == "stretch":
        return size.space
    ratios = [new / side for new, side in zip(size.space, old, strict=True)]
    ratio = min(ratios) if size.fit == "pad" else max(ratios)
    return tuple(max(1, round(side * ratio)) for side in old)


def _frame(pixels: NDArray[Any], size: ItemSize, outside: int) -> NDArray[Any]:
    """Return the middle of `pixels`, or all of it with a margin."""
    framed = np.full((*size.space, pixels.shape[-1]), outside, pixels.dtype)
    source, target = [], []
    for old, new in zip(pixels.shape, size.space, strict=False):
        common = min(old, new)
        source.append(slice((old - common) // 2, (old - common) // 2 + common))
        target.append(slice((new - common) // 2, (new - common) // 2 + common))
    framed[tuple(target)] = pixels[tuple(source)]
    return framed


def _resize(pixels: NDArray[np.float32], axis: int, side: int) -> NDArray[np.float32]:
    """Resize `pixels` along one axis."""
    front = np.moveaxis(pixels, axis, 0)
    flat = _weights(front.shape[0], side) @ front.reshape(front.shape[0], -1)
    changed = np.asarray(flat, dtype=np.float32).reshape(side, *front.shape[1:])
    return np.moveaxis(changed, 0, axis)


def _weights(old: int, new: int) -> "csr_matrix":
    """Compute the weight (new, old) of each old pixel in a new one: a triangle."""
    from scipy.sparse import csr_matrix

    scale = old / new
    reach = max(scale, 1.0)
    centre = (np.arange(new) + 0.5) * scale
    first = np.maximum((centre - reach + 0.5).astype(np.intp), 0)
    last = np.minimum((centre + reach + 0.5).astype(np.intp), old)
    count = last - first
    row = np.repeat(np.arange(new), count)
    start = np.repeat(np.cumsum(count) - count, count)
    column = np.arange(count.sum()) - start + np.repeat(first, count)
    share = np.maximum(0.0, 1 - np.abs((column + 0.5 - centre[row]) / reach))
    share /= np.bincount(row, share)[row]
    return csr_matrix((share.astype(np.float32), (row, column)), shape=(new, old))
