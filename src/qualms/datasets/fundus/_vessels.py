"""Retinal vessels: arcades of arteries and veins that leave the optic disc.

A vessel is a walk whose heading relaxes from a start towards a goal, with a little
noise. This bends the temporal arcades around the macula. Vessels taper, and branch so
that the sum of the cubed widths is kept (Murray, 1926). None enters the avascular zone
of the fovea. Coordinates are those of `_brush.py`.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.fundus._brush import ARTERY, STROKE, VEIN
from qualms.jit import jit

Floats = NDArray[np.float64]
Rng = np.random.Generator

STEP = 0.028
MOST = 6_000
"""The largest number of strokes of one eye."""
AVASCULAR = 0.10
BEYOND = 1.75
THIN = 0.0055
VEIN_WIDTH = 0.027
ARTERY_WIDTH = 0.019
SPACING = 0.27
BEAD = 0.075
"""Distance between the beads of a beaded vein."""

SEED = 11
X, Y, HEADING, GOAL, RELAX, WIDTH, LENGTH, LAYER, WANDER, BEADING, STRIDE = range(SEED)
"""Columns of a table of vessels to grow."""


def arcades(rng: Rng, disc: tuple[float, float], beading: float) -> Floats:
    """Draw strokes (n, 8) of the vessels of an eye.

    Args:
        rng: draws the courses.
        disc: centre of the optic disc.
        beading: of the veins, from 0 to 1.
    """
    trunks = np.array(
        [*_trunks(rng, disc, VEIN, beading), *_trunks(rng, disc, ARTERY, 0.0)]
    )
    return _grow_all(rng, np.concatenate([_twigs(rng, disc), trunks]))


def tangle(rng: Rng, centre: Floats, reach: float, strands: int) -> Floats:
    """Draw strokes (n, 8) of a knot of new vessels: fine and tortuous.

    Args:
        rng: draws the courses.
        centre: (2,) where they grow from.
        reach: how far a strand can wander.
        strands: how many there are.
    """
    heading = rng.uniform(0, 2 * np.pi) + np.arange(strands) * 2.4
    length = rng.uniform(0.8, 2.2, strands) * reach
    seeds = np.zeros((strands, SEED))
    seeds[:, (X, Y)] = centre + rng.normal(0, 0.15 * reach, (strands, 2))
    seeds[:, HEADING] = heading
    seeds[:, GOAL] = heading + rng.choice([-1, 1], strands) * rng.uniform(2, 5, strands)
    seeds[:, RELAX] = rng.uniform(0.5, 1.2, strands) * reach
    seeds[:, WIDTH] = rng.uniform(0.006, 0.0085, strands)
    seeds[:, LENGTH] = length
    seeds[:, LAYER] = rng.choice([VEIN, ARTERY], strands)
    seeds[:, WANDER] = 0.22
    seeds[:, STRIDE] = 0.16 * reach
    return _grow_all(rng, seeds)


def _trunks(
    rng: Rng, disc: tuple[float, float], layer: int, beading: float
) -> list[list[float]]:
    """Draw the trunks of arteries or veins: upper and lower, temporal and nasal."""
    usual = VEIN_WIDTH if layer == VEIN else ARTERY_WIDTH
    wander = 0.020 if layer == VEIN else 0.014
    trunks = []
    for up in (-1.0, 1.0):
        for temporal in (True, False):
            turn = rng.normal(0.0, 0.12) + (0.10 if layer == VEIN else -0.12)
            if temporal:
                start, goal = 1.72 + turn, 3.05 + rng.normal(0.12, 0.10)
                relax, width, length = rng.uniform(0.34, 0.52), usual, 2.2
            else:
                start, goal = 1.25 - turn, rng.uniform(0.35, 0.8)
                relax, width, length = rng.uniform(0.3, 0.6), 0.72 * usual, 1.3
            width *= rng.uniform(0.88, 1.12)
            x, y = disc[0] + rng.normal(0.015, 0.008), disc[1] + 0.01 * up
            course = [up * start, up * goal, relax, width, length]
            trunks.append([x, y, *course, layer, wander, beading, STEP])
    return trunks


def _twigs(rng: Rng, disc: tuple[float, float]) -> Floats:
    """Draw small vessels that leave the disc directly, most of them to the macula."""
    count = int(rng.integers(5, 9))
    up = np.where(rng.random(count) < 0.5, -1.0, 1.0)
    start = np.where(rng.random(count) < 0.7, rng.uniform(2.0, 2.9, count), 0.4)
    seeds = np.zeros((count, SEED))
    seeds[:, X], seeds[:, Y] = disc[0], disc[1] + 0.02 * up
    seeds[:, HEADING] = up * start
    seeds[:, GOAL] = up * (start + rng.uniform(-0.2, 0.35, count))
    seeds[:, RELAX] = 0.4
    seeds[:, WIDTH] = rng.uniform(0.006, 0.010, count)
    seeds[:, LENGTH] = rng.uniform(0.4, 0.8, count)
    seeds[:, LAYER] = np.where(rng.random(count) < 0.5, VEIN, ARTERY)
    seeds[:, WANDER] = 0.03
    seeds[:, STRIDE] = STEP
    return seeds


def _grow_all(rng: Rng, seeds: Floats) -> Floats:
    stack = np.empty((MOST, SEED))
    stack[: len(seeds)] = seeds
    strokes = np.empty((MOST, STROKE))
    return strokes[: _grow(rng, stack, len(seeds), strokes)]


@jit
def _grow(rng: Rng, stack: Floats, top: int, strokes: Floats) -> int:
    """Grow every vessel of `stack` and its branches; return the number of strokes."""
    count = 0
    while top > 0 and count < MOST - 1:
        top -= 1
        vessel = stack[top].copy()
        layer, bead, step = vessel[LAYER], vessel[BEADING], vessel[STRIDE]
        walked, drift, wide = 0.0, 0.0, vessel[WIDTH]
        branch = SPACING * (0.4 + rng.random())
        while walked < vessel[LENGTH] and count < MOST:
            drift = 0.75 * drift + vessel[WANDER] * rng.normal(0.0, 1.0)
            relax = min(1.0, step / vessel[RELAX])
            vessel[HEADING] += (vessel[GOAL] - vessel[HEADING]) * relax + drift
            x = vessel[X] + step * np.cos(vessel[HEADING])
            y = vessel[Y] + step * np.sin(vessel[HEADING])
            if _outside(x, y):
                break
            walked += step
            vessel[WIDTH] *= 1.0 - 0.45 * step / vessel[LENGTH]
            swell = 0.55 * bead * np.sin(2 * np.pi * walked / BEAD)
            beaded = vessel[WIDTH] * (1.0 + swell)
            strokes[count] = (vessel[X], vessel[Y], x, y, wide, beaded, 1.0, layer)
            count += 1
            vessel[X], vessel[Y], wide = x, y, beaded
            if walked > branch and vessel[WIDTH] > THIN and top < MOST - 1:
                branch = walked + SPACING * (0.4 + rng.random())
                _branch(rng, vessel, stack[top])
                top += 1
    return count


@jit
def _branch(rng: Rng, vessel: Floats, child: Floats) -> None:
    """Split `vessel` in two: the wider part continues, `child` branches off."""
    side = 1.0 if rng.random() < 0.5 else -1.0
    share = 0.45 + 0.34 * rng.random()
    child[:] = vessel
    child[HEADING] = vessel[HEADING] + side * (0.55 + 0.5 * rng.random())
    child[GOAL] = vessel[HEADING] + side * (0.15 + 0.6 * rng.random())
    child[RELAX] = 0.35
    child[WIDTH] = share * vessel[WIDTH]
    fed = 0.12 + 34.0 * child[WIDTH] * (0.4 + rng.random())
    child[LENGTH] = min(0.7 * vessel[LENGTH], fed)
    child[WANDER] = 0.045
    child[BEADING] = 0.6 * vessel[BEADING]
    vessel[WIDTH] *= (1.0 - share**3) ** (1.0 / 3.0)


@jit
def _outside(x: float, y: float) -> bool:
    square = x * x + y * y
    return square < AVASCULAR**2 or square > BEYOND**2
