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
    asked: Mapping[str, int] | None,
    usual: Mapping[str, int],
    most: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Items per split: the usual numbers, or those asked for instead of them.

    Args:
        asked: items of some splits; None asks for none.
        usual: items of every split.
        most: the most that can be asked for, where that is not the usual number.
    """
    if asked is not None and not isinstance(asked, Mapping):
        raise ValueError(f"sizes must be a mapping of splits or None, got {asked!r}")
    sizes, limits = dict(usual), most or usual
    for split, size in (asked or {}).items():
        if split not in limits:
            raise ValueError(
                f"sizes must name {', '.join(limits)}, got {split!r}; remove it"
            )
        sizes[split] = whole(f"size of {split!r}", size)
        if not 1 <= size <= limits[split]:
            raise ValueError(
                f"size of {split!r} must lie in 1..{limits[split]}, got {size}"
            )
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


def whole(name: str, value: int, *, least: int | None = None) -> int:
    """`value` as an int, as options need it; what is no whole number is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)
