"""Shot noise, as light comes in whole photons: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped

SMALL = (500, 250, 100, 75, 50)
LARGE = (60, 25, 12, 5, 3)


def shot_noise() -> Corruption:
    """Count photons; severity is how many a white pixel has, the fewer the worse."""
    return Corruption(families=("noise", "imagenet_c"), change=_change, least=1)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    photons = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    counted = rng.poisson(np.clip(image, 0.0, 1.0) * photons) / photons
    return clipped(counted)
