"""Things beside a street: lamps, signs, lights, trees, and things without a class."""

import numpy as np

from qualms.datasets._street import CLASSES, IGNORE
from qualms.datasets.street_sim._canvas import CIRCLE, Canvas, Spot, disc, rectangle
from qualms.datasets.street_sim._styles import Style, pick

POLE, LIGHT, SIGN = (
    CLASSES.index(name) for name in ("pole", "traffic light", "traffic sign")
)
VEGETATION = CLASSES.index("vegetation")
TRUNK = ((84, 66, 48), (70, 62, 54))
PLATES = ((200, 40, 40), (40, 80, 180), (240, 240, 236), (240, 200, 40), (40, 120, 70))


def draw_pole(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a street lamp, whose arm reaches over the road."""
    top, metal = rng.uniform(5, 9), pick(rng, style.metal)
    inward = -1 if spot[0] > 0 else 1
    canvas.upright(spot, rectangle(-0.11, 0, 0.11, top), metal, POLE)
    arm = rectangle(0, top - 0.14, inward * rng.uniform(1, 2.4), top)
    canvas.upright(spot, arm, metal, POLE)


def draw_sign(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a traffic sign on its pole: round, triangular or a board."""
    metal, plate = pick(rng, style.metal), np.array(PLATES[int(rng.integers(5))])
    height, kind = rng.uniform(2.2, 3.0), rng.random()
    plate = plate * (0.75 if style.bonnet else 1.0)
    canvas.upright(spot, rectangle(-0.06, 0, 0.06, height + 0.3), metal, POLE)
    if kind < 0.4:
        canvas.upright(spot, disc(0, height, 0.4), (200, 40, 40), SIGN)
        canvas.upright(spot, disc(0, height, 0.28), plate, SIGN)
    elif kind < 0.65:
        for size, colour in ((0.5, (200, 40, 40)), (0.33, (240, 240, 236))):
            corners = np.array([(-size, -0.7 * size), (size, -0.7 * size), (0, size)])
            corners[:, 1] += height
            canvas.upright(spot, corners, colour, SIGN)
    else:
        half, low = rng.uniform(0.35, 0.9), rng.uniform(0.3, 0.5)
        canvas.upright(
            spot, rectangle(-half, height - low, half, height + low), plate, SIGN
        )
        line = rectangle(-0.7 * half, height - 0.06, 0.7 * half, height + 0.06)
        canvas.upright(spot, line, (245, 245, 240), SIGN)


def draw_light(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a traffic light at the roadside or over the road."""
    metal, inward = pick(rng, style.metal), -1 if spot[0] > 0 else 1
    over, height = rng.random() < 0.5, rng.uniform(2.6, 3.2)
    canvas.upright(spot, rectangle(-0.08, 0, 0.08, height + 0.6), metal, POLE)
    heads = [(0.0, height)]
    if over:
        reach, top = inward * rng.uniform(2.5, 4.5), 5.6
        canvas.upright(spot, rectangle(-0.08, 0, 0.08, top), metal, POLE)
        canvas.upright(spot, rectangle(0, top - 0.12, reach, top), metal, POLE)
        heads.append((reach, top - 0.4))
    lit = int(rng.choice(3, p=(0.45, 0.1, 0.45)))
    for x, y in heads:
        canvas.upright(
            spot, rectangle(x - 0.22, y - 0.55, x + 0.22, y + 0.6), (36, 38, 36), LIGHT
        )
        for lamp, colour in enumerate(((240, 50, 40), (245, 190, 50), (60, 220, 120))):
            glow = np.array(colour) * (1.0 if lamp == lit else 0.25)
            canvas.upright(spot, disc(x, y + 0.36 - 0.34 * lamp, 0.14), glow, LIGHT)


def draw_tree(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a tree: a trunk and a crown of several clumps."""
    top, wide = rng.uniform(4.5, 9), rng.uniform(1.3, 2.6)
    canvas.upright(
        spot, rectangle(-0.14, 0, 0.14, top - wide), pick(rng, TRUNK), VEGETATION
    )
    leaves = pick(rng, style.leaves)
    count = 7 if spot[1] < 35 else 3
    sizes = rng.uniform(0.45, 0.75, (count, 1, 1)) * (1 if count > 3 else 1.6)
    clumps = CIRCLE * sizes * rng.uniform(0.75, 1.2, (count, len(CIRCLE), 1))
    shifts = rng.normal(0, 0.45, (count, 1, 2))
    outlines = (clumps + shifts) * wide
    outlines[..., 1] += top - wide
    shades = 0.75 + 0.4 * np.arange(count)[:, None] / count + 0.12 * shifts[:, :, 1]
    for outline, colour in zip(outlines, leaves * shades, strict=True):
        canvas.upright(spot, outline, colour, VEGETATION)


def draw_bush(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a bush or a piece of hedge."""
    leaves = pick(rng, style.leaves)
    clumps = CIRCLE * rng.uniform(0.4, 1.0, (4, len(CIRCLE), 1))
    clumps += rng.uniform((-1.1, 0.3), (1.1, 0.7), (4, 1, 2))
    for number, clump in enumerate(np.maximum(clumps, (-9, 0))):
        canvas.upright(spot, clump, leaves * (0.8 + 0.07 * number), VEGETATION)


def draw_clutter(
    canvas: Canvas, rng: np.random.Generator, spot: Spot, style: Style
) -> None:
    """Draw a bin, a box or a bench, which have no class."""
    wide, top = rng.uniform(0.25, 0.9), rng.uniform(0.5, 1.4)
    colour = pick(rng, style.metal)
    canvas.upright(spot, rectangle(-wide, 0, wide, top), colour, IGNORE)
    canvas.upright(spot, rectangle(-wide, 0.8 * top, wide, top), colour * 0.6, IGNORE)
