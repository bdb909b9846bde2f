"""Few pixels, as of a small picture that was enlarged: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image, clipped

SMALL = (0.95, 0.9, 0.85, 0.75, 0.65)
LARGE = (0.6, 0.5, 0.4, 0.3, 0.25)


def pixelate() -> Corruption:
    """Shrink and enlarge by means of boxes; severity is the share of the side."""
    return Corruption(families=("digital", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    share = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    changed = image
    for axis, side in enumerate(image.shape[:-1]):
        few = int(side * share)
        weights = _boxes(few, side) @ _boxes(side, few)
        changed = np.moveaxis(np.tensordot(weights, changed, (1, axis)), 0, axis)
    return clipped(changed)


def _boxes(old: int, new: int) -> NDArray[np.float64]:
    """Return the weights (new, old) of the pixels of a side, as Pillow's BOX has them.

    A pixel counts whole if its centre lies in the box.
    """
    ratio = old / new
    centre = (np.arange(new)[:, None] + 0.5) * ratio
    distance = (np.arange(old) + 0.5 - centre) / max(1.0, ratio)
    inside = ((distance > -0.5) & (distance <= 0.5)).astype(np.float64)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))
