"""The spread of other seeds, estimated from those that were run.

Seeds of a row are its repeats; repeats that pool several runs may share some of them,
and of a single pool the runs are left out one at a time. A spread from few runs is
itself uncertain, so every replicate of the null hypothesis redraws it.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.inference._design import Spread
from qualms.inference._shares import student_quantile

FEWEST_FREEDOM = 2.0
"""Fewest degrees of freedom of a useful spread: three seeds. With two, intervals of one
row cover 88 %."""
ONE_RUN = Spread(0.0, math.inf, 1)
"""The spread of a single run, which shows nothing about others."""
SEED_STREAM = 2_011
"""Number of the random stream of seeds; items have another stream."""
Pools = Sequence[Collection[Hashable]]
"""The runs of each repeat."""


def seed_spread(values: ArrayLike, pools: Pools = ()) -> Spread:
    """Return the spread of the mean of `values` (R,), one per seed or pool of runs.

    To first order the score of a pool is a mean over its runs, so that errors of pools
    with shared runs are correlated: their mean varies more than that of separate pools.

    >>> seed_spread([1.0, 2.0, 3.0], [(0,), (1,), (2,)]).freedom
    2.0
    >>> round(seed_spread([1.0, 2.0, 3.0], [(0, 1), (1, 2), (2, 0)]).variance, 4)
    1.3333
    """
    array = np.asarray(values, dtype=np.float64)
    count = len(array)
    if count < 2:
        return Spread(0.0, math.inf, count)
    if len({run for pool in pools for run in pool}) == sum(map(len, pools)):
        return Spread(float(array.var(ddof=1)) / count, count - 1.0, count)
    shared = _shared(pools)
    mean = shared.mean(axis=0)
    centred = shared - mean - mean[:, None] + mean.mean()
    trace = float(centred.trace())
    square = float(np.square(array - array.mean()).sum())
    freedom = trace**2 / float(np.square(centred).sum())
    return Spread(square * float(mean.mean()) / trace, freedom, count)


def _shared(pools: Pools) -> Array:
    """Return the covariance (R, R) of pools of runs whose variance is 1."""
    runs = list(dict.fromkeys(run for pool in pools for run in pool))
    weight = np.array([[run in pool for run in runs] for pool in pools], np.float64)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(weight @ weight.T)


def left_out_spread(values: Iterable[ArrayLike]) -> Spread:
    """Return the spread of the mean of pools, by the jackknife over their runs.

    `values` are the scores of each pool without each of its runs in turn; pools share
    no runs.

    >>> left_out_spread([[1.0, 2.0, 3.0]])
    Spread(variance=1.3333333333333333, freedom=2.0, units=3)
    """
    arrays = [np.asarray(pool, dtype=np.float64) for pool in values]
    parts = [
        Spread(float(pool.var()) * (len(pool) - 1), len(pool) - 1.0, len(pool))
        for pool in arrays
    ]
    units = sum(part.units for part in parts)
    variance = sum(part.variance for part in parts)
    if variance <= 0.0:
        return Spread(0.0, sum(part.freedom for part in parts), units)
    left = sum(part.variance**2 / part.freedom for part in parts)
    return Spread(variance / len(parts) ** 2, variance**2 / left, units)


def few_seeds(spread: Spread) -> bool:
    """Return whether there are several runs, but too few to estimate their spread."""
    return not math.isinf(spread.freedom) and spread.freedom < FEWEST_FREEDOM


def reach(level: float, parts: Iterable[Spread]) -> float:
    """Return the reach of a sum of independent errors, each with its own quantile.

    Reaches are added by squares. Satterthwaite's single quantile for the sum covers
    only 90 % where three seeds are skewed.
    """
    reaches = [
        student_quantile(level, part.freedom) * math.sqrt(part.variance)
        for part in parts
        if part.variance > 0.0
    ]
    # A single part keeps all its digits.
    return reaches[0] if len(reaches) == 1 else math.hypot(*reaches)


class SeedNoise(NamedTuple):
    """Simulated contributions of other seeds to the value of a row."""

    noise: Array
    """(B,) around 0."""
    variance: Array
    """(B,) variance that as many seeds would show in each replicate."""
    observed: float
    """The variance that the seeds showed."""


def seed_noise(
    spread: Spread, replicates: int, rng: np.random.Generator
) -> SeedNoise | None:
    """Simulate seeds of this spread in replicates; None if their spread is 0.

    The logarithm of the true variance is drawn half-way between the observed variance
    and the range of variances that this leaves possible: the former excludes too many
    of twelve equal rows of three seeds, the latter hardly ever excludes any row.
    """
    if spread.variance <= 0.0:
        return None
    freedom = spread.freedom
    open_to = rng.chisquare(freedom, replicates) / freedom
    true = spread.variance / np.sqrt(open_to)
    observed_variance = true * rng.chisquare(freedom, replicates) / freedom
    noise = np.sqrt(true) * rng.standard_normal(replicates)
    return SeedNoise(noise, observed_variance, spread.variance)


def shared_seed_noise(
    values: ArrayLike, replicates: int, rng: np.random.Generator
) -> list[SeedNoise]:
    """Simulate other seeds of rows (K, R) that share the same R runs.

    A run that is better on one row may be better on all: the noise of rows has the
    correlation of their deviations. The noise of a single row is as in `seed_noise`.
    """
    array = np.asarray(values, dtype=np.float64)
    runs = array.shape[1]
    if runs < 2:
        raise ValueError(f"seeds must be at least 2 to show their noise, got {runs}")
    freedom = runs - 1
    deviations = (array - array.mean(axis=1, keepdims=True)) / math.sqrt(runs * freedom)
    wider = 1.0 / np.sqrt(rng.chisquare(freedom, replicates) / freedom)
    ratio = wider * rng.chisquare(freedom, replicates) / freedom
    noise = np.sqrt(wider) * (deviations @ rng.standard_normal((runs, replicates)))
    observed = np.square(deviations).sum(axis=1)
    return [
        SeedNoise(each, variance * ratio, float(variance))
        for each, variance in zip(noise, observed, strict=True)
    ]
