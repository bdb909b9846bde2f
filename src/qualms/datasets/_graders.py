"""Graders whose disagreement is known: a burden of disease, and readings of it.

Every eye has a burden, a real number, and its photograph a quality in 0..1. A grader
reads the burden with normal noise, wider for a bad photograph, and writes down the
grade whose range the reading lies in. So the probability of every grade is known for
every photograph. Two graders agree on about four photographs in five, and least on mild
disease, as people do.

Among the people of EyePACS the burden is standard normal, and the ranges are such that
grades occur in the published shares. Elsewhere the same graders read other people: of
all populations in which grades occur in the wanted shares, the one closest to EyePACS'
(in Kullback-Leibler divergence).
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaincinv, ndtr

from qualms.datasets._retina_protocol import EYEPACS, GRADES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUALITY = (4.0, 1.5)
"""Beta distribution of the quality."""
NOISE_GOOD, NOISE_BAD = 0.15, 0.85
"""Standard deviation of a reading at quality 1 and 0."""
ALIKE = 0.92
"""Correlation between the burdens of a patient's eyes, where they are normal."""
HEALTHY, WORST = 1.2, 1.0
"""How far below the first and above the last cut the severity still changes."""
BURDENS = np.linspace(-5.0, 6.0, 2_201)


class Readings(NamedTuple):
    """What is known of some photographs; all arrays (n,)."""

    burden: Floats
    quality: Floats
    grade: Ints
    """What one grader wrote down."""


def readings(
    rng: np.random.Generator, patients: int, shares: Sequence[int]
) -> Readings:
    """Both eyes of so many patients, one after the other: 2 `patients` photographs.

    Args:
        rng: draws eyes, photographs and readings.
        patients: how many.
        shares: weights of the five grades among the readings, on average.
    """
    shared = rng.standard_normal((patients, 1))
    own = rng.standard_normal((patients, 2))
    rank = ndtr(np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * own).ravel()
    burden = np.interp(rank, population(tuple(shares)), BURDENS)
    quality = betaincinv(*QUALITY, rng.random(2 * patients))
    read = burden + _noise(quality) * rng.standard_normal(2 * patients)
    return Readings(burden, quality, np.searchsorted(cuts(), read))


def grade_probs(burden: Floats, quality: Floats) -> Floats:
    """(n, 5) probability that a grader writes down each grade."""
    below = ndtr((cuts() - burden[:, None]) / _noise(quality)[:, None])
    none, all_of_them = np.zeros((len(burden), 1)), np.ones((len(burden), 1))
    return np.diff(np.concatenate([none, below, all_of_them], axis=1), axis=1)


def severity(burden: Floats) -> Floats:
    """The burden on the scale of the grades, 0 to 5: its whole part is the true grade.

    What is to be seen in the eye follows from this alone.
    """
    places = [cuts()[0] - HEALTHY, *cuts(), cuts()[-1] + WORST]
    return np.interp(burden, places, np.arange(GRADES + 1))


@cache
def cuts() -> Floats:
    """(4,) burdens, ascending, from which on an eye has grade 1, 2, 3 and 4."""
    spread = np.sqrt(1.0 + _noise(_qualities()) ** 2)
    read_below = ndtr(BURDENS[:, None] / spread).mean(axis=1)
    below = np.cumsum(EYEPACS["train"])[:-1] / sum(EYEPACS["train"])
    return np.interp(below, read_below, BURDENS)


@cache
def population(shares: tuple[int, ...]) -> Floats:
    """Share of people whose burden is at most `BURDENS`, where grades have `shares`.

    The closest population has EyePACS' density times exp(sum_g weight_g P(g | burden));
    the weights are those where a convex function is smallest.
    """
    if len(shares) != GRADES or min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(f"shares must be five weights of at least 0, got {shares}")
    wanted = np.array(shares) / sum(shares)
    read, normal = _read_by_burden(), np.exp(-0.5 * BURDENS**2)

    def excess(weights: Floats) -> tuple[float, Floats]:
        lean = (read - wanted) @ weights
        density = normal * np.exp(lean - lean.max())
        mean = density @ read / density.sum()
        return float(np.log(density.sum()) + lean.max()), mean - wanted

    with np.errstate(all="ignore"):  # weights that run away are refused below
        found = minimize(excess, np.zeros(GRADES), jac=True, method="BFGS", tol=1e-9)
    if not np.abs(found.jac).max() < 1e-6:
        raise ValueError(
            f"no people have readings in the shares {shares}; give every grade some"
        )
    density = normal * np.exp(read @ found.x)
    ranks: Floats = (np.cumsum(density) - 0.5 * density) / density.sum()
    return ranks


@cache
def _read_by_burden() -> Floats:
    """(burdens, 5) probability of each grade, over photographs of all qualities."""
    quality = _qualities()
    rows = [grade_probs(np.full(len(quality), b), quality).mean(0) for b in BURDENS]
    return np.stack(rows)


@cache
def _qualities() -> Floats:
    """Qualities in equal steps of probability."""
    return np.asarray(betaincinv(*QUALITY, (np.arange(64) + 0.5) / 64))


def _noise(quality: Floats) -> Floats:
    return NOISE_BAD + (NOISE_GOOD - NOISE_BAD) * quality
