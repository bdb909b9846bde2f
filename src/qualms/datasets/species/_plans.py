"""Objects as tables of outlines: those of pretraining, and those of later tasks.

A class stretches the whole plane of an object, so parts stay attached, and it grows or
shrinks each part; it chooses paints, and shapes where there are several.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._outlines import Points, outlines, turn
from qualms.datasets.species._canvas import Coat, ObjectCanvas
from qualms.datasets.species._traits import Traits, tint

FIXED = {
    "dark": (0.08, 0.08, 0.1),
    "pale": (0.93, 0.92, 0.86),
    "glass": (0.45, 0.56, 0.62),
    "lamp": (0.98, 0.95, 0.7),
    "red": (0.8, 0.1, 0.1),
    "wood": (0.4, 0.27, 0.15),
    "leaf": (0.2, 0.45, 0.15),
    "hole": (0.0, 0.0, 0.0),
}
"""Paints that are alike in all classes."""
STRETCH, TAPER = (0.75, 1.1), (-0.2, 0.2)
FIRM = (1.0, 1.0)


class Limb(NamedTuple):
    """One part of an object; parts of one paint are painted alike."""

    paint: str
    """One of `FIXED`, or a name: a "plain ..." paint has one colour, others two."""
    shapes: str
    """Outlines of which a class has one."""
    grow: tuple[float, float] = (0.8, 1.2)
    at: tuple[float, float] | None = None
    """Point that stays when the part grows, if not its middle."""
    shade: float = 0.25
    """How round it looks."""
    bright: float = 1.0
    rigid: bool = False
    """Whether it only moves when the plane is stretched."""
    mirror: bool = False
    """Whether it is there twice, left and right."""
    around: tuple[int, int] = (1, 1)
    """Least and greatest number of copies around `at`."""


Plan = tuple[Limb, ...]


def draw_object(canvas: ObjectCanvas, traits: Traits, plan: Plan) -> None:
    """Draw an object by its plan, with the traits of its class."""
    paints: dict[str, Coat] = {}
    stretch = np.array([[traits.size(*STRETCH) for _ in "xy"] for _ in "+-"])
    taper = traits.size(*TAPER)
    for part in plan:
        shape = traits.one_of(outlines(part.shapes))
        size, copies = traits.size(*part.grow), traits.count(*part.around)
        if part.paint not in paints:
            paints[part.paint] = _paint(part.paint, traits)
        if not len(shape):
            continue
        coat = paints[part.paint]
        paint = (
            coat if part.bright == 1 else tint((coat.colour * part.bright).clip(0, 1))
        )
        middle = np.array(part.at) if part.at else shape.mean(axis=0)
        for copy in range(copies):
            angle = 2 * np.pi * copy / copies
            grown = turn((shape - middle) * size, angle, (0, 0))
            if part.rigid:
                outline = grown + _stretched(middle[None], stretch, taper)
            else:
                outline = _stretched(grown + middle, stretch, taper)
            for side in (-1, 1) if part.mirror else (1,):
                if part.paint == "hole":
                    canvas.cut(outline * (side, 1))
                else:
                    canvas.fill(outline * (side, 1), paint, shade=part.shade)


def _paint(name: str, traits: Traits) -> Coat:
    if name in FIXED:
        return tint(FIXED[name])
    return tint(traits.colour()) if name.startswith("plain") else traits.paint()


def _stretched(points: Points, stretch: NDArray[np.float64], taper: float) -> Points:
    """Stretch each side of the plane by its factor; wider or narrower downwards."""
    changed: Points = points * np.where(points > 0, stretch[0], stretch[1])
    changed[:, 0] *= 1 + taper * changed[:, 1]
    return changed


# fmt: off
EMBLEM = Limb(
    "plain emblem", "none | oval 0,.3 .22,.22 | box -.3,.18 .3,.42"
    "| flat -.3,.3 0,0 .3,.3 0,.6",
    (0.6, 1.2), shade=0,
)
UPSTREAM: Mapping[str, Plan] = {
    "fish": (
        Limb("fins", "flat -.5,0 -.95,-.4 -.8,0 -.95,.4"
             "| flat -.5,0 -.9,-.3 -1,0 -.9,.3"),
        Limb("fins", "flat -.45,-.2 -.1,-.75 .4,-.1 | flat -.5,-.2 .2,-.6 .3,-.1"),
        Limb("fins", "flat -.3,.2 -.1,.6 .3,.1", at=(0, 0.2)),
        Limb("body", "round .9,0 .1,-.46 -.7,-.07 -.7,.07 0,.46", FIRM),
        Limb("plain gill", "oval .4,.03 .04,.2"),
        Limb("pale", "oval .65,-.08 .08,.08", (0.7, 1.3), rigid=True, shade=0),
        Limb("dark", "oval .66,-.08 .04,.04", (0.7, 1.3), rigid=True),
    ),
    "butterfly": (
        Limb("plain rim", "round 0,0 .55,.1 .5,.6 .22,.75", FIRM, mirror=True),
        Limb("hind", "round .04,.06 .47,.14 .43,.52 .2,.62", FIRM, mirror=True),
        Limb("plain rim", "round 0,.1 .25,-.55 .9,-.8 .75,0", FIRM, mirror=True),
        Limb("fore", "round .08,.04 .29,-.48 .81,-.7 .68,-.05", FIRM, mirror=True),
        Limb("plain spot", "oval .45,-.38 .13,.13", (0.4, 1.3), mirror=True),
        Limb("dark", "oval 0,.05 .07,.5"),
        Limb("dark", "line 0,-.3 .25,-.85 .035", mirror=True),
    ),
    "flower": (
        Limb("leaf", "line 0,-.2 .05,.98 .07", FIRM),
        Limb("leaf", "oval .36,.6 .36,.12 -.4", mirror=True),
        Limb("petals", "round .05,-.2 .36,-.4 .8,-.2 .36,0"
             "| round .05,-.2 .3,-.33 .8,-.2 .3,-.07",
             (0.85, 1.05), at=(0, -0.2), shade=0.35, around=(4, 9)),
        Limb("inner", "none"
             "| round .05,-.2 .2,-.3 .42,-.2 .2,-.1", at=(0, -0.2), around=(4, 9)),
        Limb("heart", "oval 0,-.2 .18,.18", (0.5, 1.3)),
    ),
    "mushroom": (
        Limb("stem", "round -.2,-.2 .2,-.2 .3,.9 -.3,.9"),
        Limb("plain ring", "none | oval 0,.2 .34,.06"),
        Limb("plain gills", "oval 0,-.05 .75,.18", FIRM, bright=0.6),
        Limb("cap", "round -.8,0 -.3,-.75 .3,-.75 .8,0 0,-.06"
             "| round -.8,0 -.1,-.9 .1,-.9 .8,0 0,-.06",
             FIRM, shade=0.4),
    ),
    "boat": (
        Limb("wood", "line 0,.6 0,-.97 .05", FIRM),
        Limb("sail", "flat -.04,-.95 -.04,.45 -.75,.45", at=(0, 0.4)),
        Limb("jib", "none | flat .04,-.8 .7,.45 .04,.35", at=(0, 0.4)),
        Limb("hull", "flat -.85,.55 .95,.47 .5,.95 -.5,.95"
             "| flat -.6,.55 .95,.47 .7,.95 -.6,.95", FIRM),
        *(Limb("dark", f"none | oval {x},.74 .05,.05") for x in (-0.4, 0, 0.4)),
    ),
    "lamp": (
        Limb("plain base", "oval 0,.88 .5,.09", bright=0.8),
        Limb("foot", "round -.1,0 .1,0 .3,.5 .3,.9 -.3,.9 -.3,.5"
             "| round -.1,0 .1,0 .1,.6 .4,.9 -.4,.9 -.1,.6",
             at=(0, 0.9)),
        Limb("shade", "flat -.4,-.95 .4,-.95 .8,.1 -.8,.1"
             "| round -.4,-.8 0,-.95 .4,-.8 .8,.1 -.8,.1",
             (0.85, 1.05), at=(0, 0.1)),
        Limb("dark", "line -.75,.1 .75,.1 .06", bright=3),
    ),
}
"""Objects of pretraining. They have parts and paints as those of later tasks have."""
BIRD: Plan = (
    Limb("tail", "flat -.3,0 -.9,.1 -.85,.35 -.25,.25", at=(-0.3, 0.1)),
    Limb("plain legs", "line -.05,.3 -.01,.85 .05", FIRM),
    Limb("plain legs", "line .12,.3 .16,.85 .05", FIRM),
    Limb("body", "oval 0,.12 .55,.36 -.25", FIRM, shade=0.35),
    Limb("plain breast", "oval .19,.2 .27,.25 -.4"),
    Limb("head", "round .2,-.25 .56,-.25 .4,.25 0,.1", FIRM),
    Limb("plain crest", "none | flat .15,-.3 .1,-.85 .5,-.5", at=(0.3, -0.3)),
    Limb("plain beak", "flat .54,-.4 .95,-.24 .54,-.18", at=(0.5, -0.3)),
    Limb("head", "oval .38,-.3 .24,.22", shade=0.35),
    Limb("dark", "oval .46,-.35 .06,.06", rigid=True),
    Limb("wing", "round .25,-.02 0,-.2 -.65,.28 -.1,.38", at=(0.2, 0)),
)
CAR: Plan = (
    Limb("roof", "flat -.75,0 -.5,-.5 0,-.5 .35,0"
         "| flat -.9,0 -.8,-.5 .05,-.5 .35,0", FIRM),
    Limb("glass", "flat -.57,-.02 -.45,-.42 -.3,-.42 -.27,-.02", FIRM),
    Limb("glass", "flat -.19,-.02 -.22,-.42 -.02,-.42 .23,-.02", FIRM),
    Limb("body", "flat -.93,.1 -.75,0 .35,0 .9,.12 .97,.4 -.97,.4", FIRM),
    Limb("plain sides", "box -.95,.3 .95,.46", (0.95, 1)),
    Limb("dark", "line -.02,0 -.02,.3 .03"),
    Limb("lamp", "oval .86,.2 .09,.07", (0.6, 1.4)),
    Limb("red", "oval -.9,.2 .05,.09"),
    *(Limb("dark", f"oval {x},.43 .23,.23", FIRM, rigid=True) for x in (-0.58, 0.62)),
    *(Limb("plain hub",
         f"oval {x},.43 .13,.13", FIRM, rigid=True) for x in (-0.58, 0.62)),
)
PRODUCTS: Mapping[str, Plan] = {
    "bottle": (
        Limb("body",
             "flat -.14,-.8 .14,-.8 .14,-.4 .4,-.15 .4,.95 -.4,.95 -.4,-.15 -.14,-.4"
             "| flat -.1,-.8 .1,-.8 .4,.2 .4,.95 -.4,.95 -.4,.2", FIRM, shade=0.4),
        Limb("plain cap", "box -.17,-.95 .17,-.75"),
        Limb("label", "box -.38,0 .38,.65", FIRM),
        EMBLEM,
    ),
    "box": (
        Limb("front", "box -.75,-.5 .45,.9", FIRM),
        Limb("side", "flat .45,.9 .7,.65 .7,-.75 .45,-.5", FIRM, bright=0.7),
        Limb("side", "flat -.75,-.5 .45,-.5 .7,-.75 -.5,-.75", FIRM),
        Limb("plain band", "none | box -.75,.6 .45,.8 | box -.75,-.4 .45,-.2", FIRM),
        EMBLEM,
    ),
    "mug": (
        Limb("plain grip", "oval .45,.1 .35,.42", FIRM),
        Limb("hole", "oval .45,.1 .2,.26", FIRM),
        Limb("body", "flat -.6,-.65 .4,-.65 .35,.75 -.55,.75"
             "| flat -.6,-.65 .4,-.65 .2,.75 -.4,.75",
             FIRM, shade=0.4),
        Limb("plain inside", "oval -.1,-.65 .5,.14", FIRM, bright=0.7),
        EMBLEM,
    ),
    "bag": (
        Limb("plain strap", "oval 0,-.15 .4,.8", FIRM),
        Limb("hole", "oval 0,-.15 .28,.66"),
        Limb("cloth", "flat -.5,-.1 .5,-.1 .75,.9 -.75,.9"
             "| flat -.8,-.1 .8,-.1 .75,.9 -.75,.9", (0.9, 1.1)),
        Limb("plain flap", "none | flat -.5,-.1 .5,-.1 .4,.25 -.4,.25"),
        EMBLEM,
    ),
    "chair": (
        Limb("plain wood", "line .5,.1 .65,.95 .1", mirror=True),
        Limb("plain wood", "line .4,-.8 .4,.1 .1", FIRM, mirror=True),
        Limb("seat", "flat -.45,-.8 .45,-.8 .55,0 -.55,0"
             "| round -.45,-.8 .45,-.8 .55,0 -.55,0", at=(0, 0)),
        Limb("plain cushion", "box -.6,.05 .6,.25", (0.9, 1.1)),
    ),
}
# fmt: on
