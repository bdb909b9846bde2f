"""Ghosts beside what moves regularly, such as a pulse: `RandomGhosting` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images. Its intensity is
at most 1 by default, which is severity 5, with 4 to 10 ghosts along any axis.
"""

import numpy as np

from qualms.corruptions._corruption import Corruption, Image

INTENSITY = (0.2, 0.4, 0.6, 0.8, 1.0)
FEWEST, MOST = 4, 10
"""Ghosts."""


def ghosting() -> Corruption:
    """Weaken every n-th plane of the spectrum; severity is by how much."""
    return Corruption(families=("medical",), change=_change, space=(2, 3), least=16)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    ghosts, along = rng.integers(FEWEST, MOST + 1), rng.integers(image.ndim - 1)
    space = tuple(range(image.ndim - 1))
    spectrum = np.fft.fftshift(np.fft.fftn(image, axes=space), axes=space)
    planes = np.moveaxis(spectrum, along, 0)
    middle = planes[len(planes) // 2].copy()
    planes[::ghosts] *= 1.0 - INTENSITY[severity - 1]
    planes[len(planes) // 2] = middle
    unshifted = np.fft.ifftshift(spectrum, axes=space)
    return np.asarray(np.fft.ifftn(unshifted, axes=space).real)
