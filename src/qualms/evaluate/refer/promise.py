"""Which thresholds do what was asked, and what may be promised for new items.

Learn-then-test (Angelopoulos et al., 2021), as in `scores.referral_threshold`. The
candidate thresholds are order statistics at ranks that depend on N alone. Given one,
the items strictly below it are independent draws of the population below it, so the
number of right ones among them (among their positives, for sensitivity) is binomial.
Several targets together have the largest of their p-values: if any target is not met,
its own p-value is rarely small. Bonferroni's correction over the ranks holds for any
dependence between them, and also gives lower bounds that hold for all ranks at once.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Context
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv

from qualms.evaluate.refer.items import ReferralItems
from qualms.evaluate.refer.plan import Offer
from qualms.evaluate.refer.request import Cutoff, Promise
from qualms.scores.threshold import GRID

Array = NDArray[np.float64]
Index = NDArray[np.int64]

OFFERED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
DIGITS = 4
GROWTH = (1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)


class ReferralCuts(NamedTuple):
    """Thresholds, least first, and what stands strictly below each of them."""

    threshold: Array
    kept: Index
    among: Mapping[str, Index]
    """By score: the items below that it is about."""
    right: Mapping[str, Index]
    """By score: those of them that are right."""


class Certified(NamedTuple):
    """The result of testing all ranks."""

    passed: Cutoff | None
    """The threshold that refers least among those that pass."""
    best: Promise
    """The largest bounds that can be promised together."""
    needed: int | None
    """About how many such items would pass, counting all items of a cluster.

    None: even 100 times as many would not.
    """


def cuts_of(items: ReferralItems, scores: Mapping[str, float]) -> ReferralCuts:
    """Every distinct threshold of `items`, then inf."""
    order, start = items.rank
    threshold = np.append(items.uncertainty[order[start[:-1]]], np.inf)

    def below(chosen: NDArray[np.bool_]) -> Index:
        return np.concatenate([[0], np.cumsum(chosen[order])])[start]

    masks = {name: items.among(name) for name in scores}
    return ReferralCuts(
        threshold,
        start,
        {name: below(mask) for name, mask in masks.items()},
        {name: below(mask & items.correct) for name, mask in masks.items()},
    )


def reaching(items: ReferralItems, targets: Mapping[str, float]) -> Cutoff | None:
    """The threshold that refers least among those that reach `targets` on `items`."""
    cuts = cuts_of(items, targets)
    good = cuts.kept > 0
    for name, level in targets.items():
        count = cuts.among[name]
        right = np.divide(cuts.right[name], count, where=count > 0, out=_nan(count))
        good &= right >= level
    passed = np.flatnonzero(good)
    if not passed.size:
        return None
    return cutoff_at(items, float(cuts.threshold[passed[-1]]))


def certify(
    items: ReferralItems,
    sample: ReferralItems,
    targets: Mapping[str, float],
    confidence: float,
) -> Certified:
    """Test the ranks of the independent `sample`; choices are described on `items`."""
    every = cuts_of(sample, targets)
    cuts = _at_ranks(every)
    accepted = _accepted(cuts, targets, confidence)
    passed = None
    if accepted.size:
        passed = cutoff_at(items, float(cuts.threshold[accepted[-1]]))
    times = _growth(every, targets, confidence)
    return Certified(
        passed,
        _best(cuts, targets, confidence, sample.n),
        None if times is None else round(times * items.n),
    )


def offers_of(
    items: ReferralItems, sample: ReferralItems, confidence: float
) -> tuple[Offer, ...]:
    """An overview: the accuracy kept and promised at a few shares referred.

    There is none for regression.
    """
    if items.classes is None:
        return ()
    cuts = _at_ranks(cuts_of(sample, {"accuracy": 0.0}))
    bound = _bounds(cuts, "accuracy", (1.0 - confidence) / len(cuts.kept))
    found: dict[float, Offer] = {}
    for referred in OFFERED:
        rank = round((1.0 - referred) * len(cuts.kept)) - 1
        if rank < 0 or cuts.kept[rank] == 0:
            continue
        made = cutoff_at(items, float(cuts.threshold[rank]))
        found[made.threshold] = Offer(choice=made, promised=float(bound[rank]))
    return tuple(found.values())


def cutoff_at(items: ReferralItems, threshold: float) -> Cutoff:
    """What `threshold` does on `items`."""
    kept = items.uncertainty < threshold
    count = int(kept.sum())
    judged = count and items.classes is not None
    accuracy = float(items.correct[kept].mean()) if judged else float("nan")
    above = float(items.uncertainty[kept].max()) if count else -math.inf
    return Cutoff(
        threshold=threshold,
        rounded=_cut_off(threshold, above),
        referred=(items.n - count) / items.n,
        accuracy=accuracy,
    )


def _cut_off(threshold: float, above: float) -> float:
    """`threshold` with few digits, not larger than itself and larger than `above`."""
    if math.isinf(threshold):
        return threshold
    for digits in range(DIGITS, 17):
        context = Context(prec=digits, rounding=ROUND_FLOOR)
        short = float(context.create_decimal_from_float(threshold))
        if above < short:
            return short
    return threshold


def _at_ranks(cuts: ReferralCuts, times: float = 1.0) -> ReferralCuts:
    """The cuts at up to 50 ranks; which ones depends on the number of items alone.

    With `times` the ranks are those of so many times as many items, among which every
    item stands as often.
    """
    items = round(times * int(cuts.kept[-1]))
    ranks = np.round(np.arange(1, GRID + 1) * items / GRID).astype(np.int64)
    ranks = np.unique(ranks[ranks > 0])
    cut = np.searchsorted(times * cuts.kept, ranks, side="right") - 1
    return ReferralCuts(
        cuts.threshold[cut],
        cuts.kept[cut],
        {name: count[cut] for name, count in cuts.among.items()},
        {name: count[cut] for name, count in cuts.right.items()},
    )


def _accepted(
    cuts: ReferralCuts,
    targets: Mapping[str, float],
    confidence: float,
    times: float = 1.0,
) -> Index:
    """The ranks that pass, if there were `times` as many items."""
    risk = (1.0 - confidence) / len(cuts.kept)
    return np.flatnonzero(_p_value(cuts, targets, times) <= risk)


def _p_value(cuts: ReferralCuts, targets: Mapping[str, float], times: float) -> Array:
    """(ranks,) of "some target is not met", if there were `times` as many items."""
    found = np.zeros(len(cuts.kept))
    for name, level in targets.items():
        count = np.floor(times * cuts.among[name]).astype(np.int64)
        wrong = np.ceil(times * (cuts.among[name] - cuts.right[name]))
        tail = bdtr(np.minimum(wrong, count), np.maximum(count, 1), 1.0 - level)
        found = np.maximum(found, np.where(count > 0, tail, 1.0))
    return found


def _bounds(cuts: ReferralCuts, name: str, risk: float) -> Array:
    """(ranks,) lower bounds of the score, each too high with probability `risk`."""
    right = cuts.right[name].astype(np.float64)
    wrong = cuts.among[name] - right
    bound: Array = betaincinv(np.maximum(right, 1.0), wrong + 1.0, risk)
    return np.where(right > 0, bound, 0.0)


def _best(
    cuts: ReferralCuts, targets: Mapping[str, float], confidence: float, items: int
) -> Promise:
    risk = (1.0 - confidence) / len(cuts.kept) / len(targets)
    bounds = {name: _bounds(cuts, name, risk) for name in targets}
    slack = np.min([bounds[name] - level for name, level in targets.items()], axis=0)
    # Of equal bounds the one that refers least.
    rank = len(slack) - 1 - int(np.argmax(slack[::-1]))
    return Promise(
        threshold=float(cuts.threshold[rank]),
        at_least={name: float(bound[rank]) for name, bound in bounds.items()},
        budget=None,
        confidence=confidence,
        items=items,
        tested=len(cuts.kept),
    )


def _growth(
    cuts: ReferralCuts, targets: Mapping[str, float], confidence: float
) -> float | None:
    """How many times as many items would pass; None if no factor tried is enough."""
    for times in GROWTH:
        if _accepted(_at_ranks(cuts, times), targets, confidence, times).size:
            return times
    return None


def _nan(like: Index) -> Array:
    return np.full(len(like), np.nan)
