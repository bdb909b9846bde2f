"""Gaussian noise, as of a sensor in little light: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped

SMALL = (0.04, 0.06, 0.08, 0.09, 0.10)
LARGE = (0.08, 0.12, 0.18, 0.26, 0.38)


def gaussian_noise() -> Corruption:
    """Add noise to every channel of a pixel; severity is its standard deviation."""
    return Corruption(families=("noise", "imagenet_c"), change=_change, least=1)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    deviation = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    return clipped(image + deviation * rng.standard_normal(image.shape))
