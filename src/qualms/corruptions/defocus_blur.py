"""Defocus blur, as of a lens that is not in focus: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate, correlate1d

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped

SMALL = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))
LARGE = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))
"""Radius of the disk, and the deviation of the Gaussian that smooths its rim."""
NARROW = 8
"""Largest radius whose disk has 17 x 17 pixels and a rim smoothed by 3 x 3."""


def defocus_blur() -> Corruption:
    """Replace a pixel by the mean of a disk; severity is its radius."""
    return Corruption(families=("blur", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    radius, rim = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    disk = _disk(radius, rim)
    channels = [
        correlate(image[..., channel], disk, mode="mirror")
        for channel in range(image.shape[-1])
    ]
    return clipped(np.stack(channels, axis=-1))


def _disk(radius: float, rim: float) -> NDArray[np.float64]:
    reach, smoothed = (NARROW, 1) if radius <= NARROW else (int(radius), 2)
    axis = np.arange(-reach, reach + 1)
    disk = (axis[:, None] ** 2 + axis**2 <= radius**2).astype(np.float64)
    disk /= disk.sum()
    weight = np.exp(-np.square(np.arange(-smoothed, smoothed + 1)) / (2 * rim**2))
    weight /= weight.sum()
    for along in (0, 1):
        disk = correlate1d(disk, weight, axis=along, mode="mirror")
    return disk
