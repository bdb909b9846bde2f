"""People, riders and bicycles."""

import numpy as np

from qualms.datasets._street import CLASSES
from qualms.datasets.street_sim._canvas import Canvas, Points, Spot, disc, rectangle
from qualms.datasets.street_sim._styles import Style, pick
from qualms.datasets.street_sim._vehicles import TYRE, draw_motorcycle

PERSON, RIDER, BICYCLE = (
    CLASSES.index(name) for name in ("person", "rider", "bicycle")
)
SKIN = ((224, 182, 150), (190, 140, 106), (120, 84, 62), (86, 60, 46))
HAIR = ((58, 46, 34), (24, 22, 22), (130, 104, 66))


def draw_person(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a person who stands or walks."""
    tall, stride = rng.uniform(0.9, 1.08), rng.uniform(0.03, 0.3)
    coat, trousers = pick(rng, style.clothes), pick(rng, style.clothes) * 0.7
    for foot in (-stride, stride):
        leg = [(-0.1, 0.9), (0.1, 0.9), (foot + 0.08, 0), (foot - 0.1, 0)]
        canvas.upright(spot, np.array(leg) * tall, trousers, PERSON)
    _body(canvas, rng, spot, coat, tall)


def _body(
    canvas: Canvas,
    rng: np.random.Generator,
    spot: Spot,
    coat: Points,
    tall: float,
    raised: float = 0.0,
) -> None:
    """Draw trunk, arms and head; a rider's are raised."""
    label = RIDER if raised else PERSON
    torso = [
        (-0.2, 0.85),
        (0.2, 0.85),
        (0.25, 1.42),
        (0.1, 1.5),
        (-0.1, 1.5),
        (-0.25, 1.42),
    ]
    lift, skin = np.array([0, raised]), pick(rng, SKIN)
    canvas.upright(spot, np.array(torso) * tall + lift, coat, label)
    canvas.upright(spot, disc(0, 1.63 * tall, 0.12) + lift, skin, label)
    if spot[1] > 30:
        return
    swing = rng.uniform(-0.15, 0.15)
    for side in (-1, 1):
        arm = [
            (side * 0.2, 1.44),
            (side * 0.29, 1.38),
            (side * 0.3 + side * swing, 0.85),
        ]
        arm.append((side * 0.2 + side * swing, 0.85))
        canvas.upright(spot, np.array(arm) * tall + lift, coat * 0.8, label)
    hair = rectangle(-0.12, 1.66 * tall, 0.12, 1.76 * tall)
    canvas.upright(spot, hair + lift, pick(rng, HAIR), label)


def draw_bicycle(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a leaning bicycle, seen from its side."""
    paint = pick(rng, style.cars)
    for at in (-0.52, 0.52):
        canvas.upright(spot, disc(at, 0.34, 0.35), TYRE, BICYCLE)
        canvas.upright(spot, disc(at, 0.34, 0.27), (110, 110, 108), BICYCLE)
    frame = [
        (-0.52, 0.3),
        (-0.2, 0.85),
        (0.35, 0.85),
        (0.52, 0.34),
        (0.42, 0.4),
        (0, 0.3),
    ]
    canvas.upright(spot, frame, paint, BICYCLE)
    canvas.upright(spot, rectangle(-0.32, 0.9, -0.08, 0.97), TYRE, BICYCLE)
    canvas.upright(spot, rectangle(0.3, 0.8, 0.38, 1.08), TYRE, BICYCLE)


def draw_rider(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a rider on a bicycle or, less often, on a motorcycle."""
    motor = rng.random() < 0.35
    (draw_motorcycle if motor else draw_bicycle)(canvas, rng, spot, style)
    coat, trousers = pick(rng, style.clothes), pick(rng, style.clothes) * 0.7
    leg = [
        (-0.3, 0.9),
        (-0.05, 0.98),
        (0.2, 0.7),
        (0.12, 0.28),
        (0, 0.28),
        (0.02, 0.65),
    ]
    canvas.upright(spot, leg, trousers, RIDER)
    _body(canvas, rng, (spot[0] - 0.1, spot[1]), coat, 0.95, 0.08)
