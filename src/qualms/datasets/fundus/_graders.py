"""Graders whose disagreement is known.

Every eye has a burden of disease, a real number, and its photograph a quality from 0 to
1. A grader reads the burden with normal noise, which is larger for a bad photograph,
and writes down the grade whose range contains the reading. So the probability of every
grade is known for every photograph. Two graders agree on about four photographs of
EyePACS in five, and least on mild disease, as real graders do.

In the population of EyePACS the burden is standard normal, and the ranges are chosen so
that grades occur in the published shares. Other splits have the same graders and other
populations: of all populations whose grades occur in the wanted shares, the one closest
to that of EyePACS (in Kullback-Leibler divergence).
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaincinv, ndtr

from qualms.datasets._retina.protocol import EYEPACS, GRADES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUALITY = (4.0, 1.5)
"""Parameters of the beta distribution of the quality."""
NOISE_GOOD, NOISE_BAD = 0.15, 0.85
"""Standard deviation of a reading at quality 1 and 0."""
ALIKE = 0.92
"""Correlation between the burdens of a patient's eyes on the normal scale."""
HEALTHY, WORST = 1.2, 1.0
"""Distances below the first and above the last cut in which severity still changes."""
BURDENS = np.linspace(-5.0, 6.0, 2_201)


class Readings(NamedTuple):
    """Burden, quality and grade of some photographs; all arrays (n,)."""

    burden: Floats
    quality: Floats
    grade: Ints
    """As read by one grader."""


def readings(
    rng: np.random.Generator,
    patients: int,
    shares: Sequence[int],
    quality: tuple[float, float] = QUALITY,
) -> Readings:
    """Draw one photograph of each eye of some patients, patient by patient.

    Args:
        rng: draws burdens, qualities and readings.
        patients: how many patients; there are twice as many photographs.
        shares: expected weights of the five grades among the readings.
        quality: parameters of the beta distribution of the quality.
    """
    shared = rng.standard_normal((patients, 1))
    individual = rng.standard_normal((patients, 2))
    rank = ndtr(np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * individual).ravel()
    burden = np.interp(rank, population(tuple(shares), quality), BURDENS)
    of_photograph = betaincinv(*quality, rng.random(2 * patients))
    read = burden + _noise(of_photograph) * rng.standard_normal(2 * patients)
    return Readings(burden, of_photograph, np.searchsorted(cuts(), read))


def grade_probs(burden: Floats, quality: Floats) -> Floats:
    """Compute the probability (n, 5) that a grader reads each grade."""
    below = ndtr((cuts() - burden[:, None]) / _noise(quality)[:, None])
    none, all_of_them = np.zeros((len(burden), 1)), np.ones((len(burden), 1))
    return np.diff(np.concatenate([none, below, all_of_them], axis=1), axis=1)


def severity(burden: Floats) -> Floats:
    """Map the burden to the scale of grades, 0 to 5; the integer part is the grade.

    It decides which lesions are drawn. It is constant for very low and very high
    burdens, so it tells slightly less than the burden.
    """
    places = [cuts()[0] - HEALTHY, *cuts(), cuts()[-1] + WORST]
    return np.interp(burden, places, np.arange(GRADES + 1))


@cache
def cuts() -> Floats:
    """Return the lowest burdens (4,) of the grades 1, 2, 3 and 4."""
    spread = np.sqrt(1.0 + _noise(_quantiles(QUALITY)) ** 2)
    read_below = ndtr(BURDENS[:, None] / spread).mean(axis=1)
    below = np.cumsum(EYEPACS["train"])[:-1] / sum(EYEPACS["train"])
    return np.interp(below, read_below, BURDENS)


@cache
def population(
    shares: tuple[int, ...], quality: tuple[float, float] = QUALITY
) -> Floats:
    """Compute the cumulative distribution of the burden at `BURDENS` for these shares.

    The closest population has EyePACS' density times exp(sum_g weight_g P(g | burden)).
    The weights minimise a convex function.
    """
    if len(shares) != GRADES or min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(f"shares must be five weights of at least 0, got {shares}")
    expected = np.array(shares) / sum(shares)
    read, normal = _read_by_burden(quality), np.exp(-0.5 * BURDENS**2)

    def excess(weights: Floats) -> tuple[float, Floats]:
        lean = (read - expected) @ weights
        density = normal * np.exp(lean - lean.max())
        mean = density @ read / density.sum()
        return float(np.log(density.sum()) + lean.max()), mean - expected

    with np.errstate(all="ignore"):  # divergence is found below
        solution = minimize(excess, np.zeros(GRADES), jac=True, method="BFGS", tol=1e-9)
    if not np.abs(solution.jac).max() < 1e-6:
        raise ValueError(
            f"no population has grades in the shares {shares}; give every grade a"
            " positive weight"
        )
    density = normal * np.exp(read @ solution.x)
    ranks: Floats = (np.cumsum(density) - 0.5 * density) / density.sum()
    return ranks


@cache
def _read_by_burden(quality: tuple[float, float]) -> Floats:
    """Compute the probability (burdens, 5) of each grade, averaged over qualities."""
    values = _quantiles(quality)
    rows = [grade_probs(np.full(len(values), b), values).mean(0) for b in BURDENS]
    return np.stack(rows)


@cache
def _quantiles(quality: tuple[float, float]) -> Floats:
    """Return quantiles (64,) of the quality."""
    return np.asarray(betaincinv(*quality, (np.arange(64) + 0.5) / 64))


def _noise(quality: Floats) -> Floats:
    return NOISE_BAD + (NOISE_GOOD - NOISE_BAD) * quality
