"""Walks over the thresholds of a set: the search for those that promise scores.

Scores are promised by learn-then-test (Angelopoulos et al., 2021) with fixed-sequence
tests, as in `scores.referral_threshold`. Given an order statistic, the items strictly
below it are independent draws of the population below it, so the number of right ones
among them (among their positives, for sensitivity) is binomial. Several scores together
have the largest of their p-values: if any score is too low, its own p-value is rarely
small. Walks start at a few ranks that depend on N alone; Bonferroni's correction is for
these starts only. docs/promise.md proves that the promise holds.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, betaincinv

from qualms.arrays import Array, Flags, Index
from qualms.referral._items import ReferralItems
from qualms.referral._request import Request
from qualms.scores.threshold import (
    start_cuts,
    start_ranks,
    walk_to_fewest_referrals,
)

LeastScores = Mapping[str, float] | Mapping[str, Array]
"""Least values of scores by name: one target, or several at once."""
GROWTH = (1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
"""Factors on the number of items that are tried if these are too few."""


class CountsBelow(NamedTuple):
    """Thresholds, least first, and the numbers of items strictly below each of them."""

    threshold: Array
    kept: Index
    items: Mapping[str, Index]
    """By score: numbers of items below that count in it."""
    right: Mapping[str, Index]
    """By score: numbers of those that are right."""


def count_below(items: ReferralItems, at_least: Mapping[str, float]) -> CountsBelow:
    """Return the counts at every distinct threshold of `items`, and at inf."""
    order, start = items.rank
    threshold = np.append(items.uncertainty[order[start[:-1]]], np.inf)

    def below(chosen: Flags) -> Index:
        return np.concatenate([[0], np.cumsum(chosen[order])])[start]

    counted = {name: items.counted(name) for name in at_least}
    return CountsBelow(
        threshold,
        start,
        {name: below(flags) for name, flags in counted.items()},
        {name: below(flags & items.correct) for name, flags in counted.items()},
    )


def observed_cut(counts: CountsBelow, at_least: Mapping[str, float]) -> int | None:
    """Return the cut that refers least and reaches these scores on the items."""
    good = counts.kept > 0
    for name, bound in at_least.items():
        count = counts.items[name]
        undefined = np.full(len(count), np.nan)
        share = np.divide(counts.right[name], count, where=count > 0, out=undefined)
        good &= share >= bound
    places = np.flatnonzero(good)
    return int(places[-1]) if places.size else None


def promised_cut(counts: CountsBelow, request: Request) -> int | None:
    """Return the cut that refers least and promises the request; None without one."""
    risk = _risk_of_a_walk(counts, request.effective_confidence)

    def passes(cuts: Index) -> Flags:
        return _p_values(counts, cuts, request.at_least) <= risk

    wrong = [counts.items[name] - counts.right[name] for name in request.at_least]
    return walk_to_fewest_referrals(_start_counts(counts), wrong, passes)


def _start_counts(counts: CountsBelow) -> Index:
    """Return the counts whose ranks are the starts.

    They are those of all items for an accuracy, else of the rarer requested class: few
    of many items may be positive, most of them among the last.
    """
    if "accuracy" in counts.items:
        return counts.kept
    return min(counts.items.values(), key=lambda count: int(count[-1]))


def starts(counts: CountsBelow) -> int:
    """Return the number of starts."""
    return len(start_ranks(int(_start_counts(counts)[-1])))


def _risk_of_a_walk(counts: CountsBelow, confidence: float) -> float:
    """Return the risk of each walk: equal parts for all starts."""
    return (1.0 - confidence) / starts(counts)


def _p_values(counts: CountsBelow, cuts: Index, at_least: LeastScores) -> Array:
    """Return p-values of "some score of the items kept by this cut is too low".

    Their shape is (cuts,), or (targets, cuts) where `at_least` has arrays of targets.
    """
    largest = np.zeros(len(cuts))
    for name, bound in at_least.items():
        count = counts.items[name][cuts]
        wrong = count - counts.right[name][cuts]
        miss = 1.0 - np.asarray(bound)[..., None]
        tail = bdtr(wrong, np.maximum(count, 1), miss)
        largest = np.maximum(largest, np.where(count > 0, tail, 1.0))
    return largest


def lower_bounds(counts: CountsBelow, name: str, cuts: Index, risk: float) -> Array:
    """Return a lower bound of the score at each cut, wrong with probability `risk`."""
    right = counts.right[name][cuts].astype(np.float64)
    wrong = counts.items[name][cuts] - right
    bound: Array = betaincinv(np.maximum(right, 1.0), wrong + 1.0, risk)
    return np.where(right > 0, bound, 0.0)


def best_bounds(counts: CountsBelow, request: Request) -> tuple[int, dict[str, float]]:
    """Return the start that comes nearest to the request, and its bounds.

    Bounds are lower further on in a walk, because all cuts before must have passed.
    """
    cuts = start_cuts(_start_counts(counts))
    risk = _risk_of_a_walk(counts, request.effective_confidence) / len(request.at_least)
    bounds = {name: lower_bounds(counts, name, cuts, risk) for name in request.at_least}
    slack = np.min(
        [bounds[name] - least for name, least in request.at_least.items()], axis=0
    )
    # Among equal bounds, choose the start that refers least.
    place = len(slack) - 1 - int(np.argmax(slack[::-1]))
    return int(cuts[place]), {
        name: float(bound[place]) for name, bound in bounds.items()
    }


def growth(counts: CountsBelow, at_least: LeastScores, confidence: float) -> Array:
    """Return the least factor on the number of items that passes; nan if none does.

    The result has the shape of the targets in `at_least`.
    """
    shape = np.broadcast_shapes(*(np.shape(bound) for bound in at_least.values()))
    least = np.full(shape, np.nan)
    for times in reversed(GROWTH):
        more = _multiplied(counts, times)
        p_values = _p_values(more, start_cuts(_start_counts(more)), at_least)
        enough = (p_values <= _risk_of_a_walk(more, confidence)).any(axis=-1)
        least = np.where(enough, times, least)
    return least


def _multiplied(counts: CountsBelow, times: float) -> CountsBelow:
    """Return the counts for `times` as many items, each repeated equally often.

    Fractions of an item are rounded against the request.
    """
    items = {
        name: np.floor(times * count).astype(np.int64)
        for name, count in counts.items.items()
    }
    wrong = {
        name: np.ceil(times * (count - counts.right[name])).astype(np.int64)
        for name, count in counts.items.items()
    }
    return CountsBelow(
        counts.threshold,
        np.floor(times * counts.kept).astype(np.int64),
        items,
        {name: count - np.minimum(wrong[name], count) for name, count in items.items()},
    )
