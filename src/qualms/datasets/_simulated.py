"""Units of a few items and sampling of pixels, shared by the simulators."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import Unit

SAMPLES = 2
"""Samples per pixel along each axis."""
CHUNK = 250
"""Items in a unit: about a quarter of a second of work."""


def chunked(
    split: str, *columns: Sequence[int] | Sequence[str], most: int = CHUNK
) -> list[Unit]:
    """Make units of up to `most` items; their `args` are slices of `columns`."""
    return [
        Unit(
            key=f"{split}-{start // most:04d}",
            split=split,
            args=tuple(tuple(column[start : start + most]) for column in columns),
        )
        for start in range(0, len(columns[0]), most)
    ]


def shrink(canvas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the samples of each pixel of an image (2 H, 2 W, ...)."""
    top = canvas[::SAMPLES, ::SAMPLES] + canvas[::SAMPLES, 1::SAMPLES]
    bottom = canvas[1::SAMPLES, ::SAMPLES] + canvas[1::SAMPLES, 1::SAMPLES]
    return (top + bottom) / SAMPLES**2
