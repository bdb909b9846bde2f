"""Intervals of shares that are valid near 0 and 1.

They are for one share, shares in strata, and a share above a quantile of other items.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betainc, betaincinv, expit, ndtri, stdtrit

from qualms.arrays import Array, Flags, Index
from qualms.inference._design import Design, Spread
from qualms.scores.influence import FEWEST_CLUSTERS, Exceedance, RateRatio, Strata

ONE_SIGMA = 0.16
FEW = 5
"""With fewer hits, or misses, Wilson's interval alone is too short."""


def share_interval(share: float, size: float, level: float) -> tuple[float, float]:
    """Return the interval of a share among `size` independent items.

    Wilson's (1927). It covers as little as 84 % near 0 and 1, so that with fewer than 5
    hits, or misses, it is joined with the mid-p interval (Lancaster, 1961).

    >>> [round(end, 4) for end in share_interval(0.9, 10, 0.95)]
    [0.5958, 0.995]
    >>> [round(end, 4) for end in share_interval(0.5, 10, 0.95)]
    [0.2366, 0.7634]
    """
    z = float(ndtri(0.5 + level / 2.0))
    ends = wilson_ends(np.array([share]), np.array([size]), z)
    low, high = (float(end[0]) for end in ends)
    hits = share * size
    if min(hits, size - hits) >= FEW:
        return low, high
    tail = (1.0 - level) / 2.0
    below = _mid_p(hits, size, tail)
    above = 1.0 - _mid_p(size - hits, size, tail)
    return min(low, below), max(high, above)


def _mid_p(hits: float, size: float, tail: float) -> float:
    """Return the share at which more hits, and half of as many, have chance `tail`."""
    from scipy.optimize import brentq

    if hits <= 0.0:
        return 0.0

    def excess(share: float) -> float:
        at_least = betainc(hits, size - hits + 1.0, share)
        more = betainc(hits + 1.0, size - hits, share) if hits < size else 0.0
        return float(at_least + more) / 2.0 - tail

    return float(brentq(excess, 0.0, 1.0, xtol=1e-12))


def wilson_ends(share: Array, size: Array, z: float) -> tuple[Array, Array]:
    """Return the ends of Wilson's intervals of shares, for a normal quantile `z`."""
    about = z * z / size
    centre = (share + about / 2.0) / (1.0 + about)
    half = np.sqrt(share * (1.0 - share) * about + about * about / 4.0)
    half /= 1.0 + about
    # Rounding must not exclude 0 or 1 where the share is 0 or 1.
    low = np.where(share <= 0.0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(share >= 1.0, 1.0, np.minimum(1.0, centre + half))
    return low, high


def exact_interval(
    hit: ArrayLike, *, design: Design | None = None, level: float = 0.95
) -> tuple[float, float]:
    """Return the exact binomial interval of the share of `hit` (N,), true or false.

    Clopper and Pearson's (1934) interval. It covers at least as often as stated, where
    Wilson's does so on average. With clusters, it is the interval of as many
    independent items as would have this standard error (Korn & Graubard, 1998), and
    from 0 to 1 with fewer than 10 of them.

    >>> [round(end, 4) for end in exact_interval([1] * 9 + [0])]
    [0.555, 0.9975]
    """
    right = np.asarray(hit, dtype=np.float64)
    if right.ndim != 1 or not right.size:
        raise ValueError(f"hit must have shape (N,), N > 0, got {right.shape}")
    share, items = np.array([right.mean()]), np.array([float(len(right))])
    variance = units = None
    if design is not None and design.cluster is not None:
        spread = design.spread((right - share[0]) / len(right))
        variance, units = np.array([spread.variance]), np.array([float(spread.units)])
    low, high = exact_ends(share, items, level, variance=variance, units=units)
    return float(low[0]), float(high[0])


def exact_ends(
    share: Array,
    items: Array,
    level: float,
    *,
    variance: Array | None = None,
    units: Array | None = None,
) -> tuple[Array, Array]:
    """Return the ends of `exact_interval` for many shares (K,).

    Args:
        share: Shares of hits.
        items: Items of each share, one or more.
        level: Level of the intervals.
        variance: Variance of each share over draws of clusters; None for independent
            items.
        units: Number of clusters of each share; required with `variance`.
    """
    size = items.astype(np.float64)
    if variance is not None and units is not None:
        size = _exact_size(share, items, level, variance, units)
    tail = (1.0 - level) / 2.0
    hits, missed = share * size, size - share * size
    some = np.maximum(hits, 1e-300), np.maximum(missed, 1e-300)
    low = np.where(hits > 0.0, betaincinv(some[0], missed + 1.0, tail), 0.0)
    high = np.where(missed > 0.0, betaincinv(hits + 1.0, some[1], 1.0 - tail), 1.0)
    return low, high


def _exact_size(
    share: Array, items: Array, level: float, variance: Array, units: Array
) -> Array:
    """Return the number of independent items with this variance; 0 for few clusters."""
    product = share * (1.0 - share)
    # Rounding leaves a trace of error where all items agree.
    agreed = (variance < 1e-24) | (product < 1e-12)
    several = np.maximum(units, 2)
    upper = 0.5 + level / 2.0
    few = stdtrit(np.maximum(items, 2) - 1, upper) / stdtrit(several - 1, upper)
    size = np.minimum(product / np.where(agreed, 1.0, variance), items) * few**2
    counted: Array = np.where(agreed, units, size)
    return np.where(units < FEWEST_CLUSTERS, 0.0, counted)


def effective_size(
    share: float,
    spread: Spread,
    items: float,
    level: float,
    *,
    quantile: float | None = None,
) -> float:
    """Return the number of independent items that would estimate the share as well.

    Where the spread is 0, it is the number of units. The spread over clusters is
    uncertain, so that they count as fewer items, by Student's `quantile` at `level`.
    """
    variance = share * (1.0 - share)
    if spread.variance <= 0.0 or variance <= 1e-12:
        size = float(min(spread.units, items))
    else:
        # The variance is corrected for its estimated mean; Wilson's is not.
        size = variance / spread.variance * spread.units / max(spread.units - 1, 1)
        size = max(1.0, min(size, float(items)))
    if spread.units >= items:
        return size
    if quantile is None:
        quantile = student_quantile(level, spread.freedom)
    return size * (float(ndtri(0.5 + level / 2.0)) / quantile) ** 2


def strata_ends(strata: Strata, design: Design, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a mean of shares in strata, or of the least.

    A mean over two strata combines Wilson's intervals by squares (MOVER; Zou & Donner,
    2008); over more it takes the variances of (hits + 1) among (items + 2), on the
    logit scale. For the least share each stratum gets Wilson's interval at a level that
    holds for all of them at once (Bonferroni); the least then lies between the least of
    both ends.
    """
    count = np.bincount(strata.stratum)
    present = count > 0
    share = np.bincount(strata.stratum, strata.hit)[present] / count[present]
    size = _sizes_of_strata(design, strata, count, level)[present]
    if strata.summary == "mean":
        return (_by_squares if len(share) == 2 else _shrunk)(share, size, level)
    corrected = 1.0 - (1.0 - level) / len(share)
    ends = [
        share_interval(float(s), float(n), corrected)
        for s, n in zip(share, size, strict=True)
    ]
    low, high = np.array(ends).min(axis=0)
    return float(low), float(high)


def strata_method(strata: Strata) -> str:
    """Describe how `strata_ends` makes the interval."""
    if strata.summary == "least":
        return "Wilson's interval in every stratum, all at once (Bonferroni)"
    if np.count_nonzero(np.bincount(strata.stratum)) == 2:
        return "Wilson's interval in every class, by squares"
    return "variance of every class from one more hit and miss, logit scale"


def _by_squares(share: Array, size: Array, level: float) -> tuple[float, float]:
    ends = [
        share_interval(float(s), float(n), level)
        for s, n in zip(share, size, strict=True)
    ]
    low, high = np.array(ends).T
    value = float(share.mean())
    below = float(np.linalg.norm(share - low)) / len(share)
    return value - below, value + float(np.linalg.norm(high - share)) / len(share)


def _shrunk(share: Array, size: Array, level: float) -> tuple[float, float]:
    likely = (share * size + 1.0) / (size + 2.0)
    error = math.sqrt(float(np.sum(likely * (1.0 - likely) / size))) / len(share)
    value, middle = float(share.mean()), float(likely.mean())
    if not 0.0 < value < 1.0:
        value = middle
    logit = math.log(value / (1.0 - value))
    reach = float(ndtri(0.5 + level / 2.0)) * error / (value * (1.0 - value))
    low, high = (float(expit(logit + step)) for step in (-reach, reach))
    observed = float(share.mean())
    return min(low, observed), max(high, observed)


def _sizes_of_strata(
    design: Design, strata: Strata, count: Index, level: float
) -> Array:
    """Return the effective number of independent items in each stratum."""
    sizes = count.astype(np.float64)
    if design.cluster is None:
        return sizes
    alone, together = 0.0, np.zeros(len(strata.hit))
    for number in np.flatnonzero(count):
        inside = strata.stratum == number
        share = float(strata.hit[inside].mean())
        change = np.where(inside, strata.hit - share, 0.0) / count[number]
        spread = design.spread(change, inside.astype(np.int64))
        sizes[number] = effective_size(share, spread, count[number], level)
        alone += spread.variance
        together += change
    if alone > 0.0:
        # A cluster with items of several strata is lucky, or not, in all of them.
        joint = design.spread(together, strata.stratum).variance
        sizes /= max(1.0, joint / alone)
    return sizes


def exceedance_ends(
    exceedance: Exceedance, design: Design, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of a share above a quantile, by its two errors.

    The threshold is an order statistic of the positives, so its own uncertainty is
    known without any density; that of the rate at a fixed threshold is Wilson's. Both
    are combined by squares (MOVER; Zou & Donner, 2008). Clusters make fewer effective
    items of each kind.
    """
    tail = (1.0 - level) / 2.0
    positive, tpr = exceedance.positive, exceedance.share
    positive_levels = np.sort(exceedance.level[positive])[::-1]
    negative_levels = np.sort(exceedance.level[~positive])
    needed = max(math.ceil(tpr * len(positive_levels) * (1.0 - 1e-12)), 1)
    value = _share_at_rank(positive_levels, negative_levels, needed)
    hit = exceedance.level >= positive_levels[needed - 1]
    size = _effective(hit, positive, design, level, max(tpr, 0.5))
    least, most = _order_ranks(size, tpr, tail)
    stretch = len(positive_levels) / size
    low = _share_at_rank(positive_levels, negative_levels, math.floor(least * stretch))
    nearer, _ = _order_ranks(size, tpr, ONE_SIGMA)
    likely = _share_at_rank(
        positive_levels, negative_levels, math.floor(nearer * stretch)
    )
    high = _share_at_rank(positive_levels, negative_levels, math.ceil(most * stretch))
    negatives = _effective(hit, ~positive, design, level)
    wilson_low, wilson_high = share_interval(value, negatives, level)
    down = math.hypot(value - low, value - wilson_low)
    up = math.hypot(high - value, wilson_high - value)
    # With few distinct scores the rate jumps; its error is the one after the jump.
    jumped = share_interval(likely, negatives, level)[0]
    return max(0.0, min(value - down, jumped)), min(1.0, value + up)


def rate_ratio_ends(
    ratio: RateRatio, design: Design, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of a score of the ratio of two rates.

    Wilson's intervals of both rates are combined by squares on the log scale (MOVER; Li
    et al., 2014). Where no item of a kind is a hit, or every rate is 0 or 1, the ends
    are combined directly, which is too cautious.
    """
    ends = []
    for kind in (ratio.positive, ~ratio.positive):
        share = float(ratio.hit[kind].mean())
        size = _effective(ratio.hit, kind, design, level)
        ends.append((share, *share_interval(share, size, level)))
    (upper, upper_low, upper_high), (lower, lower_low, lower_high) = ends
    low = _ratio_end((upper, upper_low), (lower, lower_high))
    high = _ratio_end((upper, upper_high), (lower, lower_low))
    least, most = (
        ratio.score(end, 1.0) if math.isfinite(end) else ratio.score(1.0, 0.0)
        for end in (low, high)
    )
    return min(least, most), max(least, most)


def _ratio_end(upper: tuple[float, float], lower: tuple[float, float]) -> float:
    """Return one end of the interval of a ratio, from each rate and its end."""
    if upper[1] <= 0.0:
        return 0.0
    if lower[1] <= 0.0:
        return math.inf
    if upper[0] <= 0.0 or lower[0] <= 0.0:
        return upper[1] / lower[1]
    away = math.hypot(math.log(upper[1] / upper[0]), math.log(lower[1] / lower[0]))
    sign = 1.0 if upper[1] / lower[1] > upper[0] / lower[0] else -1.0
    return upper[0] / lower[0] * math.exp(sign * away)


def _share_at_rank(positive_levels: Array, negative_levels: Array, rank: int) -> float:
    """Return the share of negatives at or above the `rank`-th highest positive.

    It is 1 beyond the last rank.
    """
    if rank > len(positive_levels):
        return 1.0
    if rank < 1:
        return 0.0
    below = np.searchsorted(negative_levels, positive_levels[rank - 1])
    return 1.0 - float(below) / len(negative_levels)


def _order_ranks(size: float, share: float, tail: float) -> tuple[int, int]:
    """Return ranks that enclose the quantile, except for `tail` on either side."""
    trials = round(size)
    count = np.arange(trials + 1)
    cumulated = bdtr(count, trials, share)
    least = int(np.searchsorted(cumulated, tail))
    most = int(np.searchsorted(cumulated, 1.0 - tail)) + 1
    return least, most


def _effective(
    hit: Flags, kind: Flags, design: Design, level: float, share: float | None = None
) -> float:
    """Return the effective number of independent items of this kind."""
    count = int(kind.sum())
    if design.cluster is None:
        return float(count)
    value = float(hit[kind].mean()) if share is None else share
    change = np.where(kind, hit - float(hit[kind].mean()), 0.0) / count
    spread = design.spread(change, kind.astype(np.int64))
    return effective_size(value, spread, count, level)


def student_quantile(level: float, freedom: float) -> float:
    """Return Student's two-sided quantile: both tails together hold 1 - `level`."""
    if math.isinf(freedom):
        return float(ndtri(0.5 + level / 2.0))
    return float(stdtrit(freedom, 0.5 + level / 2.0))
