"""Fog: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped
from qualms.corruptions._plasma import plasma

SMALL = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))
LARGE = ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))
"""Thickness of the fog, and how fast its smaller clouds fade."""


def fog() -> Corruption:
    """Lay clouds over the picture; severity is how thick they are."""
    return Corruption(families=("weather", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    space = image.shape[:-1]
    thickness, decay = by_size(space, severity, small=SMALL, large=LARGE)
    most = image.max()
    foggy = image + thickness * plasma(space, decay, rng)[..., None]
    return clipped(foggy * most / (most + thickness))
