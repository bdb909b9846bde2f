"""Choice of the threshold that fulfils a request, and its promise for new items.

Scores are promised by walks over the thresholds (`_walks`), a budget by the beta
distribution of order statistics.

Offers are a separate statement: lower bounds at a few shares referred, which hold
simultaneously by Bonferroni's correction over these shares.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np

from qualms import scores
from qualms.referral._items import ReferralItems
from qualms.referral._request import SHARE_SCORES, Request
from qualms.referral._walks import (
    best_bounds,
    count_below,
    growth,
    lower_bounds,
    observed_cut,
    promised_cut,
    starts,
)
from qualms.referral.shares import exact_percent

OFFERED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares referred by the offers."""
DIGITS = 4
"""Least number of digits of a rounded threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """A threshold and its effect on the items it was chosen on."""

    threshold: float
    """Least uncertainty of referred items; inf refers none."""
    rounded: float
    """The threshold with four digits, or with as many as refer the same items."""
    referred: float
    """Share of the items referred."""
    accuracy: float
    """Accuracy of the kept items; nan if none is kept, and for regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Statement about new items of the same population, and its confidence.

    If items form clusters, it is about one random item per cluster: a large cluster
    counts no more than a small one.
    """

    at_least: Mapping[str, float]
    """Lower bounds of scores of the kept items; empty for a budget."""
    budget: float | None
    """Upper bound of the share referred; None for promised scores."""
    confidence: float
    """Probability, over the draw of the items, that the statement is true."""
    items: int
    """Number of independent items that were tested: one per cluster."""
    tested: int
    """Number of starts of walks, which share the risk; 1 for a budget.

    In plans made before there were walks, the number of thresholds tested at once.
    """

    def words(
        self,
        as_text: Callable[[float], str] = exact_percent,
        *,
        accuracy: str = "",
    ) -> str:
        """Return the promise as a clause.

        Args:
            as_text: Formats the lower bounds.
            accuracy: Words of a task for the share of right items; '' for the usual.
        """
        if self.budget is not None:
            return f"at most {exact_percent(self.budget)} of them are referred"
        own = {"accuracy": accuracy} if accuracy else {}
        return " and ".join(
            f"at least {as_text(bound)} {own.get(name, SHARE_SCORES[name].promise)}"
            for name, bound in self.at_least.items()
        )

    def as_data(self) -> dict[str, Any]:
        """Return the promise as JSON values."""
        return {
            "at_least": dict(self.at_least),
            "budget": self.budget,
            "confidence": self.confidence,
            "items": self.items,
            "tested": self.tested,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Another threshold with the accuracy that it promises."""

    cutoff: Cutoff
    promised: float
    """Lower bound of the accuracy of kept new items; all offers hold simultaneously."""


class ThresholdChoice(NamedTuple):
    """The threshold that answers a request, and its promise."""

    found: bool
    """True if a threshold fulfils the request."""
    shown: Cutoff
    """The threshold; if none fulfils the request, the one with the highest promise."""
    observed: Cutoff | None
    """The threshold that fulfils the request on the given items alone."""
    promised: Cutoff | None
    """The threshold that fulfils the request for new items."""
    promise: Promise | None
    """Promise of `shown`; None for a budget of the given items."""
    needed: int | None
    """Approximate number of items that would be enough if these are too few.

    All items of a cluster are counted. None if even 100 times as many are not enough.
    """


def choose_threshold(
    items: ReferralItems, sample: ReferralItems, request: Request
) -> ThresholdChoice:
    """Choose the threshold for `request`.

    Args:
        items: The items on which the threshold is described.
        sample: Independent items among them, on which promises are based.
        request: A budget, or scores that the kept items must reach.
    """
    if request.budget is not None:
        return _choose_for_budget(items, sample, request.budget, request)
    return _choose_for_scores(items, sample, request)


def _choose_for_budget(
    items: ReferralItems, sample: ReferralItems, budget: float, request: Request
) -> ThresholdChoice:
    options = {"budget": budget, "confidence": request.effective_confidence}
    plain = scores.referral_threshold(
        correct=items.correct, uncertainty=items.uncertainty, **options
    )
    safe = scores.referral_threshold(
        correct=sample.correct, uncertainty=sample.uncertainty, **options
    )
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
    observed = _observed_cutoff(items, request)
    counts = count_below(sample, request.at_least)
    cut = promised_cut(counts, request)
    is_promised, bounds = cut is not None, request.at_least
    if cut is None:
        cut, bounds = best_bounds(counts, request)
    shown = cutoff_at(items, float(counts.threshold[cut]))
    promise = Promise(
        at_least=bounds,
        budget=None,
        confidence=request.effective_confidence,
        items=sample.n,
        tested=starts(counts),
    )
    if is_promised:
        return ThresholdChoice(True, shown, observed, shown, promise, None)
    times = float(growth(counts, request.at_least, request.effective_confidence))
    needed = None if math.isnan(times) else round(times * items.n)
    return ThresholdChoice(False, shown, observed, None, promise, needed)


def list_offers(
    items: ReferralItems, sample: ReferralItems, confidence: float
) -> tuple[Offer, ...]:
    """Return the accuracy of kept items, and its promise, at a few shares referred.

    There are no offers for regression.
    """
    if not items.is_decided:
        return ()
    counts = count_below(sample, {"accuracy": 0.0})
    # The shares are fixed before any item is read.
    ranks = np.round((1.0 - np.array(OFFERED)) * sample.n).astype(np.int64)
    cuts = np.searchsorted(counts.kept, ranks, side="right") - 1
    bounds = lower_bounds(counts, "accuracy", cuts, (1.0 - confidence) / len(cuts))
    offers: dict[float, Offer] = {}
    for cut, bound in zip(cuts, bounds, strict=True):
        if counts.kept[cut]:
            cutoff = cutoff_at(items, float(counts.threshold[cut]))
            offers[cutoff.threshold] = Offer(cutoff=cutoff, promised=float(bound))
    return tuple(offers.values())


def cutoff_at(items: ReferralItems, threshold: float) -> Cutoff:
    """Return the effect of `threshold` on `items`."""
    is_kept = items.uncertainty < threshold
    count = int(is_kept.sum())
    judged = count and items.is_decided
    accuracy = float(items.correct[is_kept].mean()) if judged else float("nan")
    largest_kept = float(items.uncertainty[is_kept].max()) if count else -math.inf
    return Cutoff(
        threshold=threshold,
        rounded=rounded_down(threshold, largest_kept),
        referred=(items.n - count) / items.n,
        accuracy=accuracy,
    )


def rounded_down(threshold: float, largest_kept: float) -> float:
    """Return `threshold` rounded down to few digits, but above `largest_kept`."""
    if math.isinf(threshold):
        return threshold
    for digits in range(DIGITS, 17):
        context = Context(prec=digits, rounding=ROUND_FLOOR)
        short = float(context.create_decimal_from_float(threshold))
        if largest_kept < short:
            return short
    return threshold


def _observed_cutoff(items: ReferralItems, request: Request) -> Cutoff | None:
    counts = count_below(items, request.at_least)
    cut = observed_cut(counts, request.at_least)
    return None if cut is None else cutoff_at(items, float(counts.threshold[cut]))
