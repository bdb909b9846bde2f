"""Colours of pictures: their brightness, and the same picture in grey."""

import numpy as np

from qualms.corruptions._corruption import Image

LUMA = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in grey (ITU-R BT.601)."""


def grey(image: Image) -> Image:
    """Return a picture (H, W, 1) of the brightness of its pixels."""
    if image.shape[-1] == len(LUMA):
        return np.asarray(image @ np.array(LUMA))[..., None]
    return np.asarray(image.mean(axis=-1, keepdims=True))


def painted(colours: Image, channels: int) -> Image:
    """Return a picture in three colours in as many channels as another one has."""
    return colours if channels == len(LUMA) else grey(colours)
