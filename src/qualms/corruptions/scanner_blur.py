"""Blur of a scanner with little resolution: `RandomBlur` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images. Its deviation is
at most 2 mm by default; ours is in pixels, and severity 5 is 2.
"""

import numpy as np

from qualms.corruptions._corruption import Corruption, Image
from qualms.corruptions._smooth import gaussian

DEVIATION = (0.4, 0.8, 1.2, 1.6, 2.0)


def scanner_blur() -> Corruption:
    """Blur by a Gaussian; severity is its deviation in pixels."""
    return Corruption(families=("medical", "blur"), change=_change, space=(2, 3))


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    return gaussian(image, DEVIATION[severity - 1])
