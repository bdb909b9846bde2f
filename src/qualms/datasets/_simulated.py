"""What the simulators share: smaller sizes, units of a few items, box sampling."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import Unit

SAMPLES = 2
"""Samples per pixel along each axis."""
CHUNK = 250
"""Items in a unit: about a quarter of a second of work."""


def chosen_sizes(
    asked: Mapping[str, int] | None, full: Mapping[str, int]
) -> dict[str, int]:
    """Items per split: the paper's numbers, or those asked for instead of them."""
    sizes = dict(full)
    for split, size in (asked or {}).items():
        if split not in full:
            raise ValueError(
                f"sizes must name {', '.join(full)}, got {split!r}; remove it"
            )
        if not 1 <= size <= full[split]:
            raise ValueError(
                f"size of {split!r} must lie in 1..{full[split]}, got {size}"
            )
        sizes[split] = int(size)
    return sizes


def chunked(split: str, *columns: Sequence[int]) -> list[Unit]:
    """Units of up to `CHUNK` items whose `args` are the slices of `columns`."""
    return [
        Unit(
            key=f"{split}-{start // CHUNK:04d}",
            split=split,
            args=tuple(tuple(column[start : start + CHUNK]) for column in columns),
        )
        for start in range(0, len(columns[0]), CHUNK)
    ]


def shrink(canvas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the samples of each pixel of an image (2 H, 2 W, ...)."""
    top = canvas[::SAMPLES, ::SAMPLES] + canvas[::SAMPLES, 1::SAMPLES]
    bottom = canvas[1::SAMPLES, ::SAMPLES] + canvas[1::SAMPLES, 1::SAMPLES]
    return (top + bottom) / SAMPLES**2


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_seed(seed: int) -> None:
    """Raise unless `seed` can seed a generator."""
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
