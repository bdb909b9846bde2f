"""A canvas in perspective: polygons in metres, drawn with a colour and a label.

X points to the right, Y up from the ground, Z away from the camera. A street may bend:
then X is the distance from a line that leaves the view.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.datasets._outlines import Points

FRACTION = 3
"""Bits of a coordinate behind the point."""
Colour = Sequence[float] | Points
Spot = tuple[float, float]
"""X and Z."""
FACING, SIDEWAYS, FLAT = (np.eye(3)[axes] for axes in ([0, 1], [2, 1], [0, 2]))
"""Axes of outlines that face the camera, lie along the street or on the ground."""


class Perspective(NamedTuple):
    """Projection of points in metres onto the canvas."""

    height: int
    width: int
    """Of the canvas in pixels."""
    focal: float
    """In pixels."""
    horizon: float
    """Row of the horizon."""
    eye: float
    """Height of the camera in metres."""
    bend: float
    """Metres to the right at a distance of one metre; grows with its square."""

    def project(self, points: Points) -> Points:
        """Return columns and rows of points (n, 3)."""
        x, y, z = points.T
        column = self.width / 2 + self.focal * (x / z + self.bend * z)
        row = self.horizon + self.focal * (self.eye - y) / z
        return np.stack([column, row], axis=1)


class Canvas:
    """Red, green, blue and label of every canvas pixel; the last drawn lies on top.

    Polygons are collected first, because points are projected faster together.
    """

    def __init__(self, view: Perspective, haze: Colour, reach: float) -> None:
        """Make an empty canvas; colours fade into `haze` over `reach` metres."""
        self.view = view
        self.haze = np.asarray(haze, np.float64)
        self.reach = reach
        self.pixels: NDArray[np.uint8] = np.zeros(
            (view.height, view.width, 4), np.uint8
        )
        self._waiting: list[tuple[Points, Colour, int]] = []

    def area(self, corners: Points, colour: Colour, label: int) -> None:
        """Fill the polygon with corners (n, 3), or several with corners (k, n, 3)."""
        if corners.ndim == 2:
            corners = corners[None]
        self._waiting.append((corners, colour, label))

    def upright(
        self, spot: Spot, outline: ArrayLike, colour: Colour, label: int
    ) -> None:
        """Fill outlines (n, 2) or (k, n, 2) of x and height that face the camera."""
        corners: Points = np.asarray(outline) @ FACING
        corners += (spot[0], 0.0, spot[1])
        self.area(corners, colour, label)

    def draw(self) -> None:
        """Draw the polygons that wait."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        points = np.concatenate([corners.reshape(-1, 3) for corners, _, _ in waiting])
        ends = np.cumsum([0] + [c.shape[0] * c.shape[1] for c, _, _ in waiting])
        distance = np.add.reduceat(points[:, 2], ends[:-1]) / np.diff(ends)
        colours = self.fade(np.array([colour for _, colour, _ in waiting]), distance)
        fixed = _fixed(self.view.project(points))
        for (corners, _, label), colour, start, end in zip(
            waiting, colours.tolist(), ends[:-1], ends[1:], strict=True
        ):
            shape = (*corners.shape[:-1], 2)
            self._fill(fixed[start:end].reshape(shape), (*colour, label))

    def flat(self, corners: Points, colour: Colour, label: int) -> None:
        """Fill a polygon given by columns and rows on the canvas, at once."""
        self._fill(_fixed(corners)[None], (*np.clip(colour, 0, 255).tolist(), label))

    def _fill(self, polygons: NDArray[np.int32], ink: tuple[float, ...]) -> None:
        import cv2

        cv2.fillPoly(self.pixels, list(polygons), ink, shift=FRACTION)

    def fade(self, colours: Points, distance: Points) -> Points:
        """Return colours (k, 3) as they look from some distances (k,)."""
        share = np.exp(-distance / self.reach)[:, None]
        return np.clip(self.haze + share * (colours - self.haze), 0, 255)


def _fixed(corners: Points) -> NDArray[np.int32]:
    """Return coordinates in fixed point, clipped far outside of the canvas."""
    return np.asarray(np.clip(corners, -30_000, 30_000) * 2**FRACTION, np.int32)


def rectangle(left: float, low: float, right: float, high: float) -> Points:
    """Return the outline of a rectangle."""
    return np.array([[left, low], [right, low], [right, high], [left, high]])


def along(x: float, z: float, outline: ArrayLike) -> Points:
    """Return corners of outlines (..., 2) of Z and height, along the street."""
    corners: Points = np.asarray(outline) @ SIDEWAYS
    corners += (x, 0.0, z)
    return corners


def lying(x: float, z: float, outline: ArrayLike) -> Points:
    """Return corners of outlines (..., 2) of X and Z, on the ground."""
    corners: Points = np.asarray(outline) @ FLAT
    corners += (x, 0.0, z)
    return corners
