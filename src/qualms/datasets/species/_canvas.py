"""A canvas for one object: outlines in its own plane, filled with paints.

The plane of an object runs from -1 to 1, x to the right and y down. A pose maps it to
the canvas, which has two samples per pixel along each axis.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.datasets._simulated import SAMPLES

Floats = NDArray[np.float32]
Points = NDArray[np.float64]
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
TURN = np.linspace(0, 2 * np.pi, 32, endpoint=False)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], axis=1)
STEPS = 5
"""Points of a smooth outline for each point that it passes."""


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
        low = np.clip(np.floor(points.min(axis=0)).astype(int) - 1, 0, size)
        high = np.clip(np.ceil(points.max(axis=0)).astype(int) + 2, low, size)
        mask = np.zeros((high[1] - low[1], high[0] - low[0]), np.uint8)
        if mask.size:
            fixed = np.rint((points - low - 0.5) * 2**FRACTION).astype(np.int32)
            cv2.fillPoly(mask, [fixed], 255, lineType=cv2.LINE_AA, shift=FRACTION)
        region = (slice(low[1], high[1]), slice(low[0], high[0]))
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


def ellipse(x: float, y: float, wide: float, high: float, angle: float = 0.0) -> Points:
    """Return the outline of an ellipse with the radii `wide` and `high`."""
    return turn(CIRCLE * (wide, high), angle, (x, y))


def smooth(points: ArrayLike) -> Points:
    """Return a closed smooth outline through `points` (Catmull-Rom)."""
    knots = np.asarray(points, np.float64)
    before, after = np.roll(knots, 1, axis=0), np.roll(knots, -1, axis=0)
    beyond = np.roll(knots, -2, axis=0)
    t = (np.arange(STEPS) / STEPS)[:, None, None]
    curve = 2 * knots + t * (after - before)
    curve = curve + t**2 * (2 * before - 5 * knots + 4 * after - beyond)
    curve = curve + t**3 * (3 * knots - before - 3 * after + beyond)
    outline: Points = np.swapaxes(curve / 2, 0, 1).reshape(-1, 2)
    return outline


def polygon(points: ArrayLike) -> Points:
    """Return the outline with these corners."""
    return np.asarray(points, np.float64)


def line(x: float, y: float, to_x: float, to_y: float, width: float) -> Points:
    """Return the outline of a straight stroke."""
    along = np.array([to_x - x, to_y - y])
    across = np.array([-along[1], along[0]]) * (width / 2 / max(np.hypot(*along), 1e-6))
    start, end = np.array([x, y]), np.array([to_x, to_y])
    return np.array([start - across, end - across, end + across, start + across])


def turn(points: Points, angle: float, to: tuple[float, float]) -> Points:
    """Turn `points` about the origin, and move the origin."""
    cosine, sine = np.cos(angle), np.sin(angle)
    moved: Points = points @ np.array([[cosine, sine], [-sine, cosine]]) + np.array(to)
    return moved


def _colours(paint: Coat, u: Floats, v: Floats) -> Floats:
    """Return the colours (h, w, 3) of a paint at points of the object's plane."""
    first = paint.colour.astype(np.float32)
    if paint.pattern == "plain":
        return np.broadcast_to(first, (*u.shape, 3))
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
