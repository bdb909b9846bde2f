"""What stands in a street: tables of outlines in metres, and how a thing is drawn."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.datasets._outlines import CIRCLE, Points, outlines
from qualms.datasets._street import CLASSES, IGNORE
from qualms.datasets.street_sim._canvas import (
    Canvas,
    along,
    lying,
    rectangle,
)
from qualms.datasets.street_sim._styles import Style, pick

LABEL = {name: number for number, name in enumerate(CLASSES)} | {"": IGNORE}
FAR = 160.0
"""Metres to the end of the street."""


class Piece(NamedTuple):
    """Outlines of one colour; pieces of one material of a thing share their colour."""

    material: str
    outline: Points
    """(n, 2) or (k, n, 2)."""
    shade: float = 1.0
    label: str | None = None
    """A class, "" for none; the class of the thing if left out."""
    plane: Literal["end", "side", "ground"] = "end"
    """"end" faces the camera: x and height; "side" lies along the street, on the side
    that the camera sees: Z and height; "ground": x and Z."""
    within: float = FAR
    """Metres from which on it is too small to be drawn."""
    rough: float = 0.0
    """Metres by which corners are moved at random."""


class Thing(NamedTuple):
    """Something of a class, whose pieces are drawn one on top of the other."""

    label: str
    pieces: tuple[Piece, ...]
    half: float = 0.0
    """Half the width of what lies along the street."""
    vary: tuple[float, float] = (0.06, 0.06)
    """By which shares width and height vary."""


def draw_thing(
    canvas: Canvas,
    rng: np.random.Generator,
    style: Style,
    thing: Thing,
    x: float,
    z: float,
) -> None:
    """Draw a thing at (x, z) in colours and a size of its own.

    Things of the table are on the right; on the left they are seen in a mirror.
    """
    wide, high = 1 + np.array(thing.vary) * rng.uniform(-1, 1, 2)
    across = np.array((wide if x > 0 or thing.half else -wide, high))
    colours: dict[str, Points] = {}
    for material, outline, shade, label, plane, within, rough in thing.pieces:
        if z > within:
            continue
        if material not in colours:
            colours[material] = pick(rng, style, material)
        flat = outline
        if rough:
            flat = flat + rng.uniform(-rough, rough, flat.shape)
        name = LABEL[thing.label if label is None else label]
        colour = colours[material] * shade
        if plane == "end":
            canvas.upright((x, z), flat * across, colour, name)
        elif plane == "side":
            side = x - thing.half if x > 0 else x + thing.half
            canvas.area(along(side, z, flat * (1, high)), colour, name)
        else:
            canvas.area(lying(x, z, flat), colour, name)


def both(outline: Points, apart: float) -> Points:
    """Return an outline twice, `apart` to the left and to the right."""
    twice: Points = outline + np.array([[(-apart, 0)], [(apart, 0)]])
    return twice


def _piece(
    material: str,
    text: str,
    shade: float = 1.0,
    label: str | None = None,
    within: float = FAR,
    rough: float = 0.0,
) -> Piece:
    """Return a piece that faces the camera, from its outlines as a text."""
    shapes = np.stack(outlines(text))
    return Piece(material, shapes, shade, label, within=within, rough=rough)


def _thing(
    label: str, *pieces: Piece, vary: tuple[float, float] = (0.06, 0.06)
) -> Thing:
    return Thing(label, pieces, vary=vary)


# fmt: off
_POST = _piece("metal", "box -.06,0 .06,3", label="pole")
_BODY = (
    _piece("clothes", "flat -.2,.85 .2,.85 .25,1.42 0,1.5 -.25,1.42"),
    _piece("skin", "oval 0,1.63 .12,.12"),
    _piece("clothes", "box -.31,.85 -.21,1.42 | box .21,.85 .31,1.42", 0.8, within=30),
    _piece("hair", "box -.12,1.66 .12,1.76", within=30),
)
_RIDER = (
    _piece("trousers", "flat -.3,.9 0,.98 .2,.7 .12,.28 0,.28 .02,.65"),
    *(part._replace(outline=part.outline + np.array((-0.1, 0.06))) for part in _BODY),
)
_BICYCLE = tuple(_piece(*row, label="bicycle") for row in (
    ("tyre", "oval -.52,.34 .34,.34 | oval .52,.34 .34,.34"),
    ("metal", "oval -.52,.34 .26,.26 | oval .52,.34 .26,.26"),
    ("car", "flat -.52,.3 -.2,.85 .36,.85 .52,.34 0,.3"),
    ("tyre", "box .3,.34 .38,1.08"),
    ("tyre", "box -.38,.82 -.08,.92"),
))
_MOTORCYCLE = tuple(_piece(*row, label="motorcycle") for row in (
    ("tyre", "oval -.65,.34 .34,.34 | oval .65,.34 .34,.34"),
    ("metal", "oval -.65,.34 .17,.17 | oval .65,.34 .17,.17"),
    ("car", "flat -.65,.3 -.26,.85 .45,.85 .65,.34 0,.3"),
    ("tyre", "box .3,.34 .47,1.08"),
    ("tyre", "box -.45,.82 -.08,.92"),
))
_LIGHT = (  # one of its three lamps is lit
    _piece("tyre", "box -.22,2.35 .22,3.5", 1.4),
    _piece("dark", "oval 0,3.26 .14,.14 | oval 0,2.92 .14,.14 | oval 0,2.58 .14,.14"),
    _piece("signal", "oval 0,3.26 .14,.14"),
)
THINGS = {
    "person": _thing(
        "person",
        _piece("trousers", "flat -.1,.9 .1,.9 .24,0 .08,0"
               "| flat .1,.9 -.1,.9 -.24,0 -.08,0"),
        *_BODY, vary=(0.25, 0.1),
    ),
    "bicycle": _thing("bicycle", *_BICYCLE),
    "cyclist": _thing("rider", *_BICYCLE, *_RIDER),
    "motorcycle": _thing("motorcycle", *_MOTORCYCLE),
    "motorcyclist": _thing("rider", *_MOTORCYCLE, *_RIDER),
    "lamp": _thing(
        "pole", _piece("metal", "box -.11,0 .11,7 | box -1.7,6.86 0,7"),
        vary=(0.3, 0.28),
    ),
    "round sign": _thing(
        "traffic sign", _POST,
        _piece("red", "oval 0,2.6 .4,.4"), _piece("plate", "oval 0,2.6 .28,.28"),
    ),
    "triangle": _thing(
        "traffic sign", _POST, _piece("red", "flat -.5,2.25 .5,2.25 0,3.1"),
        _piece("paint", "flat -.33,2.36 .33,2.36 0,2.92"),
    ),
    "board": _thing(
        "traffic sign", _POST, _piece("plate", "box -.6,2.2 .6,3"),
        _piece("paint", "box -.42,2.54 .42,2.66"), vary=(0.4, 0.06),
    ),
    "light": _thing("traffic light", _POST, *_LIGHT),
    "light above": _thing(
        "traffic light",
        _piece("metal", "box -.08,0 .08,5.6 | box -3.5,5.48 0,5.6", label="pole"),
        *_LIGHT,
        *(p._replace(outline=p.outline + np.array((-3.5, 2.3))) for p in _LIGHT),
        vary=(0.06, 0.03),
    ),
    "tree": _thing(
        "vegetation",
        _piece("trunk", "box -.14,0 .14,5"),
        _piece("leaves", "oval 0,4.7 1.8,1.8", 0.75, rough=0.25),
        _piece("leaves", "oval -1.2,5 1.3,1.3", 0.8, within=40, rough=0.25),
        _piece("leaves", "oval 1.2,5.1 1.4,1.4", 0.9, within=40, rough=0.25),
        _piece("leaves", "oval .3,5.6 1.7,1.7", 0.95, rough=0.25),
        _piece("leaves", "oval -.7,6.2 1.3,1.3", 1.1, rough=0.25),
        _piece("leaves", "oval .7,6.6 1.1,1.1", 1.15, within=40, rough=0.25),
        vary=(0.35, 0.3),
    ),
    "bush": _thing(
        "vegetation",
        _piece("leaves", "oval -.9,.5 .5,.5", 0.8, rough=0.12),
        _piece("leaves", "oval .8,.6 .6,.6", 0.9, rough=0.12),
        _piece("leaves", "oval 0,.7 .7,.7", rough=0.12),
        vary=(0.3, 0.3),
    ),
    "bin": _thing(
        "", _piece("metal", "box -.55,0 .55,.95"),
        _piece("metal", "box -.55,.76 .55,.95", 0.6), vary=(0.5, 0.4),
    ),
}
# fmt: on
"""Things that face the camera."""

PROFILES = (
    # Saloon, hatchback, van and jeep: height over the way from the rear to the front.
    (0.4, ((0, 0.9), (0.5, 0.95), (1, 1.38), (2.4, 1.42), (3.2, 0.95), (4.4, 0.8))),
    (0.3, ((0.05, 1.0), (0.35, 1.42), (2.0, 1.5), (2.8, 1.0), (3.8, 0.85))),
    (0.12, ((0, 1.9), (0.1, 2.0), (3.6, 1.95), (4.4, 1.15), (4.9, 0.95))),
    (0.18, ((0, 1.75), (0.15, 1.82), (2.8, 1.8), (3.3, 1.15), (4.5, 1.05))),
)


def _car(profile: ArrayLike, *, coming: bool) -> tuple[Piece, ...]:
    """Return a car along the street, of whose ends the rear or the front is near."""
    outline = np.array(profile, np.float64)
    length, top = outline[-1, 0], outline[:, 1].max()
    outline = np.concatenate([outline, [(length, 0.35), (0, 0.35)]])
    if coming:
        outline = (outline * (-1, 1) + (length, 0))[::-1]
    glass = outline[outline[:, 1] > 0.9]
    glass = glass.mean(axis=0) + (glass - glass.mean(axis=0)) * (0.8, 0.7)
    waist = 0.9 if top < 1.6 else 1.1
    roof = np.array([(-0.88, waist), (0.88, waist), (0.69, top), (-0.69, top)])
    lamp = rectangle(-0.17, 0.64, 0.17, 0.8)
    return (
        *_below(0.88, length, 0.2 * length, 0.33),
        Piece("car", outline, 0.85, plane="side"),
        Piece("glass", glass, plane="side"),
        Piece("car", roof, 0.92),
        Piece("glass", (roof - (0, waist)) * (0.84, 0.85) + (0, waist + 0.05)),
        Piece("car", rectangle(-0.88, 0.3, 0.88, waist)),
        Piece("car", rectangle(-0.88, 0.22, 0.88, 0.42), 0.45, within=30),
        Piece("headlamp" if coming else "red", both(lamp, 0.7), within=30),
        Piece("paint", rectangle(-0.25, 0.5, 0.25, 0.62), within=30),
        Piece("tyre", both(rectangle(-0.12, 0, 0.12, 0.3), 0.7), within=30),
    )


def _below(half: float, length: float, axle: float, wheel: float) -> tuple[Piece, ...]:
    """Return the shadow of a vehicle on the road, and the wheels of its side."""
    shadow = rectangle(-half, -0.15, half, length)
    at = np.array([[(axle, wheel)], [(length - axle, wheel)]])
    return (
        Piece("tyre", shadow, 1.3, "road", "ground"),
        Piece("tyre", at + wheel * CIRCLE, plane="side"),
    )


def _coach(length: float, half: float, top: float) -> tuple[Piece, ...]:
    """Return a bus or a tram with its rows of windows."""
    pane = rectangle(0.4, 1.3, 1.8, top - 0.5)
    starts = np.arange(0, length - 1.5, 1.7)[:, None, None] * (1, 0)
    lamp = rectangle(-0.2, 0.55, 0.2, 0.75)
    return (
        *_below(half, length, 2, 0.45),
        Piece("car", rectangle(0, 0.35, length, top), 0.85, plane="side"),
        Piece("glass", pane + starts, plane="side"),
        Piece("car", rectangle(-half, 0.3, half, top)),
        Piece("glass", rectangle(-0.9 * half, 1.1, 0.9 * half, top - 0.5)),
        Piece("destination", rectangle(-0.7 * half, top - 0.4, 0.7 * half, top - 0.1)),
        Piece("headlamp", both(lamp, 0.75 * half)),
    )


def _truck(*, coming: bool) -> tuple[Piece, ...]:
    """Return a truck: a box with a cab at its near or its far end."""
    box, cab = ((2, 7.5), (0, 2)) if coming else ((0, 5.5), (5.5, 7.5))
    end = (
        Piece("car", rectangle(-1.2, 0.4, 1.2, 2.5)),
        Piece("glass", rectangle(-1.05, 1.4, 1.05, 2.2)),
    )
    return (
        *_below(1.2, 7.5, 1, 0.5),
        Piece("wall", rectangle(box[0], 0.7, box[1], 3.4), 0.85, plane="side"),
        Piece("car", rectangle(cab[0], 0.5, cab[1], 2.5), 0.85, plane="side"),
        Piece("wall", rectangle(-1.2, 0.7, 1.2, 3.4)),
        Piece("tyre", rectangle(-1.2, 0.4, 1.2, 0.8)),
        *(end if coming else [Piece("wall", rectangle(-0.03, 0.8, 0.03, 3.3), 0.6)]),
    )


CARS = tuple(
    (share / 2, Thing("car", _car(profile, coming=coming), 0.88))
    for share, profile in PROFILES
    for coming in (False, True)
)
"""Cars along the street, each with its share."""
TRAFFIC = (
    *((0.8 * share, car) for share, car in CARS),
    (0.05, Thing("truck", _truck(coming=False), 1.2, (0, 0.1))),
    (0.05, Thing("truck", _truck(coming=True), 1.2, (0, 0.1))),
    (0.06, Thing("bus", _coach(11, 1.25, 3.1), 1.25)),
    (0.04, Thing("train", _coach(28, 1.3, 3.5), 1.3)),
)
"""Vehicles that drive along the street, each with its share."""
