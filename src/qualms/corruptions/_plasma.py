"""Clouds made by the diamond-square algorithm (Fournier et al., 1982)."""

import numpy as np
from numpy.typing import NDArray

STRONG = 100.0


def plasma(
    space: tuple[int, ...], decay: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return clouds (H, W) between 0 and 1; a larger `decay` makes them smoother.

    The sides are those of the next power of two, of which a corner is cut out.
    """
    side = 1 << max(1, (max(space) - 1).bit_length())
    clouds = np.zeros((side, side))
    step, strength = side, STRONG
    while step >= 2:
        _fill_squares(clouds, step, strength, rng)
        _fill_diamonds(clouds, step, strength, rng)
        step //= 2
        strength /= decay
    clouds -= clouds.min()
    clouds /= clouds.max() or 1.0
    return clouds[: space[0], : space[1]]


def _disturbed(
    sums: NDArray[np.float64], strength: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean of four neighbours, and a random number."""
    return sums / 4 + strength * rng.uniform(-strength, strength, sums.shape)


def _fill_squares(
    clouds: NDArray[np.float64], step: int, strength: float, rng: np.random.Generator
) -> None:
    half = step // 2
    corners = clouds[::step, ::step]
    sums = corners + np.roll(corners, -1, axis=0)
    sums = sums + np.roll(sums, -1, axis=1)
    clouds[half::step, half::step] = _disturbed(sums, strength, rng)


def _fill_diamonds(
    clouds: NDArray[np.float64], step: int, strength: float, rng: np.random.Generator
) -> None:
    half = step // 2
    centres, corners = clouds[half::step, half::step], clouds[::step, ::step]
    above = centres + np.roll(centres, 1, axis=0)
    beside = corners + np.roll(corners, -1, axis=1)
    clouds[::step, half::step] = _disturbed(above + beside, strength, rng)
    before = centres + np.roll(centres, 1, axis=1)
    below = corners + np.roll(corners, -1, axis=0)
    clouds[half::step, ::step] = _disturbed(before + below, strength, rng)
