"""The spread of other seeds, estimated from those that were run.

Seeds of a row are its repeats; repeats that pool several runs may share some of them,
and of a single pool the runs are left out one at a time. A spread from few runs is
itself uncertain: rows of a table lend each other some certainty (`shared_spreads`), and
every replicate of the null hypothesis redraws it (`draw_seeds`).
"""

from __future__ import annotations

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
FAR = 6.0
"""Robust deviations from the median beyond which a seed lies far from the others."""
NORMAL_MAD = 1.4826
"""Standard deviations of a normal distribution in median absolute deviations."""
UNCERTAIN = {3: 3.0, 4: 2.0, 5: 1.5}
"""Factor on the median absolute deviation of so few seeds: two of three normal ones
often lie close together by chance."""
LENT = 2.0
"""Degrees of freedom that rows of a table lend each other. With more, methods whose
seeds vary unlike the others' are excluded too often."""
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


def far_seeds(values: ArrayLike, item_error: float) -> int:
    """Return how many seeds lie far from the others, such as runs that collapsed.

    Far is more than `FAR` robust deviations from the median: of the median absolute
    deviation, which few seeds make uncertain, or of `item_error`, the standard error of
    a single run by its items, where seeds differ by less.

    >>> far_seeds([0.80, 0.81, 0.82, 0.81, 0.31], 0.01)
    1
    """
    array = np.asarray(values, dtype=np.float64)
    away = np.abs(array - np.median(array))
    deviation = NORMAL_MAD * UNCERTAIN.get(len(array), 1.0) * float(np.median(away))
    return int((away > FAR * max(deviation, item_error)).sum())


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


def shared_spreads(spreads: Sequence[Spread]) -> list[Spread]:
    """Return the spreads of rows, each drawn towards that of all rows of its design.

    Two or three seeds say little about their spread; those of the other methods say
    more. Three rows or more of as many seeds lend each other `LENT` degrees of freedom.

    >>> rows = [Spread(variance, 2.0, 3) for variance in (1.0, 2.0, 6.0)]
    >>> [row.variance for row in shared_spreads(rows)]
    [2.0, 2.5, 4.5]
    """
    shrunk = list(spreads)
    for (freedom, units), places in _alike(spreads).items():
        observed = np.array([spreads[place].variance for place in places])
        for place, variance in zip(places, lent(observed, freedom), strict=True):
            shrunk[place] = Spread(float(variance), freedom + LENT, units)
    return shrunk


def _alike(spreads: Sequence[Spread]) -> dict[tuple[float, int], list[int]]:
    """Return the places of three rows or more of as many seeds."""
    alike: dict[tuple[float, int], list[int]] = {}
    for place, spread in enumerate(spreads):
        if math.isfinite(spread.freedom):
            alike.setdefault((spread.freedom, spread.units), []).append(place)
    return {design: places for design, places in alike.items() if len(places) > 2}


def lent(observed: Array, freedom: float) -> Array:
    """Return variances (..., K) of rows of one design, drawn towards their mean."""
    mean = observed.mean(axis=-1, keepdims=True)
    drawn: Array = (freedom * observed + LENT * mean) / (freedom + LENT)
    return drawn


class RowSeeds(NamedTuple):
    """How the value of a row varies with its seeds."""

    spread: Spread = ONE_RUN
    made_by: str = ""
    """A word that rows of the same runs share; '' for one with runs of its own."""
    by_run: Sequence[float] = ()
    """Its value by each of the shared runs."""
    counted: float = 0.0
    """Variance of the mean over seeds that the items show already."""


def net_of(spread: Spread, counted: float) -> Spread:
    """Return what seeds add to a variance over items that has `counted` already.

    Seeds that disagree about single items differ in their values, too, and the mean
    over seeds varies over items: one source of variance that both show.

    >>> net_of(Spread(4.0, 2.0, 3), 2.0)
    Spread(variance=2.0, freedom=0.5, units=3)
    """
    if counted <= 0.0:
        return spread
    variance = spread.variance - counted
    if variance <= 0.0:
        return Spread(0.0, math.inf, spread.units)
    # The variance of what is left is that of the whole.
    freedom = spread.freedom * (variance / spread.variance) ** 2
    return Spread(variance, freedom, spread.units)


class SeedDraws(NamedTuple):
    """Simulated contributions of other seeds to the values of all rows."""

    noise: Array
    """(B, K) around 0."""
    variance: Array
    """(B, K) variance that as many seeds would show to add in each replicate."""
    left: Array
    """(B, K) square of the variance that they would show, over its freedom."""
    spreads: Sequence[Spread]
    """What the seeds of each row add, with what rows lend each other."""


def draw_seeds(
    rows: Sequence[RowSeeds], replicates: int, rng: np.random.Generator
) -> SeedDraws | None:
    """Simulate other seeds of rows in replicates; None if no row has a spread.

    A replicate draws the values of as many seeds and the variance that these show,
    which `shared_spreads` treats as it treated the observed one. Rows of the same runs
    share the draws, with the correlation of their deviations, as a run may be better on
    all of them.
    """
    observed = [row.spread for row in rows]
    known = shared_spreads(observed)
    counted = np.array([row.counted for row in rows])
    added = [
        net_of(spread, row.counted) for spread, row in zip(known, rows, strict=True)
    ]
    if all(spread.variance <= 0.0 for spread in known):
        return None
    noise, variance = np.zeros((2, replicates, len(rows)))
    drawn: dict[object, tuple[Array, Array]] = {}
    for place, (row, spread) in enumerate(zip(rows, known, strict=True)):
        if spread.variance <= 0.0:
            continue
        runs, freedom = row.made_by or place, row.spread.freedom
        if runs not in drawn:
            each = rng.standard_normal((max(1, len(row.by_run)), replicates))
            drawn[runs] = each, rng.chisquare(freedom, replicates) / freedom
        of_runs, ratio = drawn[runs]
        away = np.asarray(row.by_run, dtype=np.float64)
        away = away - away.mean() if row.made_by else np.ones(1)
        length = math.sqrt(float(np.square(away).sum()))
        unit = away @ of_runs / length if length else rng.standard_normal(replicates)
        noise[:, place] = math.sqrt(added[place].variance) * unit
        variance[:, place] = max(spread.variance, row.counted) * ratio
    for (freedom, _), places in _alike(observed).items():
        variance[:, places] = lent(variance[:, places], freedom)
    freedoms = np.array([spread.freedom for spread in known])
    left = np.where(variance > counted, variance**2 / freedoms, 0.0)
    return SeedDraws(noise, np.maximum(variance - counted, 0.0), left, added)
