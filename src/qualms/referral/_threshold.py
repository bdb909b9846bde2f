"""Choice of the threshold that does what was asked, and its promise for new items.

Scores are promised by learn-then-test (Angelopoulos et al., 2021) with fixed-sequence
tests, as in `scores.referral_threshold`. Given an order statistic, the items strictly
below it are independent draws of the population below it, so the number of right ones
among them (among their positives, for sensitivity) is binomial. Several scores together
have the largest of their p-values: if any score is too low, its own p-value is rarely
small. Walks start at a few ranks that depend on N alone; Bonferroni's correction is for
these starts only. docs/refer.md proves that the promise holds.

Offers are another statement: lower bounds at a few shares referred, which all hold at
once by Bonferroni's correction over these shares.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, betaincinv

from qualms import scores
from qualms.referral._items import Array, Flags, Index, ReferralItems
from qualms.referral._request import SHARE_SCORES, Request
from qualms.referral.shares import exact_percent
from qualms.scores.threshold import (
    start_cuts,
    start_ranks,
    walk_to_fewest_referrals,
)

OFFERED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares referred of the offers."""
DIGITS = 4
"""Least number of digits of a rounded threshold."""
GROWTH = (1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
"""How many times as many items are tried where these are too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """A threshold and its effect on the items it was chosen on."""

    threshold: float
    """Refer where uncertainty >= threshold; inf refers none."""
    rounded: float
    """The threshold with four digits, or with as many as refer the same items."""
    referred: float
    """Share of the items referred."""
    accuracy: float
    """Accuracy of the kept items; nan where none is kept, and for regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Statement about new items of the same population, and its confidence.

    Where items come in clusters it is about one random item per cluster: a large
    cluster counts no more than a small one.
    """

    at_least: Mapping[str, float]
    """Lower bounds of scores of the kept items; empty for a budget."""
    budget: float | None
    """Upper bound of the share referred, where that is what is promised."""
    confidence: float
    """Probability, over the draw of the items, that the statement is true."""
    items: int
    """Independent items that were tested: one per cluster where there are clusters."""
    tested: int
    """Starts of walks, between which the risk is divided; 1 for a budget.

    Of plans made before there were walks, the thresholds tested at once.
    """

    def words(self, as_text: Callable[[float], str] = exact_percent) -> str:
        """Return the promise as a clause; `as_text` formats the lower bounds."""
        if self.budget is not None:
            return f"at most {exact_percent(self.budget)} of them are referred"
        return " and ".join(
            f"at least {as_text(bound)} {SHARE_SCORES[name].promise}"
            for name, bound in self.at_least.items()
        )

    def as_data(self) -> dict[str, Any]:
        """Return the promise as JSON holds it."""
        return {
            "at_least": dict(self.at_least),
            "budget": self.budget,
            "confidence": self.confidence,
            "items": self.items,
            "tested": self.tested,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Another threshold, and the accuracy that it promises."""

    cutoff: Cutoff
    promised: float
    """Lower bound of the accuracy of kept new items; all offers hold at once."""


class ThresholdChoice(NamedTuple):
    """The threshold that answers a request, and what it promises."""

    found: bool
    """Whether a threshold does what was asked."""
    shown: Cutoff
    """That threshold, else the one with the highest promise."""
    observed: Cutoff | None
    """The threshold that does what was asked on the given items alone."""
    promised: Cutoff | None
    """The threshold that does what was asked for new items."""
    promise: Promise | None
    """What `shown` promises; None for a budget of the given items."""
    needed: int | None
    """About how many such items would be enough, where these are too few.

    All items of a cluster are counted. None: even 100 times as many would not do.
    """


class CountsBelow(NamedTuple):
    """Thresholds, least first, and the numbers of items strictly below each of them."""

    threshold: Array
    kept: Index
    items: Mapping[str, Index]
    """By score: the items below that count in it."""
    right: Mapping[str, Index]
    """By score: those of them that are right."""


def choose_threshold(
    items: ReferralItems, sample: ReferralItems, request: Request
) -> ThresholdChoice:
    """Choose the threshold for `request`.

    Args:
        items: What the threshold is described on.
        sample: Independent ones of them, which promises rest on.
        request: A budget, or scores that the kept items must reach.
    """
    if request.budget is not None:
        return _choose_for_budget(items, sample, request.budget, request)
    return _choose_for_scores(items, sample, request)


def _choose_for_budget(
    items: ReferralItems, sample: ReferralItems, budget: float, request: Request
) -> ThresholdChoice:
    options = {"budget": budget, "confidence": request.effective_confidence}
    plain = scores.referral_threshold(items.correct, items.uncertainty, **options)
    safe = scores.referral_threshold(sample.correct, sample.uncertainty, **options)
    observed = cutoff_at(items, plain.threshold)
    promised = cutoff_at(items, safe.guaranteed_threshold)
    if request.confidence is None:
        return ThresholdChoice(True, observed, observed, promised, None, None)
    promise = Promise(
        at_least={},
        budget=budget,
        confidence=request.effective_confidence,
        items=sample.n,
        tested=1,
    )
    return ThresholdChoice(True, promised, observed, promised, promise, None)


def _choose_for_scores(
    items: ReferralItems, sample: ReferralItems, request: Request
) -> ThresholdChoice:
    for name in request.at_least:
        if not items.counted(name).any():
            raise ValueError(
                f"{name} needs {SHARE_SCORES[name].side} items, {items.name} has none; "
                "give a file that has both classes"
            )
    observed = _observed_cutoff(items, request.at_least)
    counts = count_below(sample, request.at_least)
    cut = promised_cut(counts, request)
    found, bounds = cut is not None, request.at_least
    if cut is None:
        cut, bounds = _best_bounds(counts, request)
    shown = cutoff_at(items, float(counts.threshold[cut]))
    promise = Promise(
        at_least=bounds,
        budget=None,
        confidence=request.effective_confidence,
        items=sample.n,
        tested=_starts(counts),
    )
    if found:
        return ThresholdChoice(True, shown, observed, shown, promise, None)
    times = _growth(counts, request)
    needed = None if times is None else round(times * items.n)
    return ThresholdChoice(False, shown, observed, None, promise, needed)


def list_offers(
    items: ReferralItems, sample: ReferralItems, confidence: float
) -> tuple[Offer, ...]:
    """Return the accuracy kept and promised at a few shares referred.

    There are no offers for regression.
    """
    if items.classes is None:
        return ()
    counts = count_below(sample, {"accuracy": 0.0})
    # Shares of the items, fixed before any was seen.
    ranks = np.round((1.0 - np.array(OFFERED)) * sample.n).astype(np.int64)
    cuts = np.searchsorted(counts.kept, ranks, side="right") - 1
    bounds = _lower_bounds(counts, "accuracy", cuts, (1.0 - confidence) / len(cuts))
    offers: dict[float, Offer] = {}
    for cut, bound in zip(cuts, bounds, strict=True):
        if counts.kept[cut]:
            cutoff = cutoff_at(items, float(counts.threshold[cut]))
            offers[cutoff.threshold] = Offer(cutoff=cutoff, promised=float(bound))
    return tuple(offers.values())


def cutoff_at(items: ReferralItems, threshold: float) -> Cutoff:
    """Return what `threshold` does on `items`."""
    kept = items.uncertainty < threshold
    count = int(kept.sum())
    judged = count and items.classes is not None
    accuracy = float(items.correct[kept].mean()) if judged else float("nan")
    largest_kept = float(items.uncertainty[kept].max()) if count else -math.inf
    return Cutoff(
        threshold=threshold,
        rounded=_rounded_down(threshold, largest_kept),
        referred=(items.n - count) / items.n,
        accuracy=accuracy,
    )


def _rounded_down(threshold: float, largest_kept: float) -> float:
    """Return `threshold` with few digits, but larger than `largest_kept`."""
    if math.isinf(threshold):
        return threshold
    for digits in range(DIGITS, 17):
        context = Context(prec=digits, rounding=ROUND_FLOOR)
        short = float(context.create_decimal_from_float(threshold))
        if largest_kept < short:
            return short
    return threshold


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


def _observed_cutoff(
    items: ReferralItems, at_least: Mapping[str, float]
) -> Cutoff | None:
    """Return the cutoff that refers least and has these scores on `items`."""
    counts = count_below(items, at_least)
    good = counts.kept > 0
    for name, bound in at_least.items():
        count = counts.items[name]
        undefined = np.full(len(count), np.nan)
        share = np.divide(counts.right[name], count, where=count > 0, out=undefined)
        good &= share >= bound
    places = np.flatnonzero(good)
    if not places.size:
        return None
    return cutoff_at(items, float(counts.threshold[places[-1]]))


def promised_cut(counts: CountsBelow, request: Request) -> int | None:
    """Return the cut that refers least and promises what is asked; None: none does."""
    risk = _risk_of_a_walk(counts, request)

    def passes(cuts: Index) -> Flags:
        return _p_values(counts, cuts, request.at_least) <= risk

    wrong = [counts.items[name] - counts.right[name] for name in request.at_least]
    return walk_to_fewest_referrals(_start_counts(counts), wrong, passes)


def _start_counts(counts: CountsBelow) -> Index:
    """Return the counts whose ranks are the starts.

    All items for an accuracy, else the rarer class of those that are asked about: of
    many items few may be positive, and most of these among the last.
    """
    if "accuracy" in counts.items:
        return counts.kept
    return min(counts.items.values(), key=lambda count: int(count[-1]))


def _starts(counts: CountsBelow) -> int:
    """Return the number of starts."""
    return len(start_ranks(int(_start_counts(counts)[-1])))


def _risk_of_a_walk(counts: CountsBelow, request: Request) -> float:
    """Return the risk that each walk may take: equal parts for all starts."""
    return (1.0 - request.effective_confidence) / _starts(counts)


def _p_values(counts: CountsBelow, cuts: Index, at_least: Mapping[str, float]) -> Array:
    """Return p-values of "some score of the items kept by this cut is too low"."""
    largest = np.zeros(len(cuts))
    for name, bound in at_least.items():
        count = counts.items[name][cuts]
        wrong = count - counts.right[name][cuts]
        tail = bdtr(wrong, np.maximum(count, 1), 1.0 - bound)
        largest = np.maximum(largest, np.where(count > 0, tail, 1.0))
    return largest


def _lower_bounds(counts: CountsBelow, name: str, cuts: Index, risk: float) -> Array:
    """Return a lower bound of the score at each cut, wrong with probability `risk`."""
    right = counts.right[name][cuts].astype(np.float64)
    wrong = counts.items[name][cuts] - right
    bound: Array = betaincinv(np.maximum(right, 1.0), wrong + 1.0, risk)
    return np.where(right > 0, bound, 0.0)


def _best_bounds(counts: CountsBelow, request: Request) -> tuple[int, dict[str, float]]:
    """Return the start that comes nearest to the request, and the bounds it has.

    Further on in a walk the bounds that hold are lower: all before must have passed.
    """
    cuts = start_cuts(_start_counts(counts))
    risk = _risk_of_a_walk(counts, request) / len(request.at_least)
    bounds = {
        name: _lower_bounds(counts, name, cuts, risk) for name in request.at_least
    }
    slack = np.min(
        [bounds[name] - least for name, least in request.at_least.items()], axis=0
    )
    # Of equal bounds the one that refers least.
    place = len(slack) - 1 - int(np.argmax(slack[::-1]))
    return int(cuts[place]), {
        name: float(bound[place]) for name, bound in bounds.items()
    }


def _growth(counts: CountsBelow, request: Request) -> float | None:
    """Return how many times as many items would pass; None if no factor tried does."""
    for times in GROWTH:
        more = _multiplied(counts, times)
        risk = _risk_of_a_walk(more, request)
        p_values = _p_values(more, start_cuts(_start_counts(more)), request.at_least)
        if (p_values <= risk).any():
            return times
    return None


def _multiplied(counts: CountsBelow, times: float) -> CountsBelow:
    """Return the counts of `times` as many items, each repeated equally often.

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
