"""Vehicles, which drive or park along the street, and their wheels."""

from typing import NamedTuple

import numpy as np

from qualms.datasets._street import CLASSES
from qualms.datasets.street_sim._canvas import (
    Canvas,
    Points,
    Spot,
    along,
    disc,
    rectangle,
)
from qualms.datasets.street_sim._styles import Style, pick

CAR, TRUCK, BUS = (CLASSES.index(name) for name in ("car", "truck", "bus"))
TRAIN, MOTORCYCLE = CLASSES.index("train"), CLASSES.index("motorcycle")
TYRE = (26, 26, 28)
PROFILES = (
    # Saloon, hatchback, van and jeep: height over the way from the rear to the front.
    (
        (0, 0.35),
        (0, 0.9),
        (0.5, 0.95),
        (1.0, 1.38),
        (2.4, 1.42),
        (3.2, 0.95),
        (4.4, 0.8),
    ),
    ((0, 0.35), (0.05, 1.0), (0.35, 1.42), (2.0, 1.5), (2.8, 1.0), (3.8, 0.85)),
    ((0, 0.4), (0, 1.9), (0.1, 2.0), (3.6, 1.95), (4.4, 1.15), (4.9, 0.95)),
    ((0, 0.5), (0, 1.75), (0.15, 1.82), (2.8, 1.8), (3.3, 1.15), (4.5, 1.05)),
)


class Paint(NamedTuple):
    """Colours of a vehicle."""

    body: Points
    glass: Points
    lit: float
    """Brightness of the side that is seen."""


def draw_car(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a car along the street; its near end is at Z."""
    x, z = spot
    profile = np.array(PROFILES[int(rng.choice(4, p=(0.4, 0.3, 0.12, 0.18)))])
    profile = profile * (rng.uniform(0.94, 1.05), rng.uniform(0.95, 1.06))
    length, half = profile[-1, 0], rng.uniform(0.82, 0.94)
    coming = rng.random() < (0.5 if x > 0 else 0.75)
    if coming:  # its front is near
        profile = (profile * (-1, 1) + (length, 0))[::-1]
    profile = np.concatenate([profile, [(length, 0.35), (0, 0.35)]])
    paint = Paint(pick(rng, style.cars), pick(rng, style.windows), rng.uniform(0.7, 1))
    near = x - half if x > 0 else x + half
    side = profile + np.array([z, 0])
    _shadow(canvas, (x, z), half, length)
    _wheels(canvas, near, (z + 0.2 * length, z + 0.8 * length), 0.33, CAR)
    canvas.area(along(near, side), paint.body * paint.lit, CAR)
    if abs(x) > 1:
        _side_glass(canvas, near, side, paint.glass)
    _end(canvas, (x, z), half, float(profile[:, 1].max()), paint, coming=coming)


def _side_glass(canvas: Canvas, x: float, side: Points, glass: Points) -> None:
    """Draw windows: the profile's upper part, a little smaller."""
    top = side[side[:, 1] > 0.9]
    if len(top) < 3:
        return
    middle = top.mean(axis=0)
    canvas.area(along(x, middle + (top - middle) * (0.8, 0.7)), glass, CAR)


def _end(
    canvas: Canvas,
    spot: Spot,
    half: float,
    top: float,
    paint: Paint,
    *,
    coming: bool,
) -> None:
    """Draw the end of a car that faces the camera."""
    waist = 0.9 if top < 1.6 else 1.1
    low = rectangle(-half, 0.3, half, waist)
    roof = [(-half, waist), (half, waist), (0.78 * half, top), (-0.78 * half, top)]
    glass = [
        (-0.82 * half, waist + 0.05),
        (0.82 * half, waist + 0.05),
        (0.68 * half, top - 0.1),
        (-0.68 * half, top - 0.1),
    ]
    canvas.upright(spot, roof, paint.body * 0.92, CAR)
    canvas.upright(spot, glass, paint.glass, CAR)
    canvas.upright(spot, low, paint.body, CAR)
    if spot[1] > 30:
        return
    canvas.upright(spot, rectangle(-half, 0.22, half, 0.42), paint.body * 0.45, CAR)
    light = (245, 240, 215) if coming else (190, 20, 24)
    lamps = [
        rectangle(s * half - 0.17, 0.64, s * half + 0.17, 0.8) for s in (-0.8, 0.8)
    ]
    canvas.upright(spot, np.stack(lamps), light, CAR)
    canvas.upright(spot, rectangle(-0.25, 0.5, 0.25, 0.62), (225, 225, 215), CAR)
    tyres = [rectangle(s * half - 0.12, 0, s * half + 0.12, 0.3) for s in (-0.8, 0.8)]
    canvas.upright(spot, np.stack(tyres), TYRE, CAR)


def draw_car_across(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a car that crosses the street, seen from its side."""
    profile = np.array(
        PROFILES[int(rng.choice(4, p=(0.4, 0.3, 0.12, 0.18)))], np.float64
    )
    length = profile[-1, 0]
    if rng.random() < 0.5:
        profile = (profile * (-1, 1) + (length, 0))[::-1]
    profile = np.concatenate([profile, [(length, 0.3), (0, 0.3)]]) - (length / 2, 0)
    paint, glass = pick(rng, style.cars), pick(rng, style.windows)
    canvas.upright(spot, rectangle(-length / 2, 0, length / 2, 0.32), (30, 30, 32), CAR)
    canvas.upright(spot, profile, paint, CAR)
    top = profile[profile[:, 1] > 0.9]
    if len(top) > 2:
        middle = top.mean(axis=0)
        canvas.upright(spot, middle + (top - middle) * (0.85, 0.65), glass, CAR)
    for at in (-0.3 * length, 0.3 * length):
        canvas.upright(spot, disc(at, 0.33, 0.34), TYRE, CAR)
        canvas.upright(spot, disc(at, 0.33, 0.17), (140, 140, 142), CAR)


def draw_bus(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a bus along the street."""
    colour = pick(rng, style.cars)
    _coach(canvas, rng, spot, style, (BUS, 11.0, 1.25, 3.1), colour)


def draw_train(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a tram along the street."""
    colour = pick(rng, style.cars)
    _coach(canvas, rng, spot, style, (TRAIN, 28.0, 1.3, 3.5), colour)


def _coach(
    canvas: Canvas,
    rng: np.random.Generator,
    spot: Spot,
    style: Style,
    form: tuple[int, float, float, float],
    colour: Points,
) -> None:
    label, length, half, top = form
    x, z = spot
    near, glass = (x - half if x > 0 else x + half), pick(rng, style.windows)
    _shadow(canvas, spot, half, length)
    canvas.area(along(near, rectangle(z, 0.35, z + length, top)), colour * 0.85, label)
    _wheels(canvas, near, (z + 2, z + length - 2), 0.45, label)
    starts = z + 0.4 + np.arange(0, length - 1.5, 1.7)
    panes = np.stack([rectangle(s, 1.3, s + 1.4, top - 0.5) for s in starts])
    canvas.area(along(near, panes), glass, label)
    canvas.upright(spot, rectangle(-half, 0.3, half, top), colour, label)
    canvas.upright(
        spot, rectangle(-0.9 * half, 1.1, 0.9 * half, top - 0.5), glass, label
    )
    sign = (235, 190, 60) if rng.random() < 0.7 else (60, 62, 64)
    canvas.upright(
        spot, rectangle(-0.7 * half, top - 0.4, 0.7 * half, top - 0.1), sign, label
    )
    lamps = [
        rectangle(s * half - 0.2, 0.55, s * half + 0.2, 0.75) for s in (-0.75, 0.75)
    ]
    canvas.upright(spot, np.stack(lamps), (235, 225, 200), label)


def draw_truck(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a truck along the street: a box, and a cab at its far or near end."""
    x, z = spot
    half, top, length = 1.2, rng.uniform(2.9, 3.8), rng.uniform(6, 9)
    box, cab = pick(rng, style.walls), pick(rng, style.cars)
    near = x - half if x > 0 else x + half
    _shadow(canvas, spot, half, length)
    _wheels(canvas, near, (z + 1, z + length - 1), 0.5, TRUCK)
    coming = rng.random() < 0.5
    ends = (z + 2, z + length) if coming else (z, z + length - 2)
    cabin = (z, z + 2) if coming else (z + length - 2, z + length)
    canvas.area(along(near, rectangle(ends[0], 0.7, ends[1], top)), box * 0.85, TRUCK)
    canvas.area(along(near, rectangle(cabin[0], 0.5, cabin[1], 2.5)), cab * 0.85, TRUCK)
    canvas.upright((x, ends[0]), rectangle(-half, 0.7, half, top), box, TRUCK)
    canvas.upright((x, ends[0]), rectangle(-half, 0.4, half, 0.8), TYRE, TRUCK)
    if coming:
        canvas.upright(spot, rectangle(-half, 0.4, half, 2.5), cab, TRUCK)
        canvas.upright(
            spot, rectangle(-1.05, 1.4, 1.05, 2.2), pick(rng, style.windows), TRUCK
        )
    else:
        seam = rectangle(-0.03, 0.8, 0.03, top - 0.1)
        canvas.upright(spot, seam, box * 0.6, TRUCK)


def draw_motorcycle(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a motorcycle, seen from its side."""
    paint = pick(rng, style.cars)
    for at in (-0.65, 0.65):
        canvas.upright(spot, disc(at, 0.32, 0.33), TYRE, MOTORCYCLE)
        canvas.upright(spot, disc(at, 0.32, 0.16), (120, 120, 124), MOTORCYCLE)
    frame = [
        (-0.75, 0.75),
        (-0.3, 0.8),
        (0.1, 0.95),
        (0.45, 0.85),
        (0.55, 0.4),
        (-0.5, 0.3),
    ]
    canvas.upright(spot, frame, paint, MOTORCYCLE)
    canvas.upright(spot, rectangle(-0.7, 0.72, -0.05, 0.84), TYRE, MOTORCYCLE)
    fork = [(0.35, 1.1), (0.5, 1.1), (0.72, 0.35), (0.6, 0.3)]
    canvas.upright(spot, fork, (90, 92, 94), MOTORCYCLE)


def _wheels(
    canvas: Canvas, x: float, at: tuple[float, float], radius: float, label: int
) -> None:
    discs = np.stack([disc(z, radius, radius) for z in at])
    canvas.area(along(x, np.clip(discs, (0.5, 0), None)), TYRE, label)


def _shadow(canvas: Canvas, spot: Spot, half: float, length: float) -> None:
    """Darken the ground below a vehicle; the label of the ground stays."""
    x, z = spot
    corners = [
        (x - half, 0, z - 0.15),
        (x + half, 0, z - 0.15),
        (x + half, 0, z + length),
        (x - half, 0, z + length),
    ]
    canvas.area(np.array(corners), (34, 34, 36), 0)
