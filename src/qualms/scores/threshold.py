"""Referral thresholds: refer an item when its uncertainty is at or above the threshold.

`referral_threshold` gives two thresholds. One meets the request on the given items. The
other meets it for new items of the same population, with a stated confidence. For an
accuracy that one is found by walks over the thresholds (`walk_to_fewest_referrals`);
docs/promise.md proves that they keep the promise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from qualms.arrays import Array, Flags, Index
from qualms.scores.arguments import by_name, flags, vector
from qualms.scores.ties import ranked_items

__all__ = [
    "ReferralThreshold",
    "referral_threshold",
]

FEWEST = 25
"""Least number of items kept at a start, if there are that many items."""
MANY = 200
"""Least number of items with a further start at three quarters of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralThreshold:
    """Refer when uncertainty >= threshold, keep when uncertainty < threshold.

    A threshold of inf keeps every item. It is nan if no threshold meets the request;
    `reason` then says why.
    """

    threshold: float
    """Threshold that meets the request on the given items."""
    referred: float
    """Share of the given items that it refers."""
    accuracy: float
    """Accuracy of the given items that it keeps; nan if it keeps none."""
    guaranteed_threshold: float
    """Threshold that meets the request on the population, with the `confidence`."""
    guaranteed_referred: float
    """Share of the given items that the guaranteed threshold refers."""
    guaranteed_accuracy: float
    """Accuracy of the given items that the guaranteed threshold keeps."""
    confidence: float
    """Probability, over the draw of the given items, that the guarantee holds."""
    reason: str
    """Reason why a threshold is missing or keeps every item; otherwise empty."""


@by_name
def referral_threshold(
    *,
    correct: ArrayLike,
    uncertainty: ArrayLike,
    accuracy: float | None = None,
    budget: float | None = None,
    confidence: float = 0.9,
) -> ReferralThreshold:
    """Return threshold that refers least at an `accuracy`, or most within a `budget`.

    Give exactly one of the two: the accuracy that the kept items must reach, or the
    largest share of items that may be referred. `correct` and `uncertainty` have shape
    (N,); they should be items the model was neither trained nor tuned on.

    The accuracy guarantee is learn-then-test (Angelopoulos et al., 2021) with
    fixed-sequence tests. Given an order statistic and how many items lie strictly below
    it, these are independent draws of the population below it, so their errors are
    binomial: the exact binomial tail at the tolerated error rate is a p-value for "the
    kept accuracy is too low". Tests start at a few ranks that depend on N alone, each
    with an equal part of the risk, and go on from threshold to threshold, with no
    further correction, until the first one fails.

    The budget guarantee is exact as well: the population share at or below the r-th
    smallest of N uncertainties is at least a Beta(r, N + 1 - r) variable, so the
    smallest r that is safe with `confidence` is known before seeing the items, and
    everything above that value is referred.

    >>> correct, uncertainty = [1, 1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> choice = referral_threshold(
    ...     correct=correct, uncertainty=uncertainty, accuracy=0.75
    ... )
    >>> choice.threshold, choice.referred, choice.accuracy
    (0.5, 0.2, 0.75)
    >>> choice.reason
    'no threshold tested on these 5 items guarantees accuracy 0.75; give more items'
    """
    right = flags("correct", correct)
    values = vector("uncertainty", uncertainty, length=len(right))
    _check_request(accuracy, budget, confidence)
    cuts = _thresholds(right, values)
    if accuracy is not None:
        plain = _cut_reaching(cuts, accuracy)
        sure, reason = _guaranteed_cut(cuts, accuracy, confidence)
        if plain is None:
            reason = f"no threshold reaches accuracy {accuracy} on these items"
    else:
        assert budget is not None
        plain, reason = cut_within(cuts.kept, budget), ""
        sure = cut_surely_within(cuts.kept, budget, confidence)
        if sure is None:
            sure = len(cuts.kept) - 1
            reason = (
                f"{len(right)} items are too few to guarantee a budget of {budget} "
                "other than by referring none"
            )
    return _record(cuts, plain, sure, confidence, reason)


class _Thresholds(NamedTuple):
    """Every distinct threshold, least first, with counts of the items below it."""

    threshold: Array
    """(G + 1,) the distinct uncertainties, then inf."""
    kept: Index
    """(G + 1,) numbers of kept items; the first is 0, the last N."""
    right: Index
    """(G + 1,) numbers of correct kept items."""


def _check_request(
    accuracy: float | None, budget: float | None, confidence: float
) -> None:
    if (accuracy is None) == (budget is None):
        raise ValueError(
            "referral_threshold needs exactly one of accuracy and budget, got "
            + ("neither" if accuracy is None else "both")
        )
    if accuracy is not None and not 0.0 < accuracy <= 1.0:
        raise ValueError(f"accuracy must be above 0 and at most 1, got {accuracy}")
    if budget is not None and not 0.0 <= budget <= 1.0:
        raise ValueError(f"budget must lie in [0, 1], got {budget}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


def _thresholds(right: Flags, values: Array) -> _Thresholds:
    order, start = ranked_items(values)
    hits = np.concatenate([[0], np.cumsum(right[order])])
    threshold = np.append(values[order][start[:-1]], np.inf)
    return _Thresholds(threshold, start, hits[start])


def _cut_reaching(cuts: _Thresholds, accuracy: float) -> int | None:
    """Return the last cut whose kept items reach `accuracy`."""
    passed = np.flatnonzero(cuts.right[1:] / cuts.kept[1:] >= accuracy)
    return int(passed[-1]) + 1 if passed.size else None


def start_ranks(items: int) -> Index:
    """Return the numbers of items kept where walks start, ascending.

    These are all items, half of them, a quarter, and so on, down to 25, and three
    quarters where there are 200 or more. They depend on the number of items alone,
    which the proof of the promise needs. Fewer starts leave more of the risk to each;
    a walk gets to all thresholds between them.

    >>> start_ranks(210), start_ranks(20)
    (array([ 26,  52, 105, 157, 210]), array([20]))
    """
    ranks = [items]
    while ranks[-1] // 2 >= FEWEST:
        ranks.append(ranks[-1] // 2)
    if items >= MANY:
        ranks.append(3 * items // 4)
    return np.array(sorted(ranks), np.int64)


def start_cuts(kept: Index) -> Index:
    """Return the cut of each start: the last one that keeps no more than its rank.

    Tied items are kept together, so several starts may share a cut.

    Args:
        kept: Items kept by each cut, ascending; the last keeps all. Where only items of
            one class matter, these are counted alone.
    """
    cuts: Index = np.searchsorted(kept, start_ranks(int(kept[-1])), side="right") - 1
    return cuts


def walk_to_fewest_referrals(
    kept: Index, wrong: Iterable[Index], passes: Callable[[Index], Flags]
) -> int | None:
    """Return the cut that refers least of all that the walks reach; None: none passes.

    Each start is a walk of its own: if its cut passes, the next cut is tested, and so
    on to the first failure. A walk that reaches a later start continues like the walk
    from there, so only the walk from the last passing start is made. Right items make a
    test easier, so the first failure is at a cut where wrong items are added.

    Args:
        kept: As for `start_cuts`.
        wrong: Wrong items that each cut keeps, for each score that is tested.
        passes: Returns whether each of these cuts passes, at the risk of one walk.
    """
    starts = start_cuts(kept)
    passing = np.flatnonzero(passes(starts))
    if not passing.size:
        return None
    first = int(starts[passing[-1]])
    if passing[-1] + 1 == len(starts):
        return first
    end = int(starts[passing[-1] + 1])
    grows = np.any([np.diff(counts[first : end + 1]) > 0 for counts in wrong], axis=0)
    hurdles = first + 1 + np.flatnonzero(grows)
    # The next start failed, so the first failure is there at the latest.
    return int(np.append(hurdles[~passes(hurdles)], end)[0]) - 1


def _guaranteed_cut(
    cuts: _Thresholds, accuracy: float, confidence: float
) -> tuple[int | None, str]:
    """Return the cut that refers least among those that the walks accept."""
    items = int(cuts.kept[-1])
    risk = (1.0 - confidence) / len(start_ranks(items))

    def passes(cut: Index) -> Flags:
        count = cuts.kept[cut]
        tail = bdtr(count - cuts.right[cut], count, 1.0 - accuracy)
        passing: Flags = (tail <= risk) & (count > 0)
        return passing

    cut = walk_to_fewest_referrals(cuts.kept, [cuts.kept - cuts.right], passes)
    if cut is not None:
        return cut, ""
    return None, (
        f"no threshold tested on these {items} items guarantees accuracy {accuracy}; "
        "give more items"
    )


def cut_within(kept: Index, budget: float) -> int:
    """Return the first cut that refers no more than `budget` of the items.

    Args:
        kept: Items kept by each cut, ascending; the last keeps all.
        budget: Largest share that may be referred.
    """
    items = kept[-1]
    return int(np.argmax((items - kept) / items <= budget))


def cut_surely_within(kept: Index, budget: float, confidence: float) -> int | None:
    """Return the first cut with P(refer) <= `budget` at `confidence`.

    None means that only referring no item is sure to stay within the budget.

    Args:
        kept: As for `cut_within`.
        budget: Largest share that may be referred.
        confidence: Probability of being within it.
    """
    items = int(kept[-1])

    def safe(below: int) -> bool:
        return bool(bdtr(below, items, 1.0 - budget) >= confidence)

    rank = bisect_left(range(items), True, key=safe) + 1
    return None if rank > items else int(np.searchsorted(kept, rank, side="left"))


def _record(
    cuts: _Thresholds,
    plain: int | None,
    sure: int | None,
    confidence: float,
    reason: str,
) -> ReferralThreshold:
    threshold, referred, accuracy = _cut_values(cuts, plain)
    sure_threshold, sure_referred, sure_accuracy = _cut_values(cuts, sure)
    return ReferralThreshold(
        threshold=threshold,
        referred=referred,
        accuracy=accuracy,
        guaranteed_threshold=sure_threshold,
        guaranteed_referred=sure_referred,
        guaranteed_accuracy=sure_accuracy,
        confidence=confidence,
        reason=reason,
    )


def _cut_values(cuts: _Thresholds, cut: int | None) -> tuple[float, float, float]:
    if cut is None:
        return np.nan, np.nan, np.nan
    count, items = int(cuts.kept[cut]), int(cuts.kept[-1])
    accuracy = cuts.right[cut] / count if count else np.nan
    return float(cuts.threshold[cut]), (items - count) / items, float(accuracy)
