"""Photographs of objects: pose, light, background, and how ambiguous the picture is.

One picture suffers from at most one trouble, and its ambiguity, 0 to 1, says how much.
An occluded object is hidden by its ambiguity times `HIDDEN` of its area, a blurred one
is out of focus and pale, a cropped one is seen from too near. Clear pictures have
ambiguity 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._outlines import Points
from qualms.datasets._simulated import SAMPLES
from qualms.datasets.species._canvas import Floats, ObjectCanvas, Pose
from qualms.datasets.species._plans import Plan, draw_object
from qualms.datasets.species._traits import Traits

TROUBLES = ("clear", "occluded", "blurred", "cropped")
CLEAR = 0.4
"""Share of clear pictures; the troubles share the rest equally."""
LEAST = 0.2
"""Least ambiguity of a picture that is not clear."""
HIDDEN = 0.9
"""Share of an object that is hidden at ambiguity 1."""
BLUR = 0.1
"""Standard deviation of the blur at ambiguity 1, as a share of the side."""
HAZE = 0.85
"""Contrast that a blurred picture loses at ambiguity 1."""
NEARER = 4.0
"""Factor by which an object is enlarged at ambiguity 1."""
NOISE = 0.012


class Trouble(NamedTuple):
    """Cause that makes a picture ambiguous, and how much."""

    kind: str
    """One of `TROUBLES`."""
    ambiguity: float


def random_trouble(rng: np.random.Generator) -> Trouble:
    """Draw what happens to a picture."""
    clear, kind, strength = rng.random(3)
    if clear < CLEAR:
        return Trouble("clear", 0.0)
    return Trouble(TROUBLES[1 + int(3 * kind)], LEAST + (1 - LEAST) * strength)


def photograph(
    plan: Plan,
    traits: Traits,
    trouble: Trouble,
    rng: np.random.Generator,
    *,
    side: int,
) -> NDArray[np.uint8]:
    """Take a colour image (side, side, 3) of one object."""
    import cv2

    angle = rng.uniform(0, 2 * np.pi)
    light = np.array([np.cos(angle), -abs(np.sin(angle))])
    canvas = ObjectCanvas(side, _pose(trouble, rng), light)
    draw_object(canvas, traits, plan)
    image = canvas.over(_background(rng, side * SAMPLES))
    if trouble.kind == "occluded":
        hide(image, canvas.cover, trouble.ambiguity, rng)
    small = cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA)
    if trouble.kind == "blurred":
        width = BLUR * side * trouble.ambiguity
        small = cv2.GaussianBlur(small, (0, 0), width, borderType=cv2.BORDER_REFLECT)
        small += HAZE * trouble.ambiguity * (small.mean() - small)
    return _expose(np.asarray(small), rng)


def portrait(plan: Plan, traits: Traits, *, side: int) -> Floats:
    """Draw an object (side, side, 3) on grey, upright and centred."""
    import cv2

    pose = Pose(np.eye(2) * 0.42, np.array([0.5, 0.5]))
    canvas = ObjectCanvas(side, pose, np.zeros(2))
    draw_object(canvas, traits, plan)
    grey = np.full((*canvas.cover.shape, 3), 0.5, np.float32)
    small = cv2.resize(canvas.over(grey), (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32)


def _pose(trouble: Trouble, rng: np.random.Generator) -> Pose:
    """Draw size, mirror, turn and place of the object."""
    size, narrow = rng.uniform(0.34, 0.42), rng.uniform(0.85, 1.0)
    mirror = -1.0 if rng.random() < 0.5 else 1.0
    angle, lean = rng.normal(0, 0.12), rng.normal(0, 0.06)
    matrix = size * _axes(angle).T @ np.array([[mirror * narrow, lean], [0.0, 1.0]])
    offset = 0.5 + rng.uniform(-0.07, 0.07, 2)
    part = rng.uniform(-0.6, 0.6, 2)
    if trouble.kind == "cropped":
        matrix = matrix * (1 + (NEARER - 1) * trouble.ambiguity)
        # The middle of the picture moves from the object's middle to some part of it.
        offset = offset - matrix @ part * min(1.0, 2 * trouble.ambiguity)
    return Pose(matrix, offset)


def _background(rng: np.random.Generator, size: int) -> Floats:
    """Draw a soft mixture of a few dull colours."""
    import cv2

    shade = rng.uniform(0.25, 0.85)
    coarse = shade + rng.normal(0, 0.07, (3, 3, 1)) + rng.normal(0, 0.04, (3, 3, 3))
    fine = rng.normal(0, 0.05, (8, 8, 1)) + rng.normal(0, 0.015, (8, 8, 3))
    shape = (size, size)
    ground = np.asarray(cv2.resize(coarse, shape, interpolation=cv2.INTER_LINEAR))
    ground = ground + cv2.resize(fine, shape, interpolation=cv2.INTER_CUBIC)
    return ground.astype(np.float32)


def hide(
    image: Floats, cover: Floats, ambiguity: float, rng: np.random.Generator
) -> None:
    """Put something with a wavy edge before a known share of the object."""
    size = len(image)
    angle = rng.uniform(0, 2 * np.pi)
    along, across = _axes(angle)
    rows, columns = np.mgrid[:size, :size].astype(np.float32) / size
    depth = along[0] * columns + along[1] * rows
    waves, phase = rng.uniform(6, 20), rng.uniform(0, 2 * np.pi)
    depth += 0.025 * np.sin(waves * (across[0] * columns + across[1] * rows) + phase)
    covered = depth[cover > 0.5]
    if not covered.size:
        return
    edge = np.quantile(covered, HIDDEN * ambiguity)
    share = np.clip((edge - depth) * size / 2 + 0.5, 0, 1)[..., None]
    hue = rng.uniform(0.15, 0.75) + rng.normal(0, 0.05, 3)
    grain = 0.06 * np.sin(rng.uniform(20, 60) * depth)[..., None]
    image += (share * (hue + grain - image)).astype(np.float32)


def _expose(image: Floats, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the image under some light, with the noise of the sensor."""
    warmth: Points = rng.uniform(0.82, 1.12) * (1 + rng.normal(0, 0.02, 3))
    noise = rng.standard_normal(image.shape, np.float32) * np.float32(NOISE)
    lit = image * warmth.astype(np.float32) + noise
    exposed: NDArray[np.uint8] = np.rint(lit.clip(0, 1) * 255).astype(np.uint8)
    return exposed


def _axes(angle: float) -> Points:
    """Return two axes at right angles, the first one at `angle`, as rows."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, sine], [-sine, cosine]])
