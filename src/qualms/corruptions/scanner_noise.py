"""Gaussian noise of a scanner: `RandomNoise` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images. Its deviation is
at most 0.25 by default, of images with deviation 1: that is severity 5.
"""

import numpy as np

from qualms.corruptions._corruption import Corruption, Image

DEVIATION = (0.05, 0.1, 0.15, 0.2, 0.25)


def scanner_noise() -> Corruption:
    """Add noise; severity is its deviation, in deviations of the image."""
    families = ("medical", "noise")
    return Corruption(families=families, change=_change, space=(2, 3), least=1)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    deviation = DEVIATION[severity - 1] * image.std()
    noisy: Image = image + deviation * rng.standard_normal(image.shape)
    return noisy
