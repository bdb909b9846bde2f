"""Local contrast of a fundus photograph, as in Graham's winning Kaggle entry (2015).

The photograph is scaled so that the eye has a radius of 300 pixels. The local mean
colour is subtracted, the rest is amplified four times around grey, and everything but
the inner 90 % of the eye becomes grey. This removes differences of colour and
illumination between cameras and people, and keeps small lesions. RETINA (Band et al.,
2021) trains on the result.

Only the part of the scaled photograph that can affect the result is blurred. OpenCV's
Gaussian of 8-bit pixels has a finite radius, so this changes no bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GREY = 128
AMPLIFIED = 4
MOST_PIXELS = 1_000_000_000
"""The largest scaled photograph, 3 GB; a larger one means that no eye was found."""


class _Cutout(NamedTuple):
    """A rectangle of a picture, and where the picture's middle is in it."""

    pixels: NDArray[np.uint8]
    middle: tuple[int, int]


def enhance(
    image: NDArray[np.uint8], *, radius: int = 300, blur: int = 30
) -> NDArray[np.uint8]:
    """Return the local contrast of a photograph (H, W, 3).

    The result has at most 1.8 `radius` pixels on a side.

    Args:
        image: the whole eye, in RGB or any other order of channels.
        radius: radius of the eye after scaling, in pixels.
        blur: the local mean is a Gaussian with a standard deviation of radius / blur.
    """
    import cv2

    _check(image, radius, blur)
    scale = radius / _eye_radius(image)
    _check_scaled(image, scale)
    scaled = np.asarray(cv2.resize(image, None, fx=scale, fy=scale), np.uint8)
    inner = int(0.9 * radius)
    near = _cut(_full_cutout(scaled), inner + _reach(radius / blur))
    mean = cv2.GaussianBlur(near.pixels, (0, 0), radius / blur)
    contrast = cv2.addWeighted(near.pixels, AMPLIFIED, mean, -AMPLIFIED, GREY)
    return _disc(near._replace(pixels=np.asarray(contrast, np.uint8)), inner)


def _check(image: NDArray[np.uint8], radius: int, blur: int) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(
            f"image must be (H, W, 3) uint8, got {image.shape} {image.dtype}"
        )
    if not image.size:
        raise ValueError(f"image must have pixels, got {image.shape}")
    if radius < 2 or blur < 1:
        raise ValueError(
            f"radius must be at least 2 and blur at least 1, got {radius} and {blur}"
        )


def _eye_radius(image: NDArray[np.uint8]) -> float:
    """Return half the number of columns that are not dark in the middle row."""
    brightness = image[len(image) // 2].sum(axis=1, dtype=np.int64)
    radius = np.count_nonzero(brightness > brightness.mean() / 10) / 2
    return radius if radius >= 1 else len(image) / 2


def _check_scaled(image: NDArray[np.uint8], scale: float) -> None:
    height, width = image.shape[:2]
    if round(height * scale) < 1 or round(width * scale) < 1:
        raise ValueError(
            "a photograph must be at least a pixel high and wide once it is scaled, got"
            f" {height} x {width} pixels to shrink {1 / scale:.3g} times; look at the"
            " photograph"
        )
    if height * scale * width * scale > MOST_PIXELS:
        raise ValueError(
            "an eye must be visible in the middle row of a photograph, got one that"
            f" would have to be enlarged {scale:.2g} times, in {height} x {width}"
            " pixels; look at the photograph"
        )


def _full_cutout(pixels: NDArray[np.uint8]) -> _Cutout:
    return _Cutout(pixels, (pixels.shape[0] // 2, pixels.shape[1] // 2))


def _reach(sigma: float) -> int:
    """Return the radius of OpenCV's Gaussian of 8-bit pixels: 6 sigma + 1 wide."""
    return int(3 * sigma + 2)


def _cut(cutout: _Cutout, reach: int) -> _Cutout:
    """Cut out the part within `reach` rows and columns of the middle."""
    (row, column), pixels = cutout.middle, cutout.pixels
    top, left = max(0, row - reach), max(0, column - reach)
    near = pixels[top : row + reach, left : column + reach]
    return _Cutout(np.ascontiguousarray(near), (row - top, column - left))


def _disc(cutout: _Cutout, radius: int) -> NDArray[np.uint8]:
    """Return the pixels within `radius` of the middle, and grey in the corners."""
    import cv2

    pixels, (row, column) = _cut(cutout, radius)
    inside = np.zeros(pixels.shape[:2], np.uint8)
    cv2.circle(inside, (column, row), radius, 1, -1)
    return np.asarray(cv2.copyTo(pixels, inside, np.full_like(pixels, GREY)), np.uint8)
