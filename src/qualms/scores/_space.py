"""Uncertainty maps at the door: any shape, any float type, finite, float64."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.scores._arrays import Array, Flags, finite


def real_map(name: str, values: ArrayLike) -> Array:
    """`values` as finite float64 numbers of any shape with at least one pixel."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}")
    if array.size == 0:
        raise ValueError(f"{name} must have at least one pixel, got {array.shape}")
    array = array.astype(np.float64, copy=False)
    finite(name, array)
    return array


def pixel_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Flags:
    """`mask` as booleans of `shape`, true where a pixel counts."""
    chosen: NDArray[np.generic] = np.asarray(mask)
    if chosen.dtype != np.bool_ or chosen.shape != shape:
        raise ValueError(
            f"mask must be booleans of shape {shape}, "
            f"got {chosen.dtype} of shape {chosen.shape}"
        )
    return chosen.astype(np.bool_, copy=False)
