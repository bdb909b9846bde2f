"""Glass blur, as behind a frosted window: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations. A pixel takes the value of one near it. The released code
means to exchange the two, and does so with grey pictures alone: those that were
published are in colour, and their pixels were copied.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped
from qualms.corruptions._smooth import gaussian
from qualms.jit import jit

SMALL = ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))
LARGE = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
"""Deviation of the blur before and after, pixels that one is moved by at most, and how
often."""


def glass_blur() -> Corruption:
    """Scatter neighbouring pixels; severity is how far and how often."""
    return Corruption(families=("blur", "imagenet_c"), change=_change, least=12)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    sigma, reach, times = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    scattered = np.ascontiguousarray(gaussian(image, sigma))
    high, wide = image.shape[:2]
    moves = rng.integers(-reach, reach, (times, high, wide, 2))
    _scatter(scattered, moves, reach)
    return clipped(gaussian(scattered, sigma))


@jit
def _scatter(image: Image, moves: NDArray[np.int64], reach: int) -> None:
    """Replace each pixel by one near it, from the last one on, several times."""
    high, wide, channels = image.shape
    for time in range(len(moves)):
        for row in range(high - reach, reach, -1):
            for column in range(wide - reach, reach, -1):
                y = row + moves[time, row - 1, column - 1, 0]
                x = column + moves[time, row - 1, column - 1, 1]
                for channel in range(channels):
                    image[row, column, channel] = image[y, x, channel]
