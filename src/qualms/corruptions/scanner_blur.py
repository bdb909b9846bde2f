"""Blur of a scanner with little resolution: `RandomBlur` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images. Its deviation is
at most 2 mm by default; ours is in pixels, and severity 5 is 2.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

from qualms.corruptions._corruption import Corruption, Image

DEVIATION = (0.4, 0.8, 1.2, 1.6, 2.0)


def scanner_blur() -> Corruption:
    """Blur by a Gaussian; severity is its deviation in pixels."""
    return Corruption(families=("medical", "blur"), change=_change, space=(2, 3))


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    widths = (*(DEVIATION[severity - 1] for _ in image.shape[:-1]), 0.0)
    blurred: Image = gaussian_filter(image, widths)
    return blurred
