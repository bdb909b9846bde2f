"""Frost on a window: after ImageNet-C, with frost that is made, not photographed.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations. They lay crops of six photographs over a picture. Ours
are needles of ice that grow in a few directions over a hoar of clouds, less than half
as bright as white on average; the weights of picture and frost are theirs.
"""

import numpy as np

from qualms.corruptions._by_size import by_size, is_small
from qualms.corruptions._colour import painted
from qualms.corruptions._corruption import Corruption, Image, clipped
from qualms.corruptions._plasma import plasma
from qualms.corruptions._smooth import gaussian, trail

SMALL = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
LARGE = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
"""Weights of the picture and of the frost."""
SEEDS = 0.012
"""Share of pixels from which a needle grows."""
DIRECTIONS = 5
ICE = (0.86, 0.95, 1.0)
"""Its colour: white with some blue."""


def frost() -> Corruption:
    """Lay ice over the picture; severity is its weight."""
    return Corruption(families=("weather", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    space = image.shape[:-1]
    weight, icy = by_size(space, severity, small=SMALL, large=LARGE)
    ice = _ice(space, rng)[..., None] * np.array(ICE)
    return clipped(weight * image + icy * painted(ice, image.shape[-1]))


def _ice(space: tuple[int, ...], rng: np.random.Generator) -> Image:
    """Return the brightness (H, W) of frost: hoar, and needles where it is thick."""
    hoar = plasma(space, 1.6, rng)
    length = 4 if is_small(space) else 14
    needles = np.zeros((*space, 1))
    for _ in range(DIRECTIONS):
        seeds = (rng.random((*space, 1)) < SEEDS) * rng.uniform(0.4, 1.0)
        needles += trail(seeds, length, length, rng.uniform(0.0, 360.0))
    needles = needles[..., 0] * length * (0.4 + hoar)
    ridges = (1.0 - np.abs(2.0 * plasma(space, 1.8, rng) - 1.0)) ** 4
    ice = gaussian((0.35 * hoar + 0.2 * ridges + 0.6 * needles)[..., None], 0.4)
    return clipped(ice[..., 0])
