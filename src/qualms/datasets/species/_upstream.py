"""Objects of pretraining: fish, butterflies, flowers, mushrooms, boats, lamps.

None of them occurs downstream, but they have parts, paints and proportions as the
objects downstream have.
"""

import numpy as np

from qualms.datasets.species._canvas import (
    ObjectCanvas,
    ellipse,
    line,
    polygon,
    smooth,
    turn,
)
from qualms.datasets.species._traits import Traits, tint

DARK = (0.08, 0.08, 0.1)
PALE = (0.93, 0.92, 0.86)


def draw_fish(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a fish from the side, its head to the right."""
    height, length = traits.size(0.22, 0.5), traits.size(0.55, 0.75)
    body, fins = traits.paint(), traits.paint(patterns=("plain", "stripes", "fade"))
    spread, fork = traits.size(0.2, 0.5), traits.size(-0.15, 0.2)
    tail = [(-length + 0.1, 0.0), (-0.95, -spread), (-0.95 + fork, 0), (-0.95, spread)]
    canvas.fill(polygon(tail), fins)
    top, place = traits.size(0.15, 0.45), traits.size(-0.3, 0.2)
    back = [(place - 0.3, -height * 0.7), (place, -height - top), (place + 0.4, -0.1)]
    canvas.fill(polygon(back), fins)
    low = traits.size(0.05, 0.35)
    belly = [(place - 0.2, height * 0.6), (place, height + low), (place + 0.3, 0.1)]
    canvas.fill(polygon(belly), fins)
    nose, hump = traits.size(0.75, 0.95), traits.size(-0.2, 0.35)
    outline = [(nose, 0), (hump, -height), (-length, -0.07), (-length, 0.07)]
    canvas.fill(smooth([*outline, (hump - 0.1, height)]), body)
    gill = traits.size(0.3, 0.5)
    canvas.fill(ellipse(gill, 0.05, 0.04, 0.55 * height), tint(body.second, 0.7))
    eye = traits.size(0.05, 0.1)
    canvas.fill(ellipse(nose - 0.2, -0.25 * height, eye, eye), tint(PALE), shade=0)
    canvas.fill(ellipse(nose - 0.19, -0.25 * height, eye / 2, eye / 2), tint(DARK))


def draw_butterfly(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a butterfly from above."""
    fore, hind = traits.paint(), traits.paint()
    rim, spot = tint(traits.colour()), tint(traits.colour())
    wide, high = traits.size(0.65, 0.95), traits.size(0.45, 0.9)
    low, tail = traits.size(0.35, 0.65), traits.size(0.4, 0.95)
    edge = traits.size(0.75, 0.92)
    at, radius = traits.size(0.35, 0.65), traits.size(0.05, 0.17)
    for side in (-1, 1):
        lower = [(0, 0), (low, 0.1), (low * 0.9, tail * 0.8), (low * 0.4, tail)]
        upper = [(0, 0.1), (0.25, -high * 0.7), (wide, -high), (wide * 0.85, 0)]
        for wing, paint in ((lower, hind), (upper, fore)):
            outline = smooth(wing) * (side, 1)
            canvas.fill(outline, rim)
            middle = outline.mean(axis=0)
            canvas.fill(middle + (outline - middle) * edge, paint)
        canvas.fill(ellipse(side * wide * at, -high * 0.5, radius, radius), spot)
    canvas.fill(ellipse(0, 0.05, 0.07, traits.size(0.35, 0.55)), tint(DARK, 2))
    for side in (-1, 1):
        canvas.fill(line(0, -0.3, side * 0.25, -0.75, 0.035), tint(DARK, 2))


def draw_flower(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a flower on its stem, with two leaves."""
    petals, layers = traits.count(4, 9), traits.count(1, 2)
    paint, inner = traits.paint(frequency=(0.8, 2.5)), traits.paint()
    leaf, heart = tint((0.2, 0.45, 0.15), traits.size(0.6, 1.5)), traits.paint()
    canvas.fill(line(0, -0.2, 0.05, 0.98, 0.07), leaf)
    drop, long = traits.size(0.4, 0.8), traits.size(0.25, 0.5)
    for side in (-1, 1):
        canvas.fill(ellipse(side * long, drop, long, 0.12, side * -0.4), leaf)
    length, width = traits.size(0.3, 0.42), traits.size(0.12, 0.26)
    pointed = traits.size(0.5, 1.2)
    shape = [(0.05, 0), (length, -width), (2 * length, 0), (length, width)]
    for layer in range(layers):
        grown = 1 - 0.4 * layer
        outline = smooth(np.array(shape) * (grown, grown * pointed))
        for petal in range(petals):
            angle = 2 * np.pi * (petal + 0.5 * layer) / petals
            place = turn(outline, angle, (0, -0.2))
            canvas.fill(place, inner if layer else paint, shade=0.35)
    size = traits.size(0.1, 0.25)
    canvas.fill(ellipse(0, -0.2, size, size), heart)


def draw_mushroom(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a mushroom, seen from slightly below."""
    stem, cap = traits.paint(dull=0.6, patterns=("plain", "fade")), traits.paint()
    thin, thick = traits.size(0.1, 0.3), traits.size(0.12, 0.4)
    foot = [(-thin, -0.2), (thin, -0.2), (thick, 0.85), (0, 0.95), (-thick, 0.85)]
    canvas.fill(smooth(foot), stem)
    ring = traits.size(0.0, 0.5)
    canvas.fill(ellipse(0, ring, thick * 1.3, 0.06), tint(stem.second))
    wide, high = traits.size(0.5, 0.95), traits.size(0.3, 0.85)
    brim, peak = traits.size(-0.2, 0.25), traits.size(0.15, 0.7)
    canvas.fill(ellipse(0, brim - 0.05, wide * 0.95, 0.16), tint(cap.second, 0.6))
    outline = [(-wide, brim), (-wide * peak, brim - high), (wide * peak, brim - high)]
    canvas.fill(smooth([*outline, (wide, brim), (0, brim - 0.08)]), cap, shade=0.4)


def draw_boat(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a sailing boat from the side."""
    hull, sail = traits.paint(patterns=("plain", "stripes", "fade")), traits.paint()
    jib, mast = traits.paint(), traits.size(-0.25, 0.25)
    bow, stern = traits.size(0.7, 0.98), traits.size(0.5, 0.95)
    deep, keel = traits.size(0.25, 0.5), traits.size(0.3, 0.8)
    deck = 0.95 - deep
    canvas.fill(line(mast, deck, mast, -0.97, 0.05), tint((0.4, 0.27, 0.15)))
    main, front = traits.size(0.45, 0.8), traits.size(0.35, 0.75)
    low, top = traits.size(0.05, 0.25), traits.size(0.0, 0.4)
    corners = [(mast - 0.04, -0.95), (mast - 0.04, deck - low), (-main, deck - low)]
    canvas.fill(polygon(corners), sail)
    corners = [(mast + 0.04, -0.95 + top), (front, deck - 0.08), (mast + 0.04, 0.3)]
    canvas.fill(polygon(corners), jib)
    below = [(bow * keel, 0.95), (-stern * keel, 0.95)]
    canvas.fill(polygon([(-stern, deck), (bow, deck - 0.08), *below]), hull)
    holes, size = traits.count(0, 4), traits.size(0.04, 0.07)
    for hole in range(holes):
        x = -0.4 + 0.8 * hole / max(holes - 1, 1)
        canvas.fill(ellipse(x, deck + 0.45 * deep, size, size), tint(DARK))


def draw_lamp(canvas: ObjectCanvas, traits: Traits) -> None:
    """Draw a table lamp."""
    shade, foot = traits.paint(), traits.paint()
    base, body = traits.size(0.3, 0.65), traits.size(0.1, 0.4)
    neck, middle = traits.size(0.04, 0.2), traits.size(0.2, 0.7)
    canvas.fill(ellipse(0, 0.88, base, 0.09), tint(foot.second, 0.8))
    outline = [(-neck, 0.0), (neck, 0.0), (body, middle), (base * 0.6, 0.9)]
    canvas.fill(smooth([*outline, (-base * 0.6, 0.9), (-body, middle)]), foot)
    top, low, high = traits.size(0.2, 0.7), traits.size(0.5, 0.95), traits.size(0, 0.2)
    if traits.count(0, 1):
        corners = [(-top, -0.95), (top, -0.95), (low, high), (-low, high)]
        canvas.fill(polygon(corners), shade)
    else:
        corners = [(-top, -0.8), (0, -0.95), (top, -0.8), (low, high), (-low, high)]
        canvas.fill(smooth(corners), shade)
    canvas.fill(line(-low, high, low, high, traits.size(0.02, 0.12)), tint(DARK, 3))


PLANS = (draw_fish, draw_butterfly, draw_flower, draw_mushroom, draw_boat, draw_lamp)
