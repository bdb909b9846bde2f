"""Intervals of a share that hold near 0 and 1."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from qualms.arrays import Array
from qualms.scores.inference._design import Design, Spread


def wilson(share: float, size: float, level: float) -> tuple[float, float]:
    """Wilson's (1927) interval of a share among `size` independent items.

    >>> [round(end, 4) for end in wilson(0.9, 10, 0.95)]
    [0.5958, 0.9821]
    """
    z = float(ndtri(0.5 + level / 2.0))
    low, high = wilson_ends(np.array([share]), np.array([size]), z)
    return float(low[0]), float(high[0])


def wilson_ends(share: Array, size: Array, z: float) -> tuple[Array, Array]:
    """The same of many shares and sizes at once, for a normal quantile `z`."""
    about = z * z / size
    centre = (share + about / 2.0) / (1.0 + about)
    half = np.sqrt(share * (1.0 - share) * about + about * about / 4.0)
    half /= 1.0 + about
    # Rounding must not take away the end of the range where nothing else was seen.
    low = np.where(share <= 0.0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(share >= 1.0, 1.0, np.minimum(1.0, centre + half))
    return low, high


def exact_interval(
    hit: ArrayLike, *, design: Design | None = None, level: float = 0.95
) -> tuple[float, float]:
    """The exact binomial interval of the share of `hit` (N,), true or false.

    Clopper and Pearson's (1934) interval. It covers at least as often as it says,
    where Wilson's does so on average. With clusters, it is that of as many independent
    items as have the standard error of the share (Korn & Graubard, 1998).

    >>> [round(end, 4) for end in exact_interval([1] * 9 + [0])]
    [0.555, 0.9975]
    """
    right = np.asarray(hit, dtype=np.float64)
    if right.ndim != 1 or not right.size:
        raise ValueError(f"hit must have shape (N,), N > 0, got {right.shape}")
    share = float(right.mean())
    size = float(len(right))
    if design is not None and design.cluster is not None:
        spread = design.spread((right - share) / len(right))
        size = _exact_size(share, spread, len(right), level)
    if size <= 0.0:
        return 0.0, 1.0
    tail = (1.0 - level) / 2.0
    found, missed = share * size, size - share * size
    low = float(betaincinv(found, missed + 1.0, tail)) if found > 0.0 else 0.0
    high = float(betaincinv(found + 1.0, missed, 1.0 - tail)) if missed > 0.0 else 1.0
    return low, high


def _exact_size(share: float, spread: Spread, items: int, level: float) -> float:
    """How many independent items have this spread; 0: a single unit cannot show any."""
    if spread.units < 2:
        return 0.0
    # Rounding leaves a trace of error where all items agree.
    if spread.variance < 1e-24 or share * (1.0 - share) < 1e-12:
        return float(spread.units)
    size = min(share * (1.0 - share) / spread.variance, float(items))
    upper = 0.5 + level / 2.0
    few = float(stdtrit(items - 1, upper) / stdtrit(spread.units - 1, upper))
    return size * few**2


def effective_size(share: float, spread: Spread, items: float) -> float:
    """How many independent items would know the share equally well.

    Where the spread is 0, as many as there are units: no more can be said.
    """
    variance = share * (1.0 - share)
    if spread.variance <= 0.0 or variance <= 1e-12:
        return float(min(spread.units, items))
    # The variance was scaled up for the mean taken from it; Wilson's is not.
    known = variance / spread.variance * spread.units / max(spread.units - 1, 1)
    return max(1.0, min(known, float(items)))
