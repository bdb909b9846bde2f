"""Thresholds for a grid of budgets and of targets, by the rules of `refer`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qualms.arrays import Array, Index
from qualms.referral._items import ReferralItems
from qualms.referral._request import SHARE_SCORES, Request
from qualms.referral._walks import (
    CountsBelow,
    best_bounds,
    count_below,
    growth,
    observed_cut,
    promised_cut,
    starts,
)
from qualms.scores.threshold import cut_surely_within, cut_within

BUDGETS: Array = np.arange(201) / 200.0
"""Budgets that are answered: every half percent."""
TARGETS: Array = np.concatenate([np.arange(500, 900, 5), np.arange(900, 1000)]) / 1000.0
"""Targets that are answered: every half percent from 50 %, every tenth from 90 %."""
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetAnswers:
    """Thresholds within budgets, one for each budget."""

    observed: Array
    """(B,) thresholds that keep within the budgets on the items themselves."""
    promised: Mapping[float, Array]
    """By confidence: (B,) thresholds that keep within the budgets for new items."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreAnswers:
    """Thresholds whose kept items reach targets of a score; nan if there is none."""

    starts: int
    """Number of walks that share the risk."""
    observed: Array
    """(T,) thresholds that reach the targets on the items themselves."""
    promised: Mapping[float, Array]
    """By confidence: (T,) thresholds that promise the targets for new items."""
    needed: Mapping[float, Index]
    """By confidence: (T,) approximate number of items that would be enough; 0 if the
    target is promised, or if a hundred times as many items are not enough."""
    most: Mapping[float, tuple[float, float]]
    """By confidence: the threshold with the highest promise, and this promise."""

    def shown(self, confidence: float) -> Array:
        """Return the thresholds (T,) that `refer` shows: promised ones, else `most`."""
        promised = self.promised[confidence]
        shown: Array = np.where(np.isnan(promised), self.most[confidence][0], promised)
        return shown


def answered_scores(items: ReferralItems) -> tuple[str, ...]:
    """Return the scores that can be targets of a plan for these items."""
    if not items.is_decided:
        return ()
    if items.classes != 2:
        return ("accuracy",)
    return tuple(name for name in SHARE_SCORES if items.counted(name).any())


def answer_budgets(items: ReferralItems, sample: ReferralItems) -> BudgetAnswers:
    """Return thresholds for every budget, as `choose_threshold` does for one."""
    own, counts = count_below(items, {}), count_below(sample, {})
    last = len(counts.kept) - 1

    def promised(confidence: float) -> Array:
        cuts = [
            cut_surely_within(counts.kept, float(budget), confidence)
            for budget in BUDGETS
        ]
        return counts.threshold[[last if cut is None else cut for cut in cuts]]

    observed = [cut_within(own.kept, float(budget)) for budget in BUDGETS]
    return BudgetAnswers(
        observed=own.threshold[observed],
        promised={confidence: promised(confidence) for confidence in CONFIDENCES},
    )


def answer_targets(
    name: str, items: ReferralItems, sample: ReferralItems
) -> ScoreAnswers:
    """Return thresholds for every target, as `choose_threshold` does for one."""
    own, counts = (count_below(each, {name: 0.0}) for each in (items, sample))
    observed = [observed_cut(own, {name: float(target)}) for target in TARGETS]
    promised = {
        confidence: _promised(name, counts, confidence) for confidence in CONFIDENCES
    }
    return ScoreAnswers(
        starts=starts(counts),
        observed=_at(observed, own),
        promised=promised,
        needed={
            confidence: _needed(name, counts, confidence, thresholds, items.n)
            for confidence, thresholds in promised.items()
        },
        most={
            confidence: _most(name, counts, confidence) for confidence in CONFIDENCES
        },
    )


def _promised(name: str, counts: CountsBelow, confidence: float) -> Array:
    cuts = [
        promised_cut(counts, Request(at_least={name: target}, confidence=confidence))
        for target in TARGETS.tolist()
    ]
    return _at(cuts, counts)


def _needed(
    name: str, counts: CountsBelow, confidence: float, promised: Array, items: int
) -> Index:
    times = growth(counts, {name: TARGETS}, confidence)
    known = np.isnan(promised) & ~np.isnan(times)
    enough: Index = np.round(np.where(known, times, 0.0) * items).astype(np.int64)
    return enough


def _most(name: str, counts: CountsBelow, confidence: float) -> tuple[float, float]:
    # Which start has the highest bound does not depend on the target.
    request = Request(at_least={name: float(TARGETS[-1])}, confidence=confidence)
    cut, bounds = best_bounds(counts, request)
    return float(counts.threshold[cut]), bounds[name]


def _at(cuts: Sequence[int | None], counts: CountsBelow) -> Array:
    """Return the thresholds of cuts; nan where there is none."""
    thresholds = [np.nan if cut is None else counts.threshold[cut] for cut in cuts]
    return np.array(thresholds, np.float64)
