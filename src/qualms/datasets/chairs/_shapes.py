"""Procedural chairs built of axis-aligned boxes, each from its own seed.

Lengths are in metres: x points to the right of a sitting person, y to the back, z up
from the floor. Boxes touch but never overlap, so no two faces compete for a pixel.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float, float, float]
"""Lowest x, y, z, then highest x, y, z."""

PALETTE = np.array(
    [
        [0.55, 0.35, 0.20],
        [0.80, 0.62, 0.40],
        [0.30, 0.19, 0.12],
        [0.22, 0.24, 0.27],
        [0.62, 0.64, 0.66],
        [0.72, 0.18, 0.16],
        [0.16, 0.36, 0.62],
        [0.20, 0.48, 0.30],
        [0.86, 0.68, 0.20],
    ]
)


class Chair(NamedTuple):
    """Boxes of a chair: corners (n, 3) and colours (n, 3) in 0..1."""

    low: Floats
    high: Floats
    colour: Floats


class _ChairFrame(NamedTuple):
    """The measures that all parts of a chair share."""

    right: float
    back: float
    under: float
    seat: float
    top: float
    bar: float


def chair(number: int, *, seed: int) -> Chair:
    """Build chair `number` of the collection `seed`, centred at half its height."""
    rng = np.random.default_rng([seed, number + 1])
    frame = _measure(rng)
    legs = (_four_legs, _sled, _pedestal)[rng.integers(3)](frame)
    backs = (_panel, _slats, _rails, _upper_panel)[rng.integers(4)](frame, rng)
    arms = _arms(frame) if rng.random() < 0.4 else []
    wood, cloth = PALETTE[rng.integers(0, len(PALETTE), 2)]
    seat = (-frame.right, -frame.back, frame.under, frame.right, frame.back, frame.seat)
    boxes = np.array([seat, *legs, *backs, *arms])
    centre = np.array([0.0, 0.0, frame.top / 2])
    colour = np.tile(wood, (len(boxes), 1))
    colour[0] = cloth
    return Chair(boxes[:, :3] - centre, boxes[:, 3:] - centre, colour)


def _measure(rng: np.random.Generator) -> _ChairFrame:
    width, depth = rng.uniform(0.38, 0.55), rng.uniform(0.38, 0.52)
    seat = rng.uniform(0.40, 0.50)
    return _ChairFrame(
        right=width / 2,
        back=depth / 2,
        under=seat - rng.uniform(0.03, 0.09),
        seat=seat,
        top=seat + rng.uniform(0.35, 0.62),
        bar=2 * rng.uniform(0.015, 0.03),
    )


def _four_legs(frame: _ChairFrame) -> list[Box]:
    return [
        _post(x, y, 0.0, frame.under, frame.bar)
        for x in (-frame.right, frame.right - frame.bar)
        for y in (-frame.back, frame.back - frame.bar)
    ]


def _sled(frame: _ChairFrame) -> list[Box]:
    """Build two runners on the floor, each with a front and a rear post."""
    boxes: list[Box] = []
    for x in (-frame.right, frame.right - frame.bar):
        boxes.append((x, -frame.back, 0.0, x + frame.bar, frame.back, frame.bar))
        boxes += [
            _post(x, y, frame.bar, frame.under, frame.bar)
            for y in (-frame.back, frame.back - frame.bar)
        ]
    return boxes


def _pedestal(frame: _ChairFrame) -> list[Box]:
    """Build a column on a cross."""
    bar, half = frame.bar, frame.bar / 2
    return [
        (-frame.right, -half, 0.0, frame.right, half, bar),
        (-half, -frame.back, 0.0, half, -half, bar),
        (-half, half, 0.0, half, frame.back, bar),
        (-bar, -bar, bar, bar, bar, frame.under),
    ]


def _panel(frame: _ChairFrame, rng: np.random.Generator) -> list[Box]:
    del rng
    return [_across(frame, -frame.right, frame.right, frame.seat, frame.top)]


def _slats(frame: _ChairFrame, rng: np.random.Generator) -> list[Box]:
    """Build one to four upright slats between two posts, under a top rail."""
    count = int(rng.integers(1, 5))
    inner = frame.right - frame.bar
    rail = frame.top - 1.5 * frame.bar
    width = min(1.5 * frame.bar, 1.2 * inner / count)
    middles = (np.arange(count) + 1) / (count + 1) * 2 * inner - inner
    slats = [
        _across(frame, m - width / 2, m + width / 2, frame.seat, rail)
        for m in middles.tolist()
    ]
    return [*_posts(frame), _across(frame, -inner, inner, rail, frame.top), *slats]


def _rails(frame: _ChairFrame, rng: np.random.Generator) -> list[Box]:
    """Build one to three rails across two posts."""
    count = int(rng.integers(1, 4))
    inner = frame.right - frame.bar
    height = 2 * frame.bar
    bottoms = frame.top - height - np.arange(count) * (frame.top - frame.seat) / count
    return [
        *_posts(frame),
        *(_across(frame, -inner, inner, z, z + height) for z in bottoms.tolist()),
    ]


def _upper_panel(frame: _ChairFrame, rng: np.random.Generator) -> list[Box]:
    """Build a panel between two posts that leaves the lower part open."""
    inner = frame.right - frame.bar
    bottom = frame.seat + rng.uniform(0.35, 0.6) * (frame.top - frame.seat)
    return [*_posts(frame), _across(frame, -inner, inner, bottom, frame.top)]


def _arms(frame: _ChairFrame) -> list[Box]:
    """Build two arm rests, each on a post at the front of the seat."""
    boxes: list[Box] = []
    height = frame.seat + 0.2
    back = frame.back - frame.bar
    for x in (-frame.right, frame.right - frame.bar):
        boxes.append(_post(x, -frame.back, frame.seat, height, frame.bar))
        boxes.append((x, -frame.back, height, x + frame.bar, back, height + frame.bar))
    return boxes


def _post(x: float, y: float, low: float, high: float, bar: float) -> Box:
    return (x, y, low, x + bar, y + bar, high)


def _posts(frame: _ChairFrame) -> list[Box]:
    y = frame.back - frame.bar
    return [
        _post(x, y, frame.seat, frame.top, frame.bar)
        for x in (-frame.right, frame.right - frame.bar)
    ]


def _across(
    frame: _ChairFrame, left: float, right: float, low: float, high: float
) -> Box:
    """Return a board in the plane of the back."""
    return (left, frame.back - frame.bar, low, right, frame.back, high)
