"""How far other seeds may lie from those that were run.

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
"""Degrees of freedom of a spread that says something: three seeds. With two, intervals
of one row cover 88 %."""
ONE_RUN = Spread(0.0, math.inf, 1)
"""Of a single run, which says nothing about others."""
SEED_STREAM = 2_011
"""Keeps draws of seeds apart from those of items."""
Pools = Sequence[Collection[Hashable]]
"""The runs of each repeat."""


def seed_spread(values: ArrayLike, pools: Pools = ()) -> Spread:
    """Return the spread of the mean of `values` (R,), one per seed or pool of runs.

    To first order the score of a pool is a mean over its runs, so that pools that share
    runs err together: their mean is known worse than that of as many other pools.

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

    `values` are those of each pool without each of its runs in turn; pools share none.

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
    """Return whether there are several runs, but too few to say how far others lie."""
    return not math.isinf(spread.freedom) and spread.freedom < FEWEST_FREEDOM


def reach(level: float, parts: Iterable[Spread]) -> float:
    """Return how far a sum of independent errors may lie, each by its own quantile.

    Added by squares. Satterthwaite's one quantile for all covers 90 % where three seeds
    are skewed.
    """
    reaches = [
        student_quantile(level, part.freedom) * math.sqrt(part.variance)
        for part in parts
        if part.variance > 0.0
    ]
    # A single part keeps all its digits.
    return reaches[0] if len(reaches) == 1 else math.hypot(*reaches)


class SeedNoise(NamedTuple):
    """What other seeds would have added to the value of a row, in replicates."""

    noise: Array
    """(B,) around 0."""
    variance: Array
    """(B,) that as many seeds would have been seen to have in each replicate."""
    observed: float
    """The variance that they were seen to have."""


def seed_noise(
    spread: Spread, replicates: int, rng: np.random.Generator
) -> SeedNoise | None:
    """Return what seeds of this spread add to replicates; None where they add nothing.

    The true variance is drawn half-way, in its logarithm, from the observed one to what
    this leaves open: the former excludes too many of twelve equal rows of three seeds,
    the latter hardly ever excludes any row.
    """
    if spread.variance <= 0.0:
        return None
    freedom = spread.freedom
    open_to = rng.chisquare(freedom, replicates) / freedom
    true = spread.variance / np.sqrt(open_to)
    seen = true * rng.chisquare(freedom, replicates) / freedom
    return SeedNoise(
        np.sqrt(true) * rng.standard_normal(replicates), seen, spread.variance
    )


def shared_seed_noise(
    values: ArrayLike, replicates: int, rng: np.random.Generator
) -> list[SeedNoise]:
    """Return what other seeds add to rows (K, R) that the same R runs made.

    A run that is better by one row may be better by all: such noise goes together, as
    the deviations of the runs do. That of a row alone is as in `seed_noise`.
    """
    array = np.asarray(values, dtype=np.float64)
    runs = array.shape[1]
    if runs < 2:
        raise ValueError(f"seeds must be at least 2 to show their noise, got {runs}")
    freedom = runs - 1
    deviations = (array - array.mean(axis=1, keepdims=True)) / math.sqrt(runs * freedom)
    wider = 1.0 / np.sqrt(rng.chisquare(freedom, replicates) / freedom)
    seen = wider * rng.chisquare(freedom, replicates) / freedom
    noise = np.sqrt(wider) * (deviations @ rng.standard_normal((runs, replicates)))
    observed = np.square(deviations).sum(axis=1)
    return [
        SeedNoise(each, variance * seen, float(variance))
        for each, variance in zip(noise, observed, strict=True)
    ]
