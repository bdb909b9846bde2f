"""Snow: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np

from qualms.corruptions._by_size import by_size
from qualms.corruptions._colour import grey
from qualms.corruptions._corruption import Corruption, Image, clipped
from qualms.corruptions._smooth import magnified, trail

SMALL = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
)
LARGE = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
"""Mean and deviation of the noise that flakes are made of, how much it is magnified,
the threshold of a flake, radius and deviation of its trail, and the share of the
picture that is not whitened."""
SLOPES = (-135.0, -45.0)


def snow() -> Corruption:
    """Whiten the picture and let flakes fall; severity is how many and how long."""
    return Corruption(families=("weather", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    mean, deviation, factor, threshold, radius, sigma, clear = by_size(
        image.shape[:-1], severity, small=SMALL, large=LARGE
    )
    noise = mean + deviation * rng.standard_normal((*image.shape[:2], 1))
    flakes = magnified(noise, factor)
    flakes = np.clip(np.where(flakes < threshold, 0.0, flakes), 0.0, 1.0)
    flakes = trail(flakes, radius, sigma, rng.uniform(*SLOPES))
    whitened = np.maximum(image, 1.5 * grey(image) + 0.5)
    picture = clear * image + (1 - clear) * whitened
    return clipped(picture + flakes + np.rot90(flakes, k=2))
