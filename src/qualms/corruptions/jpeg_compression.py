"""JPEG compression: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations.
"""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from qualms.corruptions._by_size import by_size
from qualms.corruptions._corruption import Corruption, Image

SMALL = (80, 65, 58, 50, 40)
LARGE = (25, 18, 15, 10, 7)


def jpeg_compression() -> Corruption:
    """Store 8 bits of each channel as JPEG; severity is its quality."""
    return Corruption(families=("digital", "imagenet_c"), change=_change)


def _change(image: Image, severity: int, _rng: np.random.Generator) -> Image:
    quality = by_size(image.shape[:-1], severity, small=SMALL, large=LARGE)
    stored = np.rint(np.clip(image, 0.0, 1.0) * 255).astype(np.uint8)
    if stored.shape[-1] == 3:
        return _decoded(stored, quality) / 255.0
    channels = range(stored.shape[-1])
    grey = [_decoded(stored[..., channel], quality) for channel in channels]
    return np.stack(grey, axis=-1) / 255.0


def _decoded(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    from PIL import Image as Picture

    file = BytesIO()
    Picture.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Picture.open(file))
