"""Referral thresholds: refer an item when its uncertainty is at or above the threshold.

`referral_threshold` gives two thresholds. One meets the request on the given items. The
other meets it for new items of the same population, with a stated confidence.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from qualms.arrays import Array, Flags, Index
from qualms.scores.arguments import flags, vector
from qualms.scores.ties import ranked_items

__all__ = [
    "ReferralThreshold",
    "referral_threshold",
]

# How many coverages, evenly spaced and fixed before seeing any item, are tested.
GRID = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralThreshold:
    """Refer when uncertainty >= threshold, keep when uncertainty < threshold.

    A threshold of inf keeps every item. It is nan where no threshold meets the request;
    `reason` then says why.
    """

    threshold: float
    """Meets the request on the given items."""
    referred: float
    """Share of the given items it refers."""
    accuracy: float
    """Accuracy of the given items it keeps; nan where it keeps none."""
    guaranteed_threshold: float
    """Meets the request on the population, with probability `confidence`."""
    guaranteed_referred: float
    """Share of the given items that the guaranteed threshold refers."""
    guaranteed_accuracy: float
    """Accuracy of the given items that the guaranteed threshold keeps."""
    confidence: float
    """Probability, over the draw of the given items, that the guarantee holds."""
    reason: str
    """Why a threshold is missing or keeps every item; otherwise empty."""


def referral_threshold(
    correct: ArrayLike,
    uncertainty: ArrayLike,
    *,
    accuracy: float | None = None,
    budget: float | None = None,
    confidence: float = 0.9,
) -> ReferralThreshold:
    """Return threshold that refers least at an `accuracy`, or most within a `budget`.

    Give exactly one of the two: the accuracy that the kept items must reach, or the
    largest share of items that may be referred. `correct` and `uncertainty` have shape
    (N,); they should be items the model was neither trained nor tuned on.

    The accuracy guarantee is learn-then-test (Angelopoulos et al., 2021). The candidate
    thresholds are the order statistics at up to 50 ranks fixed in advance, and inf.
    Given such a threshold and how many items lie strictly below it, these are
    independent draws of the population below it, so their errors are binomial: the
    exact binomial tail at the tolerated error rate is a p-value for "the kept accuracy
    is too low". Bonferroni over the ranks holds for any dependence between them. Of the
    thresholds that pass, the one that refers least is returned.

    The budget guarantee is exact as well: the population share at or below the r-th
    smallest of N uncertainties is at least a Beta(r, N + 1 - r) variable, so the
    smallest r that is safe with `confidence` is known before seeing the items, and
    everything above that value is referred.

    >>> correct, uncertainty = [1, 1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> found = referral_threshold(correct, uncertainty, accuracy=0.75)
    >>> found.threshold, found.referred, found.accuracy
    (0.5, 0.2, 0.75)
    >>> found.reason
    'none of the 5 thresholds tested guarantees accuracy 0.75; give more items'
    """
    right = flags("correct", correct)
    values = vector("uncertainty", uncertainty, length=len(right))
    _check_request(accuracy, budget, confidence)
    cuts = _thresholds(right, values)
    if accuracy is not None:
        plain = _reaching(cuts, accuracy)
        sure, reason = _tested(cuts, accuracy, confidence)
        if plain is None:
            reason = f"no threshold reaches accuracy {accuracy} on these items"
    else:
        assert budget is not None
        plain = _within(cuts, budget)
        sure, reason = _surely_within(cuts, budget, confidence)
    return _record(cuts, plain, sure, confidence, reason)


class _Thresholds(NamedTuple):
    """Every distinct threshold, least first, and what stands strictly below it."""

    threshold: Array
    """(G + 1,) the distinct uncertainties, then inf."""
    kept: Index
    """(G + 1,) items kept; the first is 0, the last N."""
    right: Index
    """(G + 1,) correct items kept."""


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
    found = np.concatenate([[0], np.cumsum(right[order])])
    threshold = np.append(values[order][start[:-1]], np.inf)
    return _Thresholds(threshold, start, found[start])


def _reaching(cuts: _Thresholds, accuracy: float) -> int | None:
    """Return the last cut whose kept items reach `accuracy`."""
    passed = np.flatnonzero(cuts.right[1:] / cuts.kept[1:] >= accuracy)
    return int(passed[-1]) + 1 if passed.size else None


def _tested(
    cuts: _Thresholds, accuracy: float, confidence: float
) -> tuple[int | None, str]:
    """Return the cut that refers least among those a test accepts (learn-then-test)."""
    items = int(cuts.kept[-1])
    # The ranks depend on N alone: this is what lets Bonferroni count them.
    ranks = np.unique(np.round(np.arange(1, GRID + 1) * items / GRID).astype(np.int64))
    ranks = ranks[ranks > 0]
    cut = np.searchsorted(cuts.kept, ranks, side="right") - 1
    kept = cuts.kept[cut]
    tail = bdtr(kept - cuts.right[cut], kept, 1.0 - accuracy)
    passed = cut[(tail <= (1.0 - confidence) / len(ranks)) & (kept > 0)]
    if passed.size:
        return int(passed[-1]), ""
    return None, (
        f"none of the {len(ranks)} thresholds tested guarantees accuracy {accuracy}; "
        "give more items"
    )


def _within(cuts: _Thresholds, budget: float) -> int:
    """Return the first cut that refers no more than `budget` of the items."""
    items = cuts.kept[-1]
    return int(np.argmax((items - cuts.kept) / items <= budget))


def _surely_within(
    cuts: _Thresholds, budget: float, confidence: float
) -> tuple[int, str]:
    """Return first cut with P(refer) <= `budget` at `confidence`; inf always is one."""
    items = int(cuts.kept[-1])
    below = np.arange(items)
    safe = bdtr(below, items, 1.0 - budget) >= confidence
    if not safe.any():
        return len(cuts.kept) - 1, (
            f"{items} items are too few to guarantee a budget of {budget} other than "
            "by referring none"
        )
    rank = int(np.argmax(safe)) + 1
    return int(np.searchsorted(cuts.kept, rank, side="left")), ""


def _record(
    cuts: _Thresholds,
    plain: int | None,
    sure: int | None,
    confidence: float,
    reason: str,
) -> ReferralThreshold:
    threshold, referred, accuracy = _described(cuts, plain)
    sure_threshold, sure_referred, sure_accuracy = _described(cuts, sure)
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


def _described(cuts: _Thresholds, cut: int | None) -> tuple[float, float, float]:
    if cut is None:
        return np.nan, np.nan, np.nan
    kept, items = int(cuts.kept[cut]), int(cuts.kept[-1])
    accuracy = cuts.right[cut] / kept if kept else np.nan
    return float(cuts.threshold[cut]), (items - kept) / items, float(accuracy)
