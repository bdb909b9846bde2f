"""Shares, means and AUROC with intervals that hold for few items and for clusters.

A bootstrap of 300 right out of 300 gives the interval from 1 to 1, and takes minutes
for a million items. Here the standard error comes from the influence of every item,
summed over clusters (the infinitesimal jackknife; for AUROC DeLong et al., 1988, and
Obuchowski, 1997), and a score between 0 and 1 gets the exact binomial interval of as
many independent items as have this standard error (Korn & Graubard, 1998). Without
clusters that is Clopper and Pearson's interval for a share.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from qualms.scores import Estimate, ranked_items

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]

UNDEFINED = Estimate(value=math.nan, low=math.nan, high=math.nan, undefined=1.0)


def share_estimate(hit: Flags, cluster: Index | None, *, level: float) -> Estimate:
    """The share of items (N,) that `hit`, with its interval."""
    if not len(hit):
        return UNDEFINED
    value = float(hit.mean())
    if cluster is None:
        return _bounded(value, float(len(hit)), level)
    error = _error((hit - value) / len(hit), cluster)
    return _bounded(value, _size(value, error, len(hit), level), level)


def balanced_estimate(
    hit: Flags, target: Index, cluster: Index | None, *, level: float
) -> Estimate:
    """The mean over classes of the share of `hit`, all (N,), with its interval."""
    if not len(hit):
        return UNDEFINED
    count = np.bincount(target)
    right = np.bincount(target, hit)
    recall = np.divide(right, count, out=np.zeros(len(count)), where=count > 0)
    classes = int((count > 0).sum())
    value = float(recall.sum() / classes)
    error = _error((hit - recall[target]) / count[target] / classes, cluster)
    least = int(count[count > 0].min())
    return _bounded(value, _size(value, error, len(hit), level, least=least), level)


def auroc_estimate(
    score: Array, positive: Flags, cluster: Index | None, *, level: float
) -> Estimate:
    """AUROC of `score` for `positive`, all (N,), with its interval."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return UNDEFINED
    won = _won(score, positive)
    value = float(won[positive].mean())
    own = np.where(positive, positives, negatives)
    error = _error((won - value) / own, cluster)
    # Where every pair is in order, as many pairs that share no item are.
    least = min(positives, negatives)
    return _bounded(value, _size(value, error, len(score), level, least=least), level)


def mean_estimate(values: Array, cluster: Index | None, *, level: float) -> Estimate:
    """The mean of `values` (N,) of 0 or more, with its interval by Student's t."""
    if not len(values):
        return UNDEFINED
    value = float(values.mean())
    error = _error((values - value) / len(values), cluster)
    if math.isnan(error.value):
        return Estimate(value=value, low=0.0, high=math.inf, undefined=0.0)
    reach = float(_t(level, error.units - 1)) * error.value
    low, high = max(0.0, value - reach), value + reach
    return Estimate(value=value, low=low, high=high, undefined=0.0)


class _Error(NamedTuple):
    value: float
    """Standard error; nan where a single unit cannot show any."""
    units: int
    """Independent units: clusters, or items."""


def _error(influence: Array, cluster: Index | None) -> _Error:
    """The standard error of a score whose items have `influence` (N,), summing to 0."""
    summed, units = influence, len(influence)
    if cluster is not None:
        summed = np.bincount(cluster, influence).astype(np.float64)
        units = int(np.count_nonzero(np.bincount(cluster)))
    if units < 2:
        return _Error(math.nan, units)
    return _Error(math.sqrt(units / (units - 1) * float(summed @ summed)), units)


def _size(
    value: float, error: _Error, items: int, level: float, *, least: int | None = None
) -> float:
    """How many independent items would have this standard error; 0: it is unknown."""
    if math.isnan(error.value):
        return 0.0
    # Rounding leaves a trace of error where all items agree.
    if error.value < 1e-12 or value * (1.0 - value) < 1e-12:
        return float(error.units if least is None else min(least, error.units))
    size = min(value * (1.0 - value) / error.value**2, float(items))
    few = _t(level, items - 1) / _t(level, error.units - 1)
    return size * few**2


def _t(level: float, freedom: int) -> float:
    return float(stdtrit(max(freedom, 1), 0.5 + level / 2))


def _bounded(value: float, size: float, level: float) -> Estimate:
    """The exact binomial interval of `value` among `size` items, whole or not."""
    if size <= 0.0:
        return Estimate(value=value, low=0.0, high=1.0, undefined=0.0)
    tail = (1.0 - level) / 2.0
    right = value * size
    wrong = size - right
    low = float(betaincinv(right, wrong + 1.0, tail)) if right > 0.0 else 0.0
    high = float(betaincinv(right + 1.0, wrong, 1.0 - tail)) if wrong > 0.0 else 1.0
    return Estimate(value=value, low=low, high=high, undefined=0.0)


def _won(score: Array, positive: Flags) -> Array:
    """(N,) share of the other class each item is on the right side of, ties half."""
    order, start = ranked_items(score)
    found = np.add.reduceat(positive[order].astype(np.int64), start[:-1])
    other = np.diff(start) - found
    below = np.cumsum(other) - other / 2
    above = found.sum() - np.cumsum(found) + found / 2
    group = np.repeat(np.arange(len(found)), np.diff(start))
    won = np.empty(len(score))
    won[order] = np.where(
        positive[order], below[group] / other.sum(), above[group] / found.sum()
    )
    return won
