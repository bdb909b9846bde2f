"""Procedural chairs built of axis-aligned boxes, each from its own seed.

Lengths are in metres: x points to the right of a sitting person, y to the back, z up
from the floor. Boxes touch but never overlap, so no two faces compete for a pixel.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PALETTE = np.array(
    [
        [0.55, 0.35, 0.20],
        [0.80, 0.62, 0.40],
        [0.30, 0.19, 0.12],
        [0.22, 0.24, 0.27],
        [0.62, 0.64, 0.66],
        [0.72, 0.18, 0.16],
        [0.16, 0.36, 0.62],
        [0.20, 0.48, 0.30],
        [0.86, 0.68, 0.20],
    ]
)


LEGS = (
    # Four legs; a sled of two runners with two posts each; a column on a cross.
    "-x -y 0 -xi -yi under|-x yi 0 -xi y under|xi -y 0 x -yi under|xi yi 0 x y under",
    "-x -y 0 -xi y bar|-x -y bar -xi -yi under|-x yi bar -xi y under"
    "|xi -y 0 x y bar|xi -y bar x -yi under|xi yi bar x y under",
    "-x -half 0 x half bar|-half -y 0 half -half bar|-half half 0 half y bar"
    "|-bar -bar bar bar bar under",
)
POSTS = "-x yi seat -xi y top|xi yi seat x y top"
BACKS = (
    # A panel; slats under a rail; rails; a panel that leaves the lower part open.
    "-x yi seat x y top",
    f"{POSTS}|-xi yi rail xi y top",
    POSTS,
    f"{POSTS}|-xi yi open xi y top",
)
ARMS = (
    "-x -y seat -xi -yi arm|-x -y arm -xi yi rest"
    "|xi -y seat x -yi arm|xi -y arm x yi rest"
)
"""Boxes as names of places: lowest x, y, z, then highest x, y, z; see `_places`."""
SLATS, RAILS, OPEN = 1, 2, 3


class Chair(NamedTuple):
    """Boxes of a chair: corners (n, 3) and colours (n, 3) in 0..1."""

    low: Floats
    high: Floats
    colour: Floats


def chair(number: int, *, seed: int) -> Chair:
    """Build chair `number` of the collection `seed`, centred at half its height."""
    rng = np.random.default_rng([seed, number + 1])
    at = _places(rng)
    legs, back = LEGS[rng.integers(3)], int(rng.integers(4))
    more = _slats_or_rails(rng, back, at)
    if back == OPEN:
        at["open"] = at["seat"] + rng.uniform(0.35, 0.6) * (at["top"] - at["seat"])
    names = ["-x -y under x y seat", *legs.split("|"), *BACKS[back].split("|")]
    names += ARMS.split("|") if rng.random() < 0.4 else []
    wood, cloth = PALETTE[rng.integers(0, len(PALETTE), 2)]
    boxes = np.array([[at[name] for name in box.split()] for box in names] + more)
    centre = np.array([0.0, 0.0, at["top"] / 2])
    colour = np.tile(wood, (len(boxes), 1))
    colour[0] = cloth
    return Chair(boxes[:, :3] - centre, boxes[:, 3:] - centre, colour)


def _places(rng: np.random.Generator) -> dict[str, float]:
    """Draw where the edges of boxes are: on either side of the middle, or upwards."""
    width, depth = rng.uniform(0.38, 0.55), rng.uniform(0.38, 0.52)
    seat = rng.uniform(0.40, 0.50)
    under = seat - rng.uniform(0.03, 0.09)
    top, bar = seat + rng.uniform(0.35, 0.62), 2 * rng.uniform(0.015, 0.03)
    inner = {"xi": width / 2 - bar, "yi": depth / 2 - bar}
    sides = {"x": width / 2, "y": depth / 2, "bar": bar, "half": bar / 2} | inner
    heights = {"under": under, "seat": seat, "top": top, "rail": top - 1.5 * bar}
    arms = {"arm": seat + 0.2, "rest": seat + 0.2 + bar}
    mirrored = {f"-{name}": -place for name, place in sides.items()}
    return {"0": 0.0, **sides, **mirrored, **heights, **arms}


def _slats_or_rails(
    rng: np.random.Generator, back: int, at: dict[str, float]
) -> list[list[float]]:
    """Build one to four slats or one to three rails, if the back has them."""
    if back not in (SLATS, RAILS):
        return []
    inner, bar, seat, top = (at[name] for name in ("xi", "bar", "seat", "top"))
    count = int(rng.integers(1, 5 if back == SLATS else 4))
    if back == SLATS:
        width = min(1.5 * bar, 1.2 * inner / count)
        middles = (np.arange(count) + 1) / (count + 1) * 2 * inner - inner
        spans = [(m - width / 2, seat, m + width / 2, at["rail"]) for m in middles]
    else:
        bottoms = top - 2 * bar - np.arange(count) * (top - seat) / count
        spans = [(-inner, bottom, inner, bottom + 2 * bar) for bottom in bottoms]
    return [[x, at["yi"], low, to_x, at["y"], high] for x, low, to_x, high in spans]
