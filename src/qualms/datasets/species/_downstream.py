"""Objects that no network is trained on: birds, cars, and products of five kinds."""

from qualms.datasets.species._canvas import (
    Coat,
    ObjectCanvas,
    Pattern,
    ellipse,
    line,
    polygon,
    smooth,
)
from qualms.datasets.species._traits import Traits, tint

DARK = (0.08, 0.08, 0.1)
GLASS = (0.55, 0.68, 0.75)
SOFT: tuple[Pattern, ...] = ("plain", "fade", "mottled", "stripes", "spots")


def draw_bird(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a perched bird from the side, its head to the right."""
    body, wing = traits.paint(patterns=SOFT), traits.paint()
    tail = traits.paint(patterns=("plain", "stripes"))
    breast, legs = tint(traits.colour()), tint(traits.colour(dull=0.5), 0.7)
    long, fat = traits.size(0.42, 0.6), traits.size(0.27, 0.42)
    droop, reach = traits.size(-0.1, 0.5), traits.size(0.7, 0.98)
    wide = traits.size(0.06, 0.2)
    feathers = [(-long * 0.6, 0), (-reach, droop - wide), (-reach + 0.05, droop + wide)]
    canvas.fill(polygon([*feathers, (-long * 0.5, 0.25)]), tail)
    leg = traits.size(0.2, 0.45)
    for x in (-0.05, 0.12):
        canvas.fill(line(x, 0.3, x + 0.04, 0.45 + leg, 0.05), legs)
    canvas.fill(ellipse(0, 0.12, long, fat, -0.25), body, shade=0.35)
    canvas.fill(ellipse(long * 0.35, 0.2, long * 0.5, fat * 0.7, -0.4), breast)
    _head(canvas, traits, long)
    low, back = traits.size(0.05, 0.3), traits.size(0.5, 0.8)
    fold = [(long * 0.45, -0.02), (0, -fat * 0.5), (-back, low + 0.1)]
    canvas.fill(smooth([*fold, (-0.1, low + 0.2)]), wing)


def _head(canvas: ObjectCanvas, traits: Traits, long: float) -> None:
    """Draw neck, crest, beak and head of a bird."""
    paint, horn = traits.paint(patterns=SOFT), tint(traits.colour())
    size = traits.size(0.17, 0.28)
    x, y = long * 0.75, 0.1 - traits.size(0.3, 0.5)
    neck = [(x - size * 0.8, y), (x + size * 0.8, y), (long * 0.7, 0.25), (0, 0.1)]
    canvas.fill(smooth(neck), paint)
    crest = traits.size(-0.2, 0.35)
    if crest > 0:
        back = [(x - size, y), (x - size - 0.1, y - size - crest)]
        canvas.fill(polygon([*back, (x + 0.1, y - size)]), tint(paint.second))
    beak, deep = traits.size(0.12, 0.4), traits.size(0.04, 0.12)
    start, tip = x + size * 0.7, (x + size * 0.8 + beak, y + 0.08)
    canvas.fill(polygon([(start, y - deep), tip, (start, y + deep + 0.03)]), horn)
    canvas.fill(ellipse(x, y, size, size * 0.92), paint, shade=0.35)
    canvas.fill(ellipse(x + size * 0.3, y - size * 0.2, 0.06, 0.06), tint(DARK))


def draw_sedan(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a car from the side, driving to the right."""
    body = traits.paint(patterns=("plain", "plain", "fade", "stripes"))
    sides = tint(traits.colour(dull=0.4), 0.8)
    belt, sill = traits.size(-0.15, 0.1), traits.size(0.22, 0.36)
    rear, front = traits.size(-0.95, -0.45), traits.size(0.1, 0.55)
    roof = tint(traits.colour()) if traits.count(0, 2) == 0 else body
    _cabin(canvas, traits, (rear, front, belt), roof)
    hood, trunk = belt + traits.size(0.0, 0.2), belt + traits.size(0.0, 0.15)
    nose = [(front, belt), (0.9, hood), (0.97, 0.4), (-0.97, 0.4)]
    canvas.fill(polygon([(-0.93, trunk), (rear, belt), *nose]), body)
    low = [(-0.95, sill), (0.95, sill), (0.92, 0.46), (-0.92, 0.46)]
    canvas.fill(polygon(low), sides)
    door = traits.size(-0.1, 0.2)
    canvas.fill(line(door, belt, door, sill, 0.03), tint(body.colour, 0.5))
    lamp, flat = traits.size(0.05, 0.13), traits.size(0.4, 1.0)
    canvas.fill(ellipse(0.88, hood + 0.14, lamp, lamp * flat), tint((0.98, 0.95, 0.7)))
    canvas.fill(ellipse(-0.91, trunk + 0.14, 0.05, lamp), tint((0.8, 0.1, 0.1)))
    wheel, spread = traits.size(0.18, 0.28), traits.size(0.5, 0.66)
    rim, spokes = wheel * traits.size(0.35, 0.75), traits.count(0, 3)
    hub = tint(traits.colour(dull=0.7), 1.2)
    for x in (-spread, spread + 0.04):
        canvas.fill(ellipse(x, 0.43, wheel, wheel), tint(DARK))
        canvas.fill(ellipse(x, 0.43, rim, rim), hub)
        for spoke in range(spokes):
            lean, high = (spoke - 1) * rim * 0.6, rim * 0.9
            bar = line(x - lean, 0.43 - high, x + lean, 0.43 + high, 0.04)
            canvas.fill(bar, tint(DARK))


def _cabin(
    canvas: ObjectCanvas,
    traits: Traits,
    extent: tuple[float, float, float],
    roof: Coat,
) -> None:
    """Draw roof and windows of a car between two ends, above the belt."""
    (rear, front, belt), inset = extent, 0.07
    top, pillar = traits.size(-0.65, -0.25), traits.size(-0.35, 0.1)
    slope, screen = traits.size(0.02, 0.35), traits.size(0.15, 0.45)
    peak = [(rear + slope, top), (front - screen, top)]
    canvas.fill(polygon([(rear, belt), *peak, (front, belt)]), roof)
    sides = [(rear + slope * 0.7 + inset, belt), (rear + slope + inset, top + inset)]
    ends = [(front - screen - inset / 2, top + inset), (front - inset, belt)]
    canvas.fill(polygon([*sides, *ends]), tint(GLASS, traits.size(0.4, 1.1)))
    canvas.fill(line(pillar, top + 0.03, pillar, belt, 0.06), roof)


def draw_product(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a bottle, a box, a mug, a bag or a chair."""
    traits.one_of((_bottle, _box, _mug, _bag, _chair))(canvas, traits)


def _bottle(canvas: ObjectCanvas, traits: Traits) -> None:
    glass, wide = traits.paint(patterns=("plain", "fade")), traits.size(0.25, 0.5)
    neck, shoulder = traits.size(0.08, 0.2), traits.size(-0.45, 0.0)
    outline = [(-neck, -0.8), (neck, -0.8), (neck, shoulder - 0.2), (wide, shoulder)]
    outline += [(wide, 0.95), (-wide, 0.95), (-wide, shoulder), (-neck, shoulder - 0.2)]
    canvas.fill(polygon(outline), glass, shade=0.4)
    cap = traits.size(0.1, 0.25)
    canvas.fill(line(0, -0.95, 0, -0.95 + cap, 2.4 * neck), tint(traits.colour()))
    top, low = traits.size(0.05, 0.3), traits.size(0.5, 0.85)
    canvas.fill(line(0, top, 0, low, 2 * wide), traits.paint())
    _emblem(canvas, traits, 0.0, (top + low) / 2, wide)


def _box(canvas: ObjectCanvas, traits: Traits) -> None:
    wide, high = traits.size(0.35, 0.7), traits.size(0.4, 0.8)
    depth = traits.size(0.1, 0.3)
    front, side = traits.paint(), traits.paint()
    low = [(-wide - depth / 2, 0.9), (wide - depth / 2, 0.9)]
    up = [(x, 0.9 - 2 * high + depth) for x, _ in low]
    canvas.fill(polygon([*low, up[1], up[0]]), front)
    lift = [(x + depth, y - depth) for x, y in (low[1], up[1])]
    canvas.fill(polygon([low[1], lift[0], lift[1], up[1]]), tint(side.colour, 0.7))
    back = (up[0][0] + depth, up[0][1] - depth)
    canvas.fill(polygon([up[0], up[1], lift[1], back]), side)
    band = traits.size(0.1, 0.5)
    y = 0.9 - 2 * high * traits.size(0.2, 0.7) + depth / 2
    canvas.fill(line(low[0][0], y, low[1][0], y, band), tint(traits.colour()))
    _emblem(canvas, traits, -depth / 2, 0.9 - high + depth / 2, wide)


def _mug(canvas: ObjectCanvas, traits: Traits) -> None:
    body, inside = traits.paint(), tint(traits.colour(), 0.7)
    wide, high = traits.size(0.35, 0.6), traits.size(0.4, 0.8)
    foot, grip = traits.size(0.6, 1.05), traits.size(0.15, 0.35)
    x = wide - 0.15
    canvas.fill(ellipse(x + 0.05, 0.1, grip + 0.1, high * 0.6), tint(body.colour))
    canvas.cut(ellipse(x + 0.05, 0.1, grip - 0.02, high * 0.38))
    low = [(wide * foot - 0.15, high + 0.1), (-wide * foot - 0.15, high + 0.1)]
    canvas.fill(polygon([(-wide - 0.15, -high), (x, -high), *low]), body, shade=0.4)
    canvas.fill(ellipse(-0.15, -high, wide, traits.size(0.08, 0.2)), inside)
    _emblem(canvas, traits, -0.15, 0.15, wide)


def _bag(canvas: ObjectCanvas, traits: Traits) -> None:
    cloth, strap = traits.paint(), tint(traits.colour())
    wide, top = traits.size(0.55, 0.9), traits.size(0.35, 0.9)
    high, arc = traits.size(-0.3, 0.1), traits.size(0.25, 0.45)
    canvas.fill(ellipse(0, high, arc + 0.08, high + 0.92), strap)
    canvas.cut(ellipse(0, high, arc - 0.03, high + 0.78))
    sides = [(-wide * top, high), (wide * top, high), (wide, 0.8), (wide * 0.9, 0.92)]
    canvas.fill(polygon([*sides, (-wide * 0.9, 0.92), (-wide, 0.8)]), cloth)
    flap = high + traits.size(0.05, 0.5)
    edge = [(-wide * top, high), (wide * top, high), (wide * top * 0.8, flap)]
    canvas.fill(polygon([*edge, (-wide * top * 0.8, flap)]), tint(cloth.second, 0.85))
    _emblem(canvas, traits, 0.0, 0.5, wide)


def _chair(canvas: ObjectCanvas, traits: Traits) -> None:
    seat, wood = traits.paint(), tint(traits.colour(dull=0.4), 0.8)
    wide, level = traits.size(0.4, 0.65), traits.size(0.0, 0.3)
    leg, splay = traits.size(0.06, 0.15), traits.size(0.0, 0.25)
    for side in (-1, 1):
        x = side * (wide - 0.08)
        canvas.fill(line(x, level, x + side * splay, 0.95, leg), wood)
    top, narrow = traits.size(-0.95, -0.5), traits.size(0.5, 1.1)
    low = level - traits.size(0.05, 0.3)
    back = [(-wide * narrow, top), (wide * narrow, top), (wide * 0.9, low)]
    canvas.fill(line(-wide * 0.7, top, -wide * 0.7, level, 0.1), wood)
    canvas.fill(line(wide * 0.7, top, wide * 0.7, level, 0.1), wood)
    corners = [*back, (-wide * 0.9, low)]
    canvas.fill(smooth(corners) if traits.count(0, 1) else polygon(corners), seat)
    canvas.fill(
        line(-wide, level, wide, level, traits.size(0.12, 0.3)), tint(seat.second)
    )


def _emblem(
    canvas: ObjectCanvas, traits: Traits, x: float, y: float, wide: float
) -> None:
    """Draw a mark on a product: a disc, a bar, a diamond or nothing."""
    kind, size = traits.count(0, 3), wide * traits.size(0.3, 0.6)
    paint = tint(traits.colour())
    if kind == 1:
        canvas.fill(ellipse(x, y, size, size), paint, shade=0)
    elif kind == 2:
        canvas.fill(line(x - size, y, x + size, y, 0.6 * size), paint, shade=0)
    elif kind == 3:
        corners = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)]
        canvas.fill(polygon(corners), paint, shade=0)
