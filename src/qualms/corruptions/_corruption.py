"""A corruption: what it does to an image, and which images it is for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.floating[Any]]
"""(*space, channels), as a rule between 0 and 1."""
Change = Callable[[Image, int, np.random.Generator], Image]
Move = Callable[[tuple[int, ...], int, np.random.Generator], NDArray[np.float64]]


def _unchanged(image: Image, _severity: int, _rng: np.random.Generator) -> Image:
    return image


def clipped(image: Any) -> Image:
    """Return an image without values below 0 and above 1."""
    return np.asarray(np.clip(image, 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """A way to change images, at severities 1 to 5.

    It changes the values of pixels, or it moves them; labels of pixels move with them.
    """

    families: tuple[str, ...]
    """Names that stand for several corruptions, such as "blur"."""
    change: Change = _unchanged
    """From an image (*space, channels) in 0..1, a severity and random numbers to the
    corrupted image."""
    move: Move | None = None
    """From the space of an image, a severity and random numbers to where each pixel
    comes from, (axes, *space); None if pixels stay where they are."""
    space: tuple[int, ...] = (2,)
    """Numbers of spatial axes: 2 for pictures, 3 for volumes."""
    least: int = 8
    """Pixels of the shortest side of an image, at least."""
