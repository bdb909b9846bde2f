"""Another gamma, as of a display or a scanner: `RandomGamma` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images. Its logarithm of
gamma is at most 0.3 by default, which is severity 3.
"""

import numpy as np

from qualms.corruptions._corruption import Corruption, Image

LOGARITHM = (0.1, 0.2, 0.3, 0.45, 0.6)


def gamma() -> Corruption:
    """Raise values to a power; severity is its logarithm, of either sign."""
    return Corruption(families=("medical",), change=_change, space=(2, 3), least=1)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    sign = rng.choice((-1.0, 1.0))
    exponent = np.exp(sign * LOGARITHM[severity - 1])
    powered: Image = np.clip(image, 0.0, None) ** exponent
    return powered
