"""Blurs that several corruptions share."""

import math

import numpy as np
from scipy.ndimage import gaussian_filter, zoom

from qualms.corruptions._corruption import Image


def gaussian(image: Image, sigma: float) -> Image:
    """Blur an image along its space; beyond its rim the nearest pixel is repeated."""
    widths = (*(sigma for _ in image.shape[:-1]), 0.0)
    blurred: Image = gaussian_filter(image, widths, mode="nearest")
    return blurred


def trail(image: Image, radius: int, sigma: float, degrees: float) -> Image:
    """Blur a picture in one direction, as `MotionBlur` of ImageMagick does.

    A pixel is a mean of itself and of those behind it, with weights of half a Gaussian.
    """
    width = 2 * radius + 1
    weight = np.exp(-np.square(np.arange(width)) / (2.0 * sigma**2))
    weight /= weight.sum()
    down, across = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    high, wide = image.shape[:2]
    rows, columns = np.arange(high), np.arange(wide)
    blurred = np.zeros_like(image)
    for step in range(width):
        y = np.clip(rows + math.ceil(step * down - 0.5), 0, high - 1)
        x = np.clip(columns + math.ceil(step * across - 0.5), 0, wide - 1)
        blurred += weight[step] * image[y[:, None], x]
    return blurred


def magnified(image: Image, factor: float) -> Image:
    """Return the middle of a picture, enlarged to its size."""
    high, wide = image.shape[:2]
    rows, columns = (_middle(side, math.ceil(side / factor)) for side in (high, wide))
    enlarged = zoom(image[rows, columns], (factor, factor, 1), order=1)
    rows, columns = (
        _middle(new, old)
        for new, old in zip(enlarged.shape[:2], (high, wide), strict=True)
    )
    middle: Image = enlarged[rows, columns]
    return middle


def _middle(side: int, part: int) -> slice:
    start = (side - part) // 2
    return slice(start, start + part)
