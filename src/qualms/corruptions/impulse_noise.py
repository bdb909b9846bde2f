"""Impulse noise, as of lost bits ("salt and pepper"): ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image

SMALL = (0.01, 0.02, 0.03, 0.05, 0.07)
LARGE = (0.03, 0.06, 0.09, 0.17, 0.27)


def impulse_noise() -> Corruption:
    """Set a share of the values to 0 or 1; severity is the share."""
    return Corruption(families=("noise", "imagenet_c"), change=_change, least=1)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    share = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    hit = rng.random(image.shape) < share
    white = rng.random(image.shape) < 0.5
    return np.where(hit, white.astype(np.float64), image)
