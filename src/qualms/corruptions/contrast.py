"""Low contrast: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped

SMALL = (0.75, 0.5, 0.4, 0.3, 0.15)
LARGE = (0.4, 0.3, 0.2, 0.1, 0.05)


def contrast() -> Corruption:
    """Shrink each channel towards its mean; severity is the share that is left."""
    return Corruption(families=("digital", "imagenet_c"), change=_change, least=1)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    share = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    mean = image.mean(axis=(0, 1), keepdims=True)
    return clipped((image - mean) * share + mean)
