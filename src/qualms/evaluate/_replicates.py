"""Bootstrap replicates of a cell: validation items, test items and repeats together.

In a replicate, validation and test items are drawn with replacement, by clusters where
there are some; offset and threshold are found anew on the drawn validation items, and
the scores taken on the drawn test items. All rows of a dataset see the same draws. The
repeats are drawn with replacement too, so that the interval of their mean covers what
seeds change as well as what items do.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate._entry import Settings
from qualms.evaluate._measured import RATE, Calibration, Items, Measured
from qualms.jit import jit
from qualms.predictions import Predictions
from qualms.scores import Resampling
from qualms.scores.conformal import SLACK

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = NDArray[np.int32]

REPLAYED = 6
"""The first scores of a cell have replicates; shares of odd intervals do not."""


class Weights(NamedTuple):
    """How often each item counts in each replicate, (draws, N)."""

    val: Counts
    test: Counts


def draw_weights(val: Predictions, test: Predictions, settings: Settings) -> Weights:
    """The replicates of one dataset, the same for all of its rows."""
    drawn = []
    for place, split in enumerate((val, test)):
        resampling = Resampling(
            split.n, cluster=split.get("cluster"), seed=2 * settings.seed + place
        )
        draws = range(settings.resamples)
        drawn.append(np.stack([resampling.weights(draw) for draw in draws]))
    return Weights(*drawn)


def replicates(measured: Measured, alpha: float, weights: Weights) -> Array:
    """(draws, scores) of one repeat, calibrated anew in every replicate."""
    val, test = map(_columns, measured)
    return _replay(val, test, 1 - alpha, weights)


def held_replicates(measured: Measured, held: Calibration, weights: Weights) -> Array:
    """(draws, scores) of one repeat, with one offset per item that stays as it is."""
    val, test = (
        _columns(items._replace(lower=items.lower - off, upper=items.upper + off))
        for items, off in zip(measured, held[:2], strict=True)
    )
    unbounded = [bool(np.isinf(columns[3]).any()) for columns in (val, test)]
    for columns in (val, test):
        columns[3] = np.where(np.isinf(columns[3]), 0.0, columns[3])
    # Targets are outside by what they were; an offset of 0 is all that is found.
    val[0] = 0.0
    found = _replay(val, test, 0.0, weights)
    found[:, 1] += math.inf if unbounded[0] else 0.0
    found[:, 5] += math.inf if unbounded[1] else 0.0
    return found


def mean_of_repeats(samples: Array, seed: int) -> Array:
    """(draws, scores) means over repeats drawn anew, from (repeats, draws, scores)."""
    repeats, draws, _ = samples.shape
    rng = np.random.default_rng([seed, repeats])
    chosen = rng.integers(repeats, size=(repeats, draws))
    mean: Array = samples[chosen, np.arange(draws)].mean(axis=0)
    return mean


def _columns(items: Items) -> Array:
    """(4, N): how far targets lie outside, selection, absolute error, length."""
    outside = np.maximum(items.lower - items.target, items.target - items.upper)
    error = np.abs(items.point - items.target)
    return np.stack([outside, items.select, error, items.upper - items.lower])


def _replay(val: Array, test: Array, share: float, weights: Weights) -> Array:
    order = np.argsort(val[:2], axis=1)
    ranked = np.concatenate([np.take_along_axis(val[:2], order, axis=1), val[2:]])
    level = np.array([share, RATE]) * (1 - SLACK)
    return _replayed(weights.val, weights.test, order, ranked, test, level)


@jit
def _replayed(
    val_weights: Counts,
    test_weights: Counts,
    order: Ints,
    val: Array,
    test: Array,
    level: Array,
) -> Array:
    draws = len(val_weights)
    found = np.empty((draws, REPLAYED))
    for draw in range(draws):
        weight = val_weights[draw]
        total = weight.sum()
        rank = np.ceil(level[0] * (total + 1))
        offset = _at_rank(weight, order[0], val[0], rank)
        threshold = _at_rank(weight, order[1], val[1], np.ceil(level[1] * total))
        error, length = 0.0, 0.0
        for i in range(len(weight)):
            error += weight[i] * val[2, i]
            length += weight[i] * val[3, i]
        found[draw, 0] = error / total
        found[draw, 1] = length / total + 2 * offset
        _accepted(test_weights[draw], test, offset, threshold, found[draw])
    return found


@jit
def _at_rank(weight: Counts, order: Ints, ranked: Array, rank: float) -> float:
    """The value at `rank` among repeated items; infinite past the last."""
    below = 0
    for i in range(len(order)):
        below += weight[order[i]]
        if below >= rank:
            return float(ranked[i])
    return np.inf


@jit
def _accepted(
    weight: Counts, test: Array, offset: float, threshold: float, found: Array
) -> None:
    """Fill in the scores of the test items that are predicted."""
    kept, inside = 0, 0
    error, length = 0.0, 0.0
    # Without branches: weights are as good as random, which no processor foresees.
    for i in range(len(weight)):
        count = weight[i] * (test[1, i] <= threshold)
        kept += count
        inside += count * (test[0, i] <= offset)
        error += count * test[2, i]
        length += count * test[3, i]
    share = kept if kept else np.nan
    found[2] = inside / share
    found[3] = kept / weight.sum()
    found[4] = error / share
    found[5] = length / share + 2 * offset
