"""Motion blur, as of a camera that moves: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations. Theirs is the blur of ImageMagick, whose rule ours is.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image
from qualms.corruptions._smooth import trail

SMALL = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))
LARGE = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
"""Radius and standard deviation of the trail, in pixels."""
STEEPEST = 45.0


def motion_blur() -> Corruption:
    """Draw a trail in a random direction; severity is its length."""
    return Corruption(families=("blur", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    radius, sigma = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    return trail(image, radius, sigma, rng.uniform(-STEEPEST, STEEPEST))
