"""Zoom blur, as of a camera that moves towards an object: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped
from qualms.corruptions._smooth import magnified

SMALL = ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))
LARGE = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
"""Magnifications go from 1 to below the first number, by steps of the second."""


def zoom_blur() -> Corruption:
    """Average magnified pictures; severity is how far they are magnified."""
    return Corruption(families=("blur", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    end, step = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    factors = np.arange(1.0, end, step)
    total = image + sum(magnified(image, factor) for factor in factors)
    return clipped(total / (len(factors) + 1))
