"""A field that brightens one part of a scan: `RandomBiasField` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images; after Van
Leemput et al. (1999). Its coefficients are at most 0.5 by default, which is severity 5.
"""

from itertools import product

import numpy as np

from qualms.corruptions._corruption import Corruption, Image

COEFFICIENT = (0.1, 0.2, 0.3, 0.4, 0.5)
ORDER = 3


def bias_field() -> Corruption:
    """Multiply by the exponential of a polynomial; severity is its coefficients."""
    return Corruption(families=("medical",), change=_change, space=(2, 3))


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    space = image.shape[:-1]
    axes = np.meshgrid(*(np.linspace(-1.0, 1.0, n) for n in space), indexing="ij")
    field = np.zeros(space)
    for powers in product(range(ORDER + 1), repeat=len(space)):
        if sum(powers) <= ORDER:
            term = np.prod([x**p for x, p in zip(axes, powers, strict=True)], axis=0)
            field += rng.uniform(-1.0, 1.0) * COEFFICIENT[severity - 1] * term
    return image * np.exp(field)[..., None]
