"""Bootstrap replicates of the scores of a repeat, many at a time.

They are what the plans of `qualms.scores.plans` give one by one, by the same kernels.
Here no replicate costs a call from Python, which for a few thousand items is most of
the time, and threads do not wait for one another.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate._aleatoric import truth_parts
from qualms.evaluate._entry import Settings
from qualms.evaluate._judge import Direction
from qualms.evaluate._referral_items import Array, Flags, Index, Items
from qualms.evaluate._replicates import mean_of_repeats
from qualms.scores import Resampling
from qualms.scores._jit import jit
from qualms.scores._weighted import (
    ascending,
    concordance,
    harmonic_numbers,
    kept_risk,
    sums_at,
)

Counts = NDArray[np.int32]
Replay = Callable[[Counts], Array]
"""From how often each item counts, (draws, n), to replicates (draws, scores)."""

RESAMPLED: Mapping[str, Direction] = {
    "accuracy": "higher",
    "nll": "lower",
    "ece": "lower",
    "auroc": "higher",
    "accuracy@0.7": "higher",
    "accuracy@0.5": "higher",
    "referral_accuracy_area": "higher",
}
"""Scores of a set that are cheap enough to resample, and which value is best."""
RESAMPLED_SETS = ("in_domain", "shifted", "joint")
"""The other sets hold the same items once more."""
_KEPT = np.array([0.3, 0.5])
_BINS = 15
_AT_ONCE = 50
"""Replicates whose weights are in memory together, in each thread."""


def replicates(repeats: Sequence[Items], settings: Settings) -> dict[str, Array]:
    """By score, (draws,) replicates of the mean over repeats, themselves drawn anew.

    Items are drawn within classes and sides of the shift, by patients where these are
    known; all rows of a variant see the same draws.
    """
    items = repeats[0]
    resampling = Resampling(
        len(items.target),
        strata=2 * items.target + items.shifted,
        cluster=items.cluster,
        seed=settings.seed,
    )
    each = [dict(_replays(repeat)) for repeat in repeats]
    names = [name for name in each[0] if all(name in own for own in each)]
    work = partial(_replayed, [[own[name] for name in names] for own in each])
    draws = settings.resamples
    starts = range(0, draws, _AT_ONCE)
    with ThreadPoolExecutor(settings.workers) as pool:
        parts = pool.map(
            lambda first: work(resampling, range(first, min(first + _AT_ONCE, draws))),
            starts,
        )
        samples = np.concatenate(list(parts), axis=1)
    means = mean_of_repeats(samples, settings.seed)
    columns = [score for name in names for score in name]
    return dict(zip(columns, means.T, strict=True))


def _replayed(
    replays: Sequence[Sequence[Replay]], resampling: Resampling, draws: range
) -> Array:
    """(repeats, draws, scores) of some of the replicates."""
    weights = np.stack([resampling.weights(draw) for draw in draws])
    return np.stack(
        [np.concatenate([replay(weights) for replay in own], 1) for own in replays]
    )


def _replays(items: Items) -> Iterator[tuple[tuple[str, ...], Replay]]:
    """What replays scores, by the names of the scores."""
    inside = int((~items.shifted).sum())
    n = len(items.shifted)
    sets = (slice(0, inside), slice(inside, n), slice(0, n))
    for where, part in zip(RESAMPLED_SETS, sets, strict=True):
        names = tuple(f"{where}/{score}" for score in RESAMPLED)
        yield names, _set_replay(items, part)
    total = items.uncertainty.total
    yield ("joint/ood_auroc",), _auroc_replay(total, items.shifted)
    for name, values in truth_parts(items).shift.items():
        yield (name,), _auroc_replay(values, items.shifted)
    for name, values in truth_parts(items).distance.items():
        yield (name,), _mean_replay(values, sets[0])


def _set_replay(items: Items, part: slice) -> Replay:
    probs, target = items.probs[part], items.target[part]
    right = scores.correct(probs, target).astype(np.float64)
    columns = np.column_stack(
        [right, scores.item_nll(probs, target), _gaps(probs.max(axis=1), right)]
    )
    auroc = _auroc_replay(probs[:, 1], target == 1)
    item, last = ascending(items.uncertainty.total[part])
    ranked = right[item]

    def replay(weights: Counts) -> Array:
        held = np.ascontiguousarray(weights[:, part])
        means = _means(held, columns)
        ece = np.abs(means[:, 2:]).sum(axis=1)
        harmonic = harmonic_numbers(int(held.sum(axis=1).max()).bit_length())
        kept = _kept(held, item, last, ranked, harmonic, _KEPT)
        return np.column_stack([means[:, :2], ece, auroc(held), kept])

    return replay


def _gaps(confidence: Array, right: Array) -> Array:
    """(n, bins) how far confidence lies above being right, in the item's own bin."""
    cell = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.zeros((len(cell), _BINS))
    gaps[np.arange(len(cell)), cell] = confidence - right
    return gaps[:, gaps.any(axis=0)]


def _mean_replay(values: Array, part: slice) -> Replay:
    column = values[part, None]
    return lambda weights: _means(weights[:, part], column)


def _auroc_replay(score: Array, positive: Flags) -> Replay:
    item, last = ascending(score)
    truth = positive[item].astype(np.float64)
    return lambda weights: _aurocs(weights, item, last, truth)[:, None]


def _means(weights: Counts, columns: Array) -> Array:
    """(draws, columns) weighted means; nan where whole clusters missed a small set."""
    copies = weights.astype(np.float64)
    count = copies.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        found: Array = copies @ columns / count
    return found


@jit
def _aurocs(weights: Counts, item: Index, last: Flags, positive: Array) -> Array:
    found = np.empty(len(weights))
    negative = 1.0 - positive
    for draw in range(len(weights)):
        found[draw] = concordance(weights[draw], item, last, positive, negative)
    return found


@jit
def _kept(
    weights: Counts,
    item: Index,
    last: Flags,
    right: Array,
    harmonic: Array,
    shares: Array,
) -> Array:
    """(draws, shares + 1) accuracy of the most certain `shares`, and its mean area."""
    found = np.full((len(weights), len(shares) + 1), np.nan)
    for draw in range(len(weights)):
        count = weights[draw].sum()
        if count == 0:
            continue
        edges = np.maximum(1.0, count - np.rint((1.0 - shares) * count))
        sums = sums_at(weights[draw], item, last, right, edges)
        found[draw, :-1] = sums / edges
        found[draw, -1] = kept_risk(weights[draw], item, last, right, harmonic)
    return found
