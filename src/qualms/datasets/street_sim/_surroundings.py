"""The ground plan of a street, the sky, the ground, and the fronts along it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from qualms.datasets._street import CLASSES
from qualms.datasets.street_sim._canvas import Canvas, Points, along, rectangle, strip
from qualms.datasets.street_sim._styles import Style, pick

ROAD, SIDEWALK, BUILDING, WALL, FENCE = range(5)
VEGETATION, TERRAIN, SKY = (
    CLASSES.index(name) for name in ("vegetation", "terrain", "sky")
)
FAR = 160.0
"""Metres to the end of the street."""
NEAREST = 1.6
WIDE = 400.0
DEPTHS = np.geomspace(NEAREST, FAR, 24)
Part = tuple[float, Callable[[Canvas], None]]
"""Distance of a thing, and the function that draws it."""


class Street(NamedTuple):
    """The ground plan. Left is negative, the camera drives at 0."""

    left: float
    right: float
    """Edges of the road."""
    walks: tuple[float, float]
    """Widths of the sidewalks."""
    fronts: tuple[float, float]
    """Where buildings begin, left and right."""
    crossing: float
    """Where another street crosses."""


def draw_sky(
    canvas: Canvas,
    rng: np.random.Generator,
    zenith: tuple[int, int, int],
    clouds: tuple[int, int, int],
) -> None:
    """Draw sky and clouds down to the horizon."""
    import cv2

    width, rows = canvas.view.width, int(canvas.view.horizon) + 2
    way = np.linspace(0, 1, 16, dtype=np.float32)[:, None, None] ** 0.8
    sky = zenith + way * (canvas.haze - zenith)
    cells = rng.random((5, 9), np.float32)
    cover = cv2.resize(cells, (48, 16), interpolation=cv2.INTER_CUBIC)
    cover = np.clip(cover * 2.2 - rng.uniform(0.9, 1.6), 0, 0.85)[..., None]
    small = np.clip(sky + cover * (clouds - sky), 0, 255).astype(np.uint8)
    canvas.pixels[:rows, :, :3] = cv2.resize(small, (width, rows))
    canvas.pixels[:rows, :, 3] = SKY


def draw_skyline(canvas: Canvas, rng: np.random.Generator, style: Style) -> None:
    """Draw buildings and trees at the end of the street."""
    straight = canvas.view.bend * FAR**2
    for x in np.arange(-130, 130, 13.0) + rng.uniform(-4, 4, 20):
        spot = (float(x) - straight, FAR)
        if rng.random() < 0.5:
            top, half = rng.uniform(5, 26), rng.uniform(6, 11)
            colour = pick(rng, style.buildings) * 0.9
            canvas.upright(spot, rectangle(-half, 0, half, top), colour, BUILDING)
        else:
            bump = rectangle(-9, -1, 9, rng.uniform(3, 9)) + rng.uniform(-1, 1, (4, 2))
            canvas.upright(spot, bump, pick(rng, style.leaves), VEGETATION)


def draw_ground(
    canvas: Canvas, rng: np.random.Generator, street: Street, style: Style
) -> None:
    """Draw the ground from the horizon down: verges, sidewalks, road and its marks."""
    road = pick(rng, style.road)
    grass, walk = pick(rng, style.grass), pick(rng, style.sidewalk)
    left, right = street.left - street.walks[0], street.right + street.walks[1]
    _band(canvas, -WIDE, WIDE, grass, TERRAIN)
    for inner, outer in ((left, -WIDE), (right, WIDE)):
        if rng.random() < 0.25:  # paved up to the houses
            _band(canvas, min(inner, outer), max(inner, outer), walk * 0.97, SIDEWALK)
    _band(canvas, left, right, walk, SIDEWALK)
    joints = [strip(left, right, (z, z + 0.07)) for z in np.arange(4.0, 25.0, 2.4)]
    canvas.area(np.stack(joints), walk * 0.86, SIDEWALK)
    _band(canvas, street.left - 0.16, street.right + 0.16, walk * 1.12, SIDEWALK)
    _band(canvas, street.left, street.right, road, ROAD)
    across = np.linspace(street.crossing, street.crossing + 9, 6)
    canvas.area(strip(-WIDE, WIDE, across), road, ROAD)
    _draw_marks(canvas, rng, street, road)
    canvas.draw()
    if rng.random() < style.sun[0]:
        _darken(canvas, rng, street)


def _band(
    canvas: Canvas, left: float, right: float, colour: Points, label: int
) -> None:
    """Draw ground along the street, in pieces that fade one by one."""
    for start in range(0, len(DEPTHS) - 1, 4):
        canvas.area(strip(left, right, DEPTHS[start : start + 5]), colour, label)


def _draw_marks(
    canvas: Canvas, rng: np.random.Generator, street: Street, road: Points
) -> None:
    """Draw lines between lanes, a zebra crossing, and stains."""
    paint = np.array((214, 212, 200)) * rng.uniform(0.8, 1.05)
    lines = np.arange(-1.7, street.left + 2, -3.3)
    begin = rng.uniform(2, 8)
    for x in lines:
        starts = np.arange(begin, 70, 8.0)[::-1]
        for group in (starts[:4], starts[4:]):  # two groups, which fade differently
            dashes = [strip(x - 0.08, x + 0.08, (s, s + 3.5)) for s in group]
            canvas.area(np.stack(dashes), paint, ROAD)
    if rng.random() < 0.6:
        near = street.crossing - 4.2
        bars = np.arange(street.left + 0.4, street.right - 0.5, 1.0)
        zebra = [strip(x, x + 0.5, (near, near + 3)) for x in bars]
        canvas.area(np.stack(zebra), paint, ROAD)
    for _ in range(rng.poisson(2)):
        x, z = rng.uniform(street.left, street.right), rng.uniform(4, 25)
        stain = strip(x - rng.uniform(0.2, 0.8), x + 0.4, (z, z + rng.uniform(0.5, 5)))
        canvas.area(stain, road * rng.uniform(0.8, 1.12), ROAD)


def _darken(canvas: Canvas, rng: np.random.Generator, street: Street) -> None:
    """Draw the shadow of one row of buildings on the ground."""
    import cv2

    left, width = rng.random() < 0.5, rng.uniform(2, 9)
    edge = street.fronts[0] if left else street.fronts[1]
    inner = edge + width if left else edge - width
    jagged = inner + np.repeat(rng.uniform(-1.5, 1.5, len(DEPTHS) // 2), 2)
    outer = edge - 60 if left else edge + 60
    corners = canvas.view.project(strip(outer, jagged, DEPTHS))
    mask = np.full(canvas.pixels.shape[:2], 255, np.uint8)
    cv2.fillPoly(mask, [np.clip(corners, -30_000, 30_000).astype(np.int32)], 150)
    below = int(canvas.view.horizon) + 2
    light = cv2.merge([mask[below:]] * 3)
    ground = canvas.pixels[below:, :, :3]
    ground[:] = cv2.multiply(ground, light, scale=1 / 255)


def fronts(rng: np.random.Generator, street: Street, style: Style) -> list[Part]:
    """Line both sides of the street with buildings, and with walls and hedges."""
    parts: list[Part] = []
    gaps, dark = (0.7 if rng.random() < 0.25 else 0.25), int(rng.integers(2))
    for side, x in enumerate(street.fronts):
        lit = 1 - style.sun[1] * rng.uniform(0.6, 1.2) if side == dark else 1.0
        z = NEAREST
        while z < FAR:
            end = min(z + rng.uniform(7, 22), FAR)
            if end > street.crossing - 1 and z < street.crossing + 10:
                end = street.crossing - 1
            if end > z + 2:
                make = _barrier if rng.random() < gaps else _front
                parts.append(make(rng, (x, z, end), lit, style))
            z = (
                end
                if end > z and end != street.crossing - 1
                else street.crossing + 10.5
            )
    return parts


class _Facade(NamedTuple):
    """The front of a building, as seen from the street."""

    colour: Points
    glass: Points
    awning: Points
    """The shop's; it has a shop if `shop`."""
    shop: bool
    floors: int
    storey: float
    pane: tuple[float, float]
    """Width and height of a window."""
    step: float


def _front(
    rng: np.random.Generator,
    spot: tuple[float, float, float],
    lit: float,
    style: Style,
) -> Part:
    """Make a building along the street, with windows in rows, and its end wall."""
    wide = rng.uniform(0.9, 1.6)
    facade = _Facade(
        colour=pick(rng, style.buildings),
        glass=pick(rng, style.windows) * lit,
        awning=pick(rng, style.cars) * 0.8 * lit,
        shop=rng.random() < 0.45,
        floors=int(rng.integers(2, 8)),
        storey=rng.uniform(2.9, 3.6),
        pane=(wide, rng.uniform(1.1, 2.0)),
        step=wide + rng.uniform(0.7, 1.6),
    )
    return spot[1], lambda canvas: _draw_front(canvas, facade, spot, lit)


def _draw_front(
    canvas: Canvas, facade: _Facade, spot: tuple[float, float, float], lit: float
) -> None:
    x, z, end = spot
    top, colour = facade.floors * facade.storey + 0.8, facade.colour * lit
    deep = 14 if x > 0 else -14
    canvas.upright((x, z), rectangle(0, 0, deep, top), facade.colour * 0.8, BUILDING)
    canvas.area(along(x, rectangle(z, 0, end, top)), colour, BUILDING)
    if z > 90:
        return
    canvas.area(along(x, rectangle(z, top - 0.5, end, top)), colour * 0.7, BUILDING)
    columns = np.arange(z + 0.6, end - facade.pane[0], facade.step)
    rows = np.arange(int(facade.shop), facade.floors) * facade.storey + 1.0
    corner = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 1, 2)
    panes = rectangle(0, 0, *facade.pane) + corner
    if len(panes):
        canvas.area(along(x, panes), facade.glass, BUILDING)
        sills = rectangle(-0.1, -0.18, facade.pane[0] + 0.1, 0) + corner
        if z < 35:
            canvas.area(along(x, sills), colour * 1.15, BUILDING)
    if facade.shop and z < 60:
        shopfront = rectangle(z + 0.5, 0.3, end - 0.5, 2.5)
        canvas.area(along(x, shopfront), facade.glass * 0.8, BUILDING)
        canvas.area(
            along(x, rectangle(z + 0.3, 2.5, end - 0.3, 3.1)), facade.awning, BUILDING
        )


def _barrier(
    rng: np.random.Generator,
    spot: tuple[float, float, float],
    lit: float,
    style: Style,
) -> Part:
    """Make a wall, a fence or a hedge along the street."""
    x, z, end = spot
    kind, top = int(rng.choice(3, p=(0.4, 0.35, 0.25))), rng.uniform(1.0, 2.6)
    label = (WALL, FENCE, VEGETATION)[kind]
    colour = pick(rng, (style.walls, style.metal, style.leaves)[kind]) * lit

    def draw(canvas: Canvas) -> None:
        canvas.area(along(x, rectangle(z, 0, end, top)), colour, label)
        canvas.area(along(x, rectangle(z, top - 0.15, end, top)), colour * 0.75, label)
        if label == FENCE and z < 60:
            posts = [rectangle(s, 0, s + 0.12, top) for s in np.arange(z, end, 0.9)]
            canvas.area(along(x, np.stack(posts)), colour * 0.6, label)

    return z, draw
