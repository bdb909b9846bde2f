"""A canvas for one object: outlines in its own plane, filled with paints.

The plane of an object runs from -1 to 1, x to the right and y down. A pose maps it to
the canvas, which has two samples per pixel along each axis.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._outlines import Points
from qualms.datasets._simulated import SAMPLES

Floats = NDArray[np.float32]
Pattern = Literal["plain", "stripes", "spots", "checks", "fade", "mottled", "waves"]
PATTERNS: tuple[Pattern, ...] = (
    "plain",
    "stripes",
    "spots",
    "checks",
    "fade",
    "mottled",
    "waves",
)
FRACTION = 4
"""Bits of a coordinate behind the point."""


class Coat(NamedTuple):
    """Two colours and the pattern that mixes them."""

    colour: Points
    """(3,) red, green and blue in 0..1."""
    second: Points
    pattern: Pattern = "plain"
    frequency: float = 4.0
    """Repeats over a unit of the object's plane."""
    angle: float = 0.0
    phase: float = 0.0


class Pose(NamedTuple):
    """Map from an object to a canvas of side 1: canvas = matrix @ point + offset."""

    matrix: Points
    offset: Points


class ObjectCanvas:
    """Colours and coverage of an object; what is filled last lies on top."""

    def __init__(self, side: int, pose: Pose, light: Points) -> None:
        """Make an empty canvas; `light` points from the object to the light."""
        size = side * SAMPLES
        self._matrix, self._offset = pose.matrix * size, pose.offset * size
        self._light = light
        axis = np.arange(size) + 0.5
        back = np.linalg.inv(self._matrix)
        x, y = axis[None, :] - self._offset[0], axis[:, None] - self._offset[1]
        self._u = (back[0, 0] * x + back[0, 1] * y).astype(np.float32)
        self._v = (back[1, 0] * x + back[1, 1] * y).astype(np.float32)
        self.colour: Floats = np.zeros((size, size, 3), np.float32)
        """Colours times coverage."""
        self.cover: Floats = np.zeros((size, size), np.float32)

    def fill(self, outline: Points, paint: Coat, *, shade: float = 0.25) -> None:
        """Fill an outline (n, 2); `shade` is how round the part looks."""
        region, share = self._coverage(outline)
        u, v = self._u[region], self._v[region]
        colour = (
            _colours(paint, u, v) * self._brightness(outline, u, v, shade)[..., None]
        )
        self.colour[region] += share[..., None] * (colour - self.colour[region])
        self.cover[region] += share * (1 - self.cover[region])

    def cut(self, outline: Points) -> None:
        """Cut a hole."""
        region, share = self._coverage(outline)
        self.colour[region] *= 1 - share[..., None]
        self.cover[region] *= 1 - share

    def over(self, ground: Floats) -> Floats:
        """Return the object before a background."""
        image: Floats = self.colour + (1 - self.cover[..., None]) * ground
        return image

    def _coverage(self, outline: Points) -> tuple[tuple[slice, slice], Floats]:
        """Return the canvas around an outline, and how much of it is covered."""
        import cv2

        points = outline @ self._matrix.T + self._offset
        size = len(self.cover)
        # Arithmetic of single numbers is much faster without NumPy.
        left, top = (min(max(int(x) - 2, 0), size) for x in points.min(axis=0).tolist())
        right, low = (min(int(x) + 3, size) for x in points.max(axis=0).tolist())
        mask = np.zeros((max(low - top, 0), max(right - left, 0)), np.uint8)
        if mask.size:
            corner = np.array((left + 0.5, top + 0.5))
            fixed = np.rint((points - corner) * 2**FRACTION).astype(np.int32)
            cv2.fillPoly(mask, [fixed], 255, lineType=cv2.LINE_AA, shift=FRACTION)
        region = (slice(top, top + len(mask)), slice(left, left + mask.shape[1]))
        return region, mask.astype(np.float32) / np.float32(255)

    def _brightness(
        self, outline: Points, u: Floats, v: Floats, shade: float
    ) -> Floats:
        """Return how bright a part is: more so towards the light."""
        low, high = outline.min(axis=0), outline.max(axis=0)
        middle, reach = (low + high) / 2, np.maximum((high - low) / 2, 0.05)
        slope = (self._light * shade / reach).astype(np.float32)
        bright: Floats = 1 + slope[0] * (u - np.float32(middle[0]))
        bright += slope[1] * (v - np.float32(middle[1]))
        return bright


def _colours(paint: Coat, u: Floats, v: Floats) -> Floats:
    """Return a paint's colours (h, w, 3), or (3,), at points of the object's plane."""
    first = paint.colour.astype(np.float32)
    if paint.pattern == "plain":
        return first
    cosine, sine = np.float32(np.cos(paint.angle)), np.float32(np.sin(paint.angle))
    along = np.float32(2 * np.pi * paint.frequency)
    s = along * (cosine * u + sine * v) + np.float32(paint.phase)
    t = along * (cosine * v - sine * u) + np.float32(0.7 * paint.phase)
    share = _second_share(paint.pattern, s, t)
    change = paint.second.astype(np.float32) - first
    return first + share[..., None] * change


def _second_share(pattern: Pattern, s: Floats, t: Floats) -> Floats:
    """Return the share of the second colour, 0..1."""
    if pattern == "stripes":
        wave = np.sin(s)
    elif pattern == "spots":
        wave = np.sin(s) * np.sin(t) * 2 - np.float32(0.4)
    elif pattern == "checks":
        wave = 3 * np.sin(s / 2) * np.sin(t / 2)
    elif pattern == "waves":
        wave = np.sin(s + 1.5 * np.sin(t / 2))
    elif pattern == "mottled":
        wave = np.sin(s + 2 * np.sin(0.61 * t))
        wave = wave + np.sin(0.83 * t + 2 * np.sin(0.47 * s))
    else:  # a fade has one slow change from end to end
        wave = np.float32(0.13) * s
    share: Floats = np.clip(np.float32(0.5) + 2 * wave, 0, 1)
    return share
