"""Pictures of boxes, taken by a pinhole camera that moves around them.

Faces are drawn with a buffer of inverse depth. This is affine in the picture plane, so
visibility is exact at every sample. The background is white, faces are flat, one
distant lamp is fixed to the object, and each pixel has 2 x 2 samples.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._simulated import SAMPLES, shrink
from qualms.jit import jit

Floats = NDArray[np.float64]

SIZE = 64
DISTANCE = 2.6
ELEVATION = np.deg2rad(20.0)
FIELD_OF_VIEW = np.deg2rad(24.0)
AMBIENT = 0.45
DIRECTIONAL = 0.55
LIGHT = np.array([0.45, -0.55, 0.70]) / np.linalg.norm([0.45, -0.55, 0.70])


def render(low: Floats, high: Floats, colour: Floats, yaw: float) -> NDArray[np.uint8]:
    """Draw an RGB image (64, 64, 3) of the boxes from `yaw` degrees: 0 front, 90 right.

    Args:
        low: (n, 3) lowest corner of each box; the camera looks at the origin.
        high: (n, 3) highest corner of each box.
        colour: (n, 3) colours in 0..1.
        yaw: angle of the camera around the upright axis, in degrees.
    """
    side = SIZE * SAMPLES
    canvas = np.ones((side, side, 3))
    axes = camera_axes(yaw)
    slope = np.tan(FIELD_OF_VIEW / 2)
    _rasterise(canvas, axes, slope, low, high, face_colours(colour))
    pixels: NDArray[np.uint8] = np.rint(shrink(canvas) * 255).astype(np.uint8)
    return pixels


def camera_axes(yaw: float) -> Floats:
    """Return unit vectors (3, 3) to the camera's right, up and forward."""
    angle = np.deg2rad(yaw)
    right = np.array([np.cos(angle), np.sin(angle), 0.0])
    level = np.array([-np.sin(angle), np.cos(angle), 0.0])
    upright = np.array([0.0, 0.0, 1.0])
    forward = np.cos(ELEVATION) * level - np.sin(ELEVATION) * upright
    up = np.sin(ELEVATION) * level + np.cos(ELEVATION) * upright
    return np.stack([right, up, forward])


def face_colours(colour: Floats) -> Floats:
    """Return the colour (n, 3 axes, 2 sides, 3) of each face, the low side first."""
    facing = np.stack([-LIGHT, LIGHT], axis=1).clip(0.0)
    brightness = AMBIENT + DIRECTIONAL * facing
    shaded: Floats = colour[:, None, None, :] * brightness[None, :, :, None]
    return shaded


@jit
def _rasterise(
    canvas: Floats, axes: Floats, slope: float, low: Floats, high: Floats, faces: Floats
) -> None:
    side = canvas.shape[0]
    nearness = np.zeros((side, side))
    eye = -DISTANCE * axes[2]
    for box in range(len(low)):
        left, right, top, bottom = _window(axes, slope, low[box], high[box], side)
        for axis in range(3):
            # If neither side faces the camera, the box itself hides the low one.
            beyond = eye[axis] > high[box, axis]
            plane = high[box, axis] if beyond else low[box, axis]
            colour = faces[box, axis, int(beyond)]
            b, c = (axis + 1) % 3, (axis + 2) % 3
            for row in range(top, bottom):
                v = slope * (1.0 - (2 * row + 1) / side)
                for column in range(left, right):
                    u = slope * ((2 * column + 1) / side - 1.0)
                    ray = axes[2, axis] + u * axes[0, axis] + v * axes[1, axis]
                    near = ray / (plane - eye[axis])
                    if near <= nearness[row, column]:
                        continue
                    at_b = axes[2, b] + u * axes[0, b] + v * axes[1, b]
                    at_b = eye[b] + at_b / near
                    at_c = axes[2, c] + u * axes[0, c] + v * axes[1, c]
                    at_c = eye[c] + at_c / near
                    if (
                        low[box, b] <= at_b <= high[box, b]
                        and low[box, c] <= at_c <= high[box, c]
                    ):
                        nearness[row, column] = near
                        canvas[row, column] = colour


@jit
def _window(
    axes: Floats, slope: float, low: Floats, high: Floats, side: int
) -> tuple[int, int, int, int]:
    """Return columns and rows that can see the box: left, right, top, bottom."""
    left, right, top, bottom = np.inf, -np.inf, np.inf, -np.inf
    corner = np.empty(3)
    for number in range(8):
        for axis in range(3):
            corner[axis] = high[axis] if number >> axis & 1 else low[axis]
        scale = 0.5 * side / (slope * (DISTANCE + np.sum(axes[2] * corner)))
        column = 0.5 * side + scale * np.sum(axes[0] * corner)
        row = 0.5 * side - scale * np.sum(axes[1] * corner)
        left, right = min(left, column), max(right, column)
        top, bottom = min(top, row), max(bottom, row)
    return (
        max(0, int(left)),
        min(side, int(right) + 1),
        max(0, int(top)),
        min(side, int(bottom) + 1),
    )
