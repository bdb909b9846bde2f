"""Influence on referral curves: a score of what is kept, and its area.

Keeping a fixed share moves the cut with the items: one more certain item pushes out
another one. What it pushes out is on average like the items at the cut.
"""

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.scores._arrays import labelled, most_probable, vector
from qualms.scores.decomposition import entropy
from qualms.scores.inference._influence import Influence, undefined
from qualms.scores.inference._ranking import placed, precision_area
from qualms.scores.inference._selective import (
    augrc_influence,
    aurc_influence,
    kept_influence,
    kept_risk_influence,
    kept_share,
)
from qualms.scores.proper import correct, item_nll
from qualms.scores.referral import ReferralCurve
from qualms.scores.ties import Ranked, ranked_items

FEWEST_KEPT, FEWEST_IN_AREA, LEAST_DEFINED = 10, 50, 0.95
CUTS = 64
"""Cuts at which an area of AUROC, AUPRC or balanced accuracy is followed."""


def referral_influence(
    curve: ReferralCurve,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
    *,
    tau: float | None = None,
) -> Influence:
    """The influence on `curve.at(tau)`, or on `curve.area` where no `tau` is given.

    `curve` was made from the same arrays by `referral_curve`.
    """
    mean, truth = labelled(probs, target)
    given = entropy(mean) if uncertainty is None else uncertainty
    unsure = vector("uncertainty", given, length=len(truth))
    if len(curve.value) != len(truth):
        raise ValueError(
            f"the curve is of {len(curve.value)} items, the arrays of {len(truth)}; "
            "pass those that the curve was made of"
        )
    if curve.name in ("accuracy", "nll"):
        found = _of_risk(curve, mean, truth, unsure, tau)
    else:
        found = _of_kept(curve, mean, truth, unsure, tau)
    value = curve.area if tau is None else curve.at(tau)
    return dataclasses.replace(found, value=value)


def _of_risk(
    curve: ReferralCurve, probs: Array, target: Index, unsure: Array, tau: float | None
) -> Influence:
    accuracy = curve.name == "accuracy"
    risk = item_nll(probs, target)
    if accuracy:
        risk = 1.0 - correct(probs, target).astype(np.float64)
    if tau is not None:
        kept = len(risk) - round(tau * len(risk))
        found = kept_risk_influence(risk, ranked_items(unsure), kept)
        found = _with_expert(found, kept / len(risk)) if curve.oracle else found
    else:
        found = (augrc_influence if curve.oracle else aurc_influence)(risk, unsure)
    return found.complement() if accuracy and found.high == 1.0 else found


def _with_expert(found: Influence, share: float) -> Influence:
    """Referred items count as perfect: the score is a risk times the share kept."""
    values = None if found.values is None else found.values * share
    return dataclasses.replace(found, value=found.value * share, values=values)


def _of_kept(
    curve: ReferralCurve, probs: Array, target: Index, unsure: Array, tau: float | None
) -> Influence:
    """At one cut, or averaged over cuts evenly spaced."""
    items = len(target)
    rank = ranked_items(unsure)
    ranking = _WeightedScore(curve.name, probs, target)
    if tau is not None:
        cuts = [items - round(tau * items)]
    else:
        spaced = (np.arange(CUTS) + 0.5) / CUTS * items
        cuts = sorted({max(1, math.ceil(cut)) for cut in spaced})
    total, defined = np.zeros(items), 0
    for kept in cuts:
        inner = ranking.of(kept_share(rank, kept))
        if inner.values is None:
            continue
        weight = kept / items if curve.oracle else 1.0
        total += weight * kept_influence(inner.values, rank, kept)
        defined += 1
    if not defined:
        return undefined("the kept items are of one class")
    last = inner if tau is not None else ranking.of(np.ones(items))
    fewest = ranking.fewest(kept_share(rank, cuts[-1]))
    found = Influence(
        value=math.nan,
        values=total / defined,
        scale="logit",
        freedom=fewest - 1.0,
        extreme=last.extreme,
        floor=last.floor,
    )
    return _with_enough(found, fewest, curve, tau)


def _with_enough(
    found: Influence, fewest: float, curve: ReferralCurve, tau: float | None
) -> Influence:
    """No interval where the kept items of a class are few, or an end is undefined."""
    needed = FEWEST_IN_AREA if tau is None else FEWEST_KEPT
    if fewest < needed:
        reason = (
            f"a class has {fewest:.0f} kept items: no interval holds below {needed}"
        )
        return dataclasses.replace(found, reason=reason)
    if tau is None and curve.defined < LEAST_DEFINED:
        reason = f"the curve is defined on {curve.defined:.0%} of the range only"
        return dataclasses.replace(found, reason=reason)
    return found


class _WeightedScore:
    """A score of weighted items, its sort made once."""

    def __init__(self, name: str, probs: Array, target: Index) -> None:
        self.name, self.probs, self.target = name, probs, target
        self.rank: Ranked | None = None
        if name != "balanced_accuracy":
            sign = -1.0 if name == "auprc" else 1.0
            self.rank = ranked_items(sign * probs[:, 1])

    def of(self, weight: Array) -> Influence:
        """The influence of the items, each counting by its weight (N,)."""
        truth = self.target == 1
        if self.rank is None:
            return self._balanced(weight)
        if self.name == "auprc":
            return precision_area(truth, weight, self.rank, trapezoid=True)
        return placed(self.probs[:, 1], weight * truth, weight * ~truth, rank=self.rank)

    def fewest(self, weight: Array) -> float:
        """The smallest number of items in a class that has any."""
        size = np.bincount(self.target, weight)
        return float(size[size > 0.0].min())

    def _balanced(self, weight: Array) -> Influence:
        hit = most_probable(self.probs) == self.target
        size = np.bincount(self.target, weight)
        found = np.bincount(self.target, weight * hit)
        present = size > 0.0
        recall = np.divide(found, size, out=np.zeros(len(size)), where=present)
        each = np.divide(1.0, size, out=np.zeros(len(size)), where=present)
        classes = int(present.sum())
        change = weight * (hit - recall[self.target]) * each[self.target] / classes
        return Influence(
            value=float(recall.sum() / classes),
            values=change,
            scale="logit",
            extreme=float(size[present].min()),
        )
