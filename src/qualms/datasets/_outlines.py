"""Outlines of things, written as short texts: what simulators' tables are made of."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Points = NDArray[np.float64]
TURN = np.linspace(0, 2 * np.pi, 24, endpoint=False)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], axis=1)
STEPS = 5
"""Points of a smooth outline for each point that it passes."""


@cache
def outlines(text: str) -> tuple[Points, ...]:
    """Return outlines (n, 2), written with "|" between them.

    They are "flat x,y x,y ..." with these corners; "round x,y ...", smooth through
    these points; "box x,y x,y" between two corners; "line x,y x,y width"; "oval x,y
    radius,radius", perhaps with an angle; or "none", without points.
    """
    shapes: list[Points] = []
    for shape in text.split("|"):
        kind, *words = shape.split()
        points = [tuple(map(float, word.split(","))) for word in words]
        flat = [number for point in points for number in point]
        if kind == "box":
            left, low, right, high = flat
            points = [(left, low), (right, low), (right, high), (left, high)]
        if kind in ("line", "oval"):
            shapes.append((line if kind == "line" else ellipse)(*flat))
        else:
            corners = np.array(points).reshape(-1, 2)
            shapes.append(smooth(corners) if kind == "round" else corners)
    return tuple(shapes)


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
