"""A street scene: a ground plan, and what stands on it, drawn from far to near."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._outlines import CIRCLE
from qualms.datasets._simulated import SAMPLES
from qualms.datasets._street import IGNORE
from qualms.datasets.street_sim._canvas import Canvas, Perspective, rectangle
from qualms.datasets.street_sim._styles import Style, develop, pick
from qualms.datasets.street_sim._things import (
    CARS,
    FAR,
    LABEL,
    THINGS,
    TRAFFIC,
    Piece,
    Thing,
    draw_thing,
)

Rng = np.random.Generator
Spotted = tuple[Thing, float, float]
"""A thing, its X and its Z."""
NEAREST, WIDE = 1.6, 400.0
"""Metres to the beginning of the street and to its sides."""
DEPTHS = np.geomspace(NEAREST, FAR, 10)
"""Ends of the pieces of the ground, which fade one by one."""


class Street(NamedTuple):
    """The ground plan. Left is negative, the camera drives at 0."""

    left: float
    right: float
    """Edges of the road."""
    walks: tuple[float, float]
    """Outer edges of the sidewalks."""
    fronts: tuple[float, float]
    """Where buildings begin, left and right."""
    crossing: float
    """Where another street crosses."""


def street_scene(
    rng: Rng, style: Style, *, height: int, width: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw an image (height, width, 3) and its labels (height, width)."""
    view = Perspective(
        height=height * SAMPLES,
        width=width * SAMPLES,
        focal=width * SAMPLES * rng.uniform(0.55, 0.8),
        horizon=height * SAMPLES * rng.uniform(0.38, 0.5),
        eye=rng.uniform(1.2, 2.0),
        bend=rng.normal(0, 0.0007),
    )
    canvas = Canvas(view, pick(rng, style, "haze"), rng.uniform(*style.reach))
    street = _street(rng)
    _draw_sky(canvas, rng, style)
    draw_thing(canvas, rng, style, _ground(rng, street), 0, 0)
    things = [
        *_fronts(rng, street, style),
        *_traffic(rng, street),
        *_sides(rng, street),
    ]
    for thing, x, z in sorted(things, key=lambda spotted: -spotted[2]):
        draw_thing(canvas, rng, style, thing, x, z)
    canvas.draw()
    if style.bonnet:
        _draw_bonnet(canvas, rng, style)
    labels = canvas.pixels[::SAMPLES, ::SAMPLES, 3].copy()
    return develop(rng, canvas.pixels, style), labels


def _street(rng: Rng) -> Street:
    right = rng.uniform(2.0, 3.4) + rng.choice((0.0, 2.3))
    left = -(rng.uniform(4.8, 6.0) + 3.2 * rng.choice(3, p=(0.45, 0.35, 0.2)))
    walks = (left - rng.uniform(1.8, 5.5), right + rng.uniform(1.8, 5.5))
    verges = 0.2 + rng.uniform(0, 7, 2) * (rng.random(2) < 0.5)
    fronts = (walks[0] - verges[0], walks[1] + verges[1])
    return Street(left, right, walks, fronts, rng.uniform(12, 70))


def _draw_sky(canvas: Canvas, rng: Rng, style: Style) -> None:
    """Draw sky and clouds down to the horizon, and what stands at its end."""
    import cv2

    rows = int(canvas.view.horizon) + 2
    way = np.linspace(0, 1, 16)[:, None, None] ** 0.8
    sky = (1 - way) * pick(rng, style, "sky") + way * canvas.haze
    cover = cv2.resize(rng.random((5, 9)), (48, 16), interpolation=cv2.INTER_CUBIC)
    cover = np.clip(cover * 2.2 - rng.uniform(0.9, 1.6), 0, 0.85)[..., None]
    small = np.clip(sky + cover * (240 - sky), 0, 255).astype(np.uint8)
    canvas.pixels[:rows, :, :3] = cv2.resize(small, (canvas.view.width, rows))
    canvas.pixels[:rows, :, 3] = LABEL["sky"]
    for x in np.arange(-130, 130, 13.0) + rng.uniform(-4, 4, 20):
        label, material, top = (
            ("building", "building", rng.uniform(5, 26)),
            ("vegetation", "leaves", rng.uniform(3, 9)),
        )[rng.integers(2)]
        end = Thing(label, (Piece(material, rectangle(-9, -1, 9, top), 0.9),))
        draw_thing(canvas, rng, style, end, x - canvas.view.bend * FAR**2, FAR)


def _ground(rng: Rng, street: Street) -> Thing:
    """Lay out the ground: grass, sidewalks, road and its marks."""
    left, right, walks = street.left, street.right, street.walks
    paved = np.where(rng.random(2) < 0.25, 20, 1) * walks  # up to the houses
    bands: tuple[tuple[str, str, float, float, float], ...] = (
        ("grass", "terrain", -WIDE, WIDE, 1.0),
        ("sidewalk", "sidewalk", paved[0], paved[1], 1.0),
        ("sidewalk", "sidewalk", left - 0.16, right + 0.16, 1.12),
        ("road", "road", left, right, 1.0),
    )
    pieces = [
        Piece(material, rectangle(low, near, high, far), shade, label, "ground")
        for material, label, low, high, shade in bands
        for near, far in pairwise(DEPTHS)
    ]
    begin, across = rng.uniform(2, 8), street.crossing
    marks = [("road", 1.0, rectangle(-WIDE, across, WIDE, across + 9)[None])]
    for x in np.arange(-1.7, left + 2, -3.3):
        dash = rectangle(x - 0.08, 0, x + 0.08, 3.5)
        marks += [
            ("paint", 1.0, dash + _steps(start, start + 32, 8.0, up=True))
            for start in (begin + 32, begin)  # two groups, which fade differently
        ]
    if rng.random() < 0.6:
        bar = rectangle(0, across - 4.2, 0.5, across - 1.2)
        marks.append(("paint", 1.0, bar + _steps(left + 0.4, right - 0.5, 1.0)))
    for _ in range(rng.poisson(2)):
        x, z = rng.uniform(left, right - 1), rng.uniform(4, 25)
        stain = rectangle(x, z, x + rng.uniform(0.4, 1), z + rng.uniform(0.5, 5))
        marks.append(("road", rng.uniform(0.8, 1.12), stain[None]))
    pieces += [
        Piece(material, outlines, shade, "road", "ground")
        for material, shade, outlines in marks
    ]
    return Thing("road", tuple(pieces))


def _steps(
    start: float, stop: float, step: float, *, up: bool = False
) -> NDArray[np.float64]:
    """Return shifts (n, 1, 2) to the right, or else upward."""
    shifts = np.arange(start, stop, step)[:, None, None]
    return shifts * ((0, 1) if up else (1, 0))


def _fronts(rng: Rng, street: Street, style: Style) -> Iterator[Spotted]:
    """Line both sides of the street with buildings, and with walls and hedges."""
    gaps, dark = rng.choice((0.25, 0.25, 0.25, 0.7)), rng.integers(2)
    for side, x in enumerate(street.fronts):
        lit, z = 1 - style.sun * (side == dark), NEAREST
        while z < FAR:
            end = following = min(z + rng.uniform(7, 22), FAR)
            if z < street.crossing + 10 and end > street.crossing - 1:
                end, following = street.crossing - 1, street.crossing + 10.5
            if end > z + 2:
                make = _barrier if rng.random() < gaps else _building
                yield make(rng, end - z, lit), x, z
            z = following


def _building(rng: Rng, length: float, lit: float) -> Thing:
    """Make a building along the street, with windows in rows, and its end wall."""
    floors, storey = int(rng.integers(2, 8)), rng.uniform(2.9, 3.6)
    wide, high, shop = rng.uniform(0.9, 1.6), rng.uniform(1.1, 2.0), rng.random() < 0.45
    top = floors * storey + 0.8
    columns = _steps(0.6, length - wide, wide + rng.uniform(0.7, 1.6))
    rows = _steps(1 + shop * storey, top - 1, storey, up=True)
    panes = rectangle(0, 0, wide, high) + (columns + rows[:, None]).reshape(-1, 1, 2)
    awning, front = rectangle(0.3, 2.5, length - 0.3, 3.1), (length, top)
    pieces = [
        Piece("building", rectangle(0, 0, 14, top), 0.8),
        Piece("building", rectangle(0, 0, *front), lit, plane="side"),
        Piece("building", rectangle(0, top - 0.5, *front), 0.7 * lit, plane="side"),
    ]
    if len(panes):
        pieces.append(Piece("glass", panes, lit, plane="side", within=90))
    if shop:
        glass = rectangle(0.5, 0.3, length - 0.5, 2.5)
        pieces.append(Piece("glass", glass, 0.8 * lit, plane="side", within=60))
        pieces.append(Piece("car", awning, 0.8 * lit, plane="side", within=60))
    return Thing("building", tuple(pieces), vary=(0, 0))


def _barrier(rng: Rng, length: float, lit: float) -> Thing:
    """Make a wall, a fence or a hedge along the street."""
    label, material = (
        *(("wall", "wall"), ("fence", "metal"), ("vegetation", "leaves")),
    )[rng.choice(3, p=(0.4, 0.35, 0.25))]
    top = rng.uniform(1.0, 2.6)
    pieces = [
        Piece(material, rectangle(0, 0, length, top), lit, plane="side"),
        Piece(material, rectangle(0, top - 0.15, length, top), 0.75, plane="side"),
    ]
    if label == "fence":
        posts = rectangle(0, 0, 0.12, top) + _steps(0, length, 0.9)
        pieces.append(Piece(material, posts, 0.6 * lit, plane="side", within=60))
    return Thing(label, tuple(pieces))


def _traffic(rng: Rng, street: Street) -> Iterator[Spotted]:
    """Spot vehicles on the lanes and at the curbs, and a car that crosses."""
    for lane in (0.0, *np.arange(-3.4, street.left + 1.5, -3.3)):
        z = rng.uniform(6, 40)
        while z < 110:
            vehicle = _chosen(rng, TRAFFIC)
            yield vehicle, lane + rng.normal(0, 0.2), z
            z += rng.uniform(15, 51) + 24 * (vehicle.label == "train")
    for edge, inward in ((street.left, 1), (street.right, -1)):
        if edge < 0 or street.right > 4:
            parked = 0.9 * rng.random()
            for z in np.arange(rng.uniform(3, 9), 80, 6.2):
                if rng.random() < parked:
                    motorcycle = rng.random() < 0.05
                    thing = THINGS["motorcycle"] if motorcycle else _chosen(rng, CARS)
                    yield thing, edge + 1.05 * inward, float(z)
    if rng.random() < 0.5:
        car = _chosen(rng, CARS)
        sides = [p._replace(plane="end") for p in car.pieces if p.plane == "side"]
        x = rng.uniform(street.left - 8, street.right + 8)
        z = street.crossing + rng.uniform(2, 7)
        yield Thing("car", tuple(sides)), x, z


def _chosen(rng: Rng, shares: tuple[tuple[float, Thing], ...]) -> Thing:
    edges = np.cumsum([share for share, _ in shares])
    return shares[int(np.searchsorted(edges, rng.random() * edges[-1]))][1]


def _sides(rng: Rng, street: Street) -> Iterator[Spotted]:
    """Spot what stands or moves along both sides of the road."""
    near = street.crossing - 3.5
    for edge, walk, front, inward in (
        (street.left, street.walks[0], street.fronts[0], 1),
        (street.right, street.walks[1], street.fronts[1], -1),
    ):
        curb, house = edge - 0.4 * inward, walk + 0.4 * inward
        for name, mean, x, z in (
            ("person", 4.7, (curb, house), (4.5, 38)),
            ("person", 0.3, (0, edge), (near, near + 2)),
            ("cyclist", 0.33, (edge + 0.7 * inward,) * 2, (5, 30)),
            ("motorcyclist", 0.15, (edge + 0.7 * inward,) * 2, (5, 30)),
            ("lamp", 4.5, (curb, curb), (5, 110)),
            ("round sign", 0.5, (curb, curb), (8, 45)),
            ("triangle", 0.35, (curb, curb), (8, 45)),
            ("board", 0.5, (curb, curb), (8, 45)),
            ("light", 0.3, (curb, curb), (near + 2.5,) * 2),
            ("light above", 0.35, (curb, curb), (near + 2.5,) * 2),
            ("bicycle", 0.6, (house, house), (5, 25)),
            ("bin", 0.7, (house, house), (5, 30)),
            ("tree", 11 * rng.integers(2), (edge - 0.9 * inward,) * 2, (9, 120)),
            ("tree", 6, (front - 2 * inward, front - 9 * inward), (12, 120)),
            ("bush", 2.5, (front + 0.8 * inward,) * 2, (5, 50)),
        ):
            for _ in range(rng.poisson(mean)):
                yield THINGS[name], rng.uniform(min(x), max(x)), rng.uniform(*z)


def _draw_bonnet(canvas: Canvas, rng: Rng, style: Style) -> None:
    """Draw the front of the car that took the photograph; it has no class."""
    height, width = canvas.pixels.shape[:2]
    high = height * rng.uniform(0.06, 0.13)
    oval = CIRCLE * (width * rng.uniform(0.42, 0.6), high) + (width / 2, height)
    canvas.flat(oval, pick(rng, style, "car") * 0.7, IGNORE)
    oval[:, 1] += 0.45 * high
    canvas.flat(oval, pick(rng, style, "car") * 0.5, IGNORE)
