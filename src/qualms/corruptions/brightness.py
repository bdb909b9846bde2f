"""Brightness, as of daylight: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image

SMALL = (0.05, 0.1, 0.15, 0.2, 0.3)
LARGE = (0.1, 0.2, 0.3, 0.4, 0.5)


def brightness() -> Corruption:
    """Add to the value of a colour, keeping hue and saturation."""
    return Corruption(families=("weather", "imagenet_c"), change=_change, least=1)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    added = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    value = image.max(axis=-1, keepdims=True)
    brighter = np.clip(value + added, 0.0, 1.0)
    # Colours of one hue and saturation are multiples; black becomes grey.
    scaled = image * brighter / np.where(value > 0.0, value, 1.0)
    return np.asarray(np.where(value > 0.0, scaled, brighter))
