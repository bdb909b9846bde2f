"""A street scene: its layout, drawn from far to near."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._street import IGNORE
from qualms.datasets.street_sim._canvas import (
    CIRCLE,
    SAMPLES,
    Canvas,
    Perspective,
    Spot,
)
from qualms.datasets.street_sim._furniture import (
    draw_bush,
    draw_clutter,
    draw_light,
    draw_pole,
    draw_sign,
    draw_tree,
)
from qualms.datasets.street_sim._people import draw_bicycle, draw_person, draw_rider
from qualms.datasets.street_sim._styles import Style, develop, pick
from qualms.datasets.street_sim._surroundings import (
    Part,
    Street,
    draw_ground,
    draw_sky,
    draw_skyline,
    fronts,
)
from qualms.datasets.street_sim._vehicles import (
    draw_bus,
    draw_car,
    draw_car_across,
    draw_motorcycle,
    draw_train,
    draw_truck,
)

Rng = np.random.Generator
Draw = Callable[[Canvas, Rng, Spot, Style], None]
Thing = tuple[Draw, float, float]
"""The function that draws a thing, and its X and Z."""


def street_scene(
    rng: Rng, style: Style, *, height: int, width: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw an image (height, width, 3) and its labels (height, width)."""
    view = _view(rng, height * SAMPLES, width * SAMPLES)
    zenith, horizon, clouds = style.sky[int(rng.integers(len(style.sky)))]
    canvas = Canvas(view, horizon, rng.uniform(*style.reach))
    street = _street(rng)
    draw_sky(canvas, rng, zenith, clouds)
    draw_skyline(canvas, rng, style)
    draw_ground(canvas, rng, street, style)
    things = [*_traffic(rng, street), *_walkers(rng, street), *_plants(rng, street)]
    parts = [
        *fronts(rng, street, style),
        *(_part(rng, thing, style) for thing in things),
    ]
    for _, add in sorted(parts, key=lambda part: -part[0]):
        add(canvas)
    canvas.draw()
    if style.bonnet:
        _draw_bonnet(canvas, rng, style)
    labels = canvas.pixels[::SAMPLES, ::SAMPLES, 3].copy()
    return develop(rng, canvas.pixels, style), labels


def _view(rng: Rng, height: int, width: int) -> Perspective:
    return Perspective(
        height=height,
        width=width,
        focal=width * rng.uniform(0.55, 0.8),
        horizon=height * rng.uniform(0.38, 0.5),
        eye=rng.uniform(1.2, 2.0),
        bend=rng.normal(0, 0.0007),
    )


def _street(rng: Rng) -> Street:
    lanes = int(rng.choice(3, p=(0.45, 0.35, 0.2)))
    right = rng.uniform(2.0, 3.4) + (2.3 if rng.random() < 0.5 else 0)
    left = -(rng.uniform(4.8, 6.0) + 3.2 * lanes)
    walks = (rng.uniform(1.8, 5.5), rng.uniform(1.8, 5.5))
    verges = [rng.uniform(0, 7) if rng.random() < 0.5 else 0.0 for _ in range(2)]
    ends = (left - walks[0] - verges[0] - 0.2, right + walks[1] + verges[1] + 0.2)
    return Street(left, right, walks, ends, rng.uniform(12, 70))


def _part(rng: Rng, thing: Thing, style: Style) -> Part:
    draw, x, z = thing
    return z, lambda canvas: draw(canvas, rng, (x, z), style)


def _traffic(rng: Rng, street: Street) -> list[Thing]:
    """Spot vehicles and riders on the road."""
    kinds: tuple[Draw, ...] = (draw_car, draw_truck, draw_bus, draw_train)
    shares = (0.8, 0.1, 0.06, 0.04)
    things: list[Thing] = []
    lanes = [0.0, *np.arange(-3.4, street.left + 1.5, -3.3)]
    for lane in lanes:
        z = rng.uniform(6, 40)
        while z < 110:
            kind = kinds[int(rng.choice(4, p=shares))]
            things.append((kind, lane + rng.normal(0, 0.2), z))
            z += rng.uniform(9, 45) + (30 if kind is draw_train else 6)
    for edge, inward in ((street.left, 1), (street.right, -1)):
        if edge < 0 or street.right > 4:
            things += _parked_vehicles(rng, edge + 1.05 * inward)
    for _ in range(rng.poisson(0.8)):
        x = street.right - 0.7 if rng.random() < 0.7 else street.left + 0.8
        things.append((draw_rider, x, rng.uniform(5, 30)))
    if rng.random() < 0.5:
        x = rng.uniform(street.left - 8, street.right + 8)
        things.append((draw_car_across, x, street.crossing + rng.uniform(2, 7)))
    return things


def _parked_vehicles(rng: Rng, x: float) -> list[Thing]:
    starts = np.arange(rng.uniform(3, 9), 80, 6.2)
    full = rng.random() * 0.9
    return [
        (draw_motorcycle if rng.random() < 0.05 else draw_car, x, float(z))
        for z in starts
        if rng.random() < full
    ]


def _walkers(rng: Rng, street: Street) -> list[Thing]:
    """Spot people and things on the sidewalks, and people who cross the road."""
    things: list[Thing] = []
    for outward, edge, walk in (
        (-1, street.left, street.walks[0]),
        (1, street.right, street.walks[1]),
    ):
        curb, house = edge + 0.4 * outward, edge + (walk - 0.4) * outward
        for _ in range(rng.poisson(3.5)):
            x, z = (
                rng.uniform(min(curb, house), max(curb, house)),
                rng.gamma(2.5, 7) + 4.5,
            )
            things.append((draw_person, x, z))
            if rng.random() < 0.35:
                things.append((draw_person, x + 0.55, z + 0.3))
        lamps = np.arange(rng.uniform(5, 25), 110, rng.uniform(16, 30))
        things += [(draw_pole, curb, float(z)) for z in lamps]
        things += [
            (draw_sign, curb, rng.uniform(8, 45)) for _ in range(rng.poisson(1.3))
        ]
        things += [
            (draw_bicycle, house, rng.uniform(5, 25)) for _ in range(rng.poisson(0.6))
        ]
        things += [
            (draw_clutter, house, rng.uniform(5, 30)) for _ in range(rng.poisson(0.7))
        ]
        if rng.random() < 0.65:
            things.append((draw_light, curb, street.crossing - 1.0))
    for _ in range(rng.poisson(0.5)):
        x = rng.uniform(street.left, street.right)
        things.append((draw_person, x, street.crossing - rng.uniform(1.5, 3.5)))
    return things


def _plants(rng: Rng, street: Street) -> list[Thing]:
    """Spot trees at the curb and behind the fronts, and bushes on verges."""
    things: list[Thing] = []
    for outward, edge, end in (
        (-1, street.left, street.fronts[0]),
        (1, street.right, street.fronts[1]),
    ):
        if rng.random() < 0.5:
            row = np.arange(rng.uniform(9, 20), 120, rng.uniform(7, 14))
            things += [(draw_tree, edge + 0.9 * outward, float(z)) for z in row]
        behind = rng.uniform(12, 120, rng.integers(2, 8))
        things += [
            (draw_tree, end + rng.uniform(2, 9) * outward, float(z)) for z in behind
        ]
        bushes = rng.uniform(5, 50, rng.poisson(2.5))
        things += [(draw_bush, end - 0.8 * outward, float(z)) for z in bushes]
    return things


def _draw_bonnet(canvas: Canvas, rng: Rng, style: Style) -> None:
    """Draw the front of the car that took the photograph; it has no class."""
    height, width = canvas.pixels.shape[:2]
    high = height * rng.uniform(0.06, 0.13)
    oval = CIRCLE * (width * rng.uniform(0.42, 0.6), high) + (width / 2, height)
    canvas.flat(oval, pick(rng, style.cars) * 0.7, IGNORE)
    oval[:, 1] += 0.45 * high
    canvas.flat(oval, pick(rng, style.cars) * 0.5, IGNORE)
