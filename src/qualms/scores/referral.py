"""Referral curves: the score of the items kept when the least certain are referred.

Band et al. (2021) send the most uncertain patients to an expert and score the rest. The
curves here are exact at every threshold; the 101-point grid of the released code is
`qualms.scores.as_published.retina.referral_curve`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._referral_kernels import (
    auprc_at_ends,
    auroc_at_ends,
    balanced_at_ends,
)
from qualms.scores.arguments import FLOOR, at_class, labelled, most_probable, vector
from qualms.scores.decomposition import entropy
from qualms.scores.influence import Influence, undefined
from qualms.scores.proper import correct, item_nll
from qualms.scores.ranking import placed, precision_area
from qualms.scores.selective import (
    augrc_influence,
    aurc_influence,
    kept_influence,
    kept_means,
    kept_risk_influence,
    kept_share,
)
from qualms.scores.ties import Ranked, levels, ranked_items

__all__ = [
    "ReferralCurve",
    "referral_curve",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralCurve:
    """A score of the retained items, for every number of items referred."""

    name: str
    """Name of the score: accuracy, nll, auroc, auprc or balanced_accuracy."""
    oracle: bool
    """True if referred items are counted as answered perfectly."""
    value: Array
    """(N,) `value[i]` after referring the i most uncertain items; nan: undefined."""

    @property
    def referred(self) -> Array:
        """(N,) shares of items referred: i / N for i = 0..N-1."""
        return np.arange(len(self.value)) / len(self.value)

    @property
    def defined(self) -> float:
        """Share of the curve that is defined, over which `area` is the mean."""
        return float(np.mean(~np.isnan(self.value)))

    @property
    def area(self) -> float:
        """Mean over the defined values; nan if none is defined."""
        defined = self.value[~np.isnan(self.value)]
        return float(np.mean(defined)) if defined.size else float("nan")

    def at(self, tau: float) -> float:
        """Return the score with a share `tau` referred, N - round(tau N) items kept."""
        if not 0.0 <= tau < 1.0:
            raise ValueError(f"tau must be at least 0 and less than 1, got {tau}")
        items = len(self.value)
        referred = round(tau * items)
        if referred == items:
            raise ValueError(
                f"tau must leave at least one of the {items} items, got {tau}, which "
                "refers all of them; pass a smaller tau"
            )
        return float(self.value[referred])


def referral_curve(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
    oracle: bool = False,
) -> ReferralCurve:
    """Return the score `name` of retained items at every referral (Band et al., 2021).

    Items of equal uncertainty are referred in random order: accuracy and NLL are the
    expectation over it; AUROC, AUPRC and balanced accuracy are exact where no tie is
    cut and linear in between (nan unless both ends are defined; among the most certain
    ties the value of all of them, which for AUROC is the expectation). An AUROC of one
    class and an AUPRC without a positive are nan. Time is O(N log N), for `auprc`
    O(N x positives); memory O(N).

    Args:
        name: accuracy, nll, auroc, auprc or balanced_accuracy.
        probs: P(y=1) (N,), probabilities (N, C) or draws (M, N, C), which are averaged.
            auroc and auprc need two classes: positive is class 1, the score P(y=1).
        target: (N,) classes 0..C-1.
        uncertainty: (N,) larger is referred first; the entropy of `probs` by default.
        oracle: count referred items as perfect, so the curve is that of model and
            expert together.

    >>> curve = referral_curve("accuracy", [0.1, 0.9, 0.6, 0.8], [0, 1, 0, 1])
    >>> curve.value
    array([0.75, 1.  , 1.  , 1.  ])
    >>> curve.at(0.5), curve.area
    (1.0, 0.9375)
    """
    kept_score = _find(name)
    mean, true = labelled(probs, target)
    items, classes = mean.shape
    if name in ("auroc", "auprc") and classes != 2:
        raise ValueError(
            f"probs must have two classes for the {name} curve, got {classes}; "
            "use accuracy, nll or balanced_accuracy"
        )
    if uncertainty is None:
        uncertainty = entropy(mean)
    rank = ranked_items(vector("uncertainty", uncertainty, length=items))
    retained = kept_score(mean, true, rank)
    value = _with_oracle(name, retained) if oracle else retained
    return ReferralCurve(name=name, oracle=oracle, value=value[::-1].copy())


FEWEST_KEPT, FEWEST_IN_AREA, LEAST_DEFINED = 10, 50, 0.95
CUTS = 64
"""Number of cuts for the influence on an area of AUROC, AUPRC or balanced accuracy."""
KeptScore = Callable[[Array, Index, Ranked], Array]


def check_is_name(name: object) -> None:
    """Raise for an array instead of the name of a score: arguments are swapped."""
    if not isinstance(name, str):
        raise TypeError(
            "the name of the score comes first, as in "
            "referral_curve('accuracy', probs, target); got "
            f"{type(name).__name__} for it"
        )


def _find(name: str) -> KeptScore:
    scores = _KEPT_SCORES
    check_is_name(name)
    if name not in scores:
        close = difflib.get_close_matches(name, scores, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise LookupError(
            f"no {name!r} in referral curves.{hint} Known: {', '.join(scores)}."
        )
    return scores[name]


def _with_oracle(name: str, score: Array) -> Array:
    items = len(score)
    retained = np.arange(1, items + 1)
    perfect = 0.0 if name == "nll" else 1.0
    return (retained * score + (items - retained) * perfect) / items


def _accuracy(probs: Array, target: Index, rank: Ranked) -> Array:
    hits = _hits(probs, target).astype(np.float64)
    return kept_means(hits[rank.order], rank.start)


def _nll(probs: Array, target: Index, rank: Ranked) -> Array:
    return kept_means(_item_nll(probs, target)[rank.order], rank.start)


# The next two are `proper.correct` and `proper.item_nll` of arrays that are checked
# already: to check them again would cost as much as the sort.
def _hits(probs: Array, target: Index) -> Flags:
    hits: Flags = most_probable(probs) == target
    return hits


def _item_nll(probs: Array, target: Index) -> Array:
    likelihood = at_class(probs, target)
    if likelihood.min() < FLOOR:
        floor = np.full(probs.shape[1], FLOOR)
        floor[0] = 1.0 - (1.0 - FLOOR) if len(floor) == 2 else FLOOR
        likelihood = np.maximum(likelihood, floor[target])
    return -np.log(likelihood)


def _auroc(probs: Array, target: Index, rank: Ranked) -> Array:
    by_score = ranked_items(probs[:, 1])
    level, count = levels(by_score)[rank.order], len(by_score.start) - 1
    positive = (target == 1)[rank.order]
    return _fill(auroc_at_ends(level, positive, rank.start, count), rank)


def _auprc(probs: Array, target: Index, rank: Ranked) -> Array:
    by_score = ranked_items(-probs[:, 1])
    level = levels(by_score)
    positive = target == 1
    holds = np.zeros(len(by_score.start) - 1, np.bool_)
    holds[level[positive]] = True
    slot: Index = (np.cumsum(holds) - holds)[level]
    kind = np.where(positive, 2, holds[level].astype(np.int64))
    ends = auprc_at_ends(
        slot[rank.order], kind[rank.order], rank.start, int(holds.sum())
    )
    return _fill(ends, rank)


def _balanced_accuracy(probs: Array, target: Index, rank: Ranked) -> Array:
    right = _hits(probs, target)[rank.order]
    ends = balanced_at_ends(target[rank.order], right, rank.start, probs.shape[1])
    return _fill(ends, rank)


def _fill(ends: Array, rank: Ranked) -> Array:
    """Return values (N,) of every prefix: `ends` of tie groups, linear inside."""
    items = rank.start[-1]
    if len(ends) == items:
        return ends
    # To the left of its first point np.interp holds that point's value, which is the
    # rule for the most certain group; a nan at either end makes the inside nan.
    return np.interp(np.arange(1, items + 1), rank.start[1:], ends)


_KEPT_SCORES: dict[str, KeptScore] = {
    "accuracy": _accuracy,
    "nll": _nll,
    "auroc": _auroc,
    "auprc": _auprc,
    "balanced_accuracy": _balanced_accuracy,
}


def referral_influence(
    curve: ReferralCurve,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
    *,
    tau: float | None = None,
) -> Influence:
    """Return influence on `curve.at(tau)`, or on `curve.area` where no `tau` is given.

    `curve` was made from the same arrays by `referral_curve`.
    """
    mean, truth = labelled(probs, target)
    score = entropy(mean) if uncertainty is None else uncertainty
    unsure = vector("uncertainty", score, length=len(truth))
    if len(curve.value) != len(truth):
        raise ValueError(
            f"the curve is of {len(curve.value)} items, the arrays of {len(truth)}; "
            "pass those that the curve was made of"
        )
    if curve.name in ("accuracy", "nll"):
        influence = _risk_influence(curve, mean, truth, unsure, tau)
    else:
        influence = _kept_influence(curve, mean, truth, unsure, tau)
    value = curve.area if tau is None else curve.at(tau)
    return dataclasses.replace(influence, value=value)


def _risk_influence(
    curve: ReferralCurve, probs: Array, target: Index, unsure: Array, tau: float | None
) -> Influence:
    accuracy = curve.name == "accuracy"
    risk = item_nll(probs, target)
    if accuracy:
        risk = 1.0 - correct(probs, target).astype(np.float64)
    if tau is not None:
        count = len(risk) - round(tau * len(risk))
        influence = kept_risk_influence(risk, ranked_items(unsure), count)
        influence = (
            _with_expert(influence, count / len(risk)) if curve.oracle else influence
        )
    else:
        influence = (augrc_influence if curve.oracle else aurc_influence)(risk, unsure)
    return influence.complement() if accuracy and influence.high == 1.0 else influence


def _with_expert(influence: Influence, share: float) -> Influence:
    """Return the influence with referred items counted as perfect."""
    values = None if influence.values is None else influence.values * share
    return dataclasses.replace(influence, value=influence.value * share, values=values)


def _kept_influence(
    curve: ReferralCurve, probs: Array, target: Index, unsure: Array, tau: float | None
) -> Influence:
    """Return the influence at one cut, or averaged over evenly spaced cuts."""
    items = len(target)
    rank = ranked_items(unsure)
    ranking = _WeightedScore(curve.name, probs, target)
    if tau is not None:
        cuts = [items - round(tau * items)]
    else:
        spaced = (np.arange(CUTS) + 0.5) / CUTS * items
        cuts = sorted({max(1, math.ceil(cut)) for cut in spaced})
    total, defined = np.zeros(items), 0
    for count in cuts:
        inner = ranking.of(kept_share(rank, count))
        if inner.values is None:
            continue
        weight = count / items if curve.oracle else 1.0
        total += weight * kept_influence(inner.values, rank, count)
        defined += 1
    if not defined:
        return undefined("the kept items are of one class")
    last = inner if tau is not None else ranking.of(np.ones(items))
    fewest = ranking.fewest(kept_share(rank, cuts[-1]))
    influence = Influence(
        value=math.nan,
        values=total / defined,
        scale="logit",
        freedom=fewest - 1.0,
        extreme=last.extreme,
        floor=last.floor,
    )
    return _with_enough(influence, fewest, curve, tau)


def _with_enough(
    influence: Influence, fewest: float, curve: ReferralCurve, tau: float | None
) -> Influence:
    """Remove the interval if few items of a class are kept, or an end is undefined."""
    needed = FEWEST_IN_AREA if tau is None else FEWEST_KEPT
    if fewest < needed:
        reason = (
            f"a class has {fewest:.0f} kept items: no interval holds below {needed}"
        )
        return dataclasses.replace(influence, reason=reason)
    if tau is None and curve.defined < LEAST_DEFINED:
        reason = f"the curve is defined on {curve.defined:.0%} of the range only"
        return dataclasses.replace(influence, reason=reason)
    return influence


class _WeightedScore:
    """A score of weighted items that are sorted once."""

    def __init__(self, name: str, probs: Array, target: Index) -> None:
        self.name, self.probs, self.target = name, probs, target
        self.rank: Ranked | None = None
        if name != "balanced_accuracy":
            sign = -1.0 if name == "auprc" else 1.0
            self.rank = ranked_items(sign * probs[:, 1])

    def of(self, weight: Array) -> Influence:
        """Return the influence of the items, each counting by its weight (N,)."""
        truth = self.target == 1
        if self.rank is None:
            return self._balanced(weight)
        if self.name == "auprc":
            return precision_area(truth, weight, self.rank, trapezoid=True)
        return placed(self.probs[:, 1], weight * truth, weight * ~truth, rank=self.rank)

    def fewest(self, weight: Array) -> float:
        """Return the smallest number of items in a class with items."""
        size = np.bincount(self.target, weight)
        return float(size[size > 0.0].min())

    def _balanced(self, weight: Array) -> Influence:
        hit = most_probable(self.probs) == self.target
        size = np.bincount(self.target, weight)
        hits = np.bincount(self.target, weight * hit)
        present = size > 0.0
        recall = np.divide(hits, size, out=np.zeros(len(size)), where=present)
        inverse = np.divide(1.0, size, out=np.zeros(len(size)), where=present)
        classes = int(present.sum())
        change = weight * (hit - recall[self.target]) * inverse[self.target] / classes
        return Influence(
            value=float(recall.sum() / classes),
            values=change,
            scale="logit",
            extreme=float(size[present].min()),
        )
