"""Referral curves: the score of the items kept when the least certain are referred.

Band et al. (2021) send the most uncertain patients to an expert and score the rest. The
curves here are exact at every threshold; the 101-point grid of the released code is
`qualms.scores.as_published.retina.referral_curve`.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._arrays import FLOOR, at_class, labelled, most_probable, vector
from qualms.scores._referral_kernels import (
    auprc_at_ends,
    auroc_at_ends,
    balanced_at_ends,
    kept_auroc,
)
from qualms.scores.decomposition import entropy
from qualms.scores.resampling import Copies, Plan, Weights, replay_plan
from qualms.scores.selective import aurc_plan, kept_means
from qualms.scores.ties import Ranked, levels, ranked_items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralCurve:
    """A score of the retained items, for every number of items referred."""

    name: str
    """What is scored: accuracy, nll, auroc, auprc or balanced_accuracy."""
    oracle: bool
    """Whether referred items are counted as answered perfectly."""
    value: Array
    """(N,) `value[i]` after referring the i most uncertain items; nan: undefined."""

    @property
    def referred(self) -> Array:
        """(N,) the share of items referred: i / N for i = 0..N-1."""
        return np.arange(len(self.value)) / len(self.value)

    @property
    def defined(self) -> float:
        """Share of the curve that is defined: what `area` covers."""
        return float(np.mean(~np.isnan(self.value)))

    @property
    def area(self) -> float:
        """Mean over the defined values; nan where none is."""
        defined = self.value[~np.isnan(self.value)]
        return float(np.mean(defined)) if defined.size else float("nan")

    def at(self, tau: float) -> float:
        """The score with a share `tau` referred, N - round(tau N) items retained."""
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
    """The score `name` of the retained items after every referral (Band et al., 2021).

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
        oracle: count referred items as perfect, so the curve tells of model and expert
            together.

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
    kept = kept_score(mean, true, rank)
    value = _with_oracle(name, kept) if oracle else kept
    return ReferralCurve(name=name, oracle=oracle, value=value[::-1].copy())


def referral_area_plan(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
) -> Plan:
    """The `area` of `referral_curve(name, probs, target, uncertainty)`.

    Accuracy, NLL and AUROC are presorted; other curves are computed anew every time.
    """
    _find(name)
    mean, truth = labelled(probs, target)
    ranks = entropy(mean) if uncertainty is None else uncertainty
    if name == "accuracy":
        return aurc_plan(_hits(mean, truth), ranks)
    if name == "nll":
        return aurc_plan(_item_nll(mean, truth), ranks)
    if name == "auroc" and mean.shape[1] == 2:
        return _auroc_area_plan(mean[:, 1], truth, vector("uncertainty", ranks))
    curve = partial(referral_curve, name)
    return replay_plan(lambda *arrays: curve(*arrays).area, mean, truth, ranks)


KeptScore = Callable[[Array, Index, Ranked], Array]


def check_is_name(name: object) -> None:
    """Refuse an array where the name of a score belongs: arguments are swapped."""
    if not isinstance(name, str):
        raise TypeError(
            "the name of the score comes first, as in "
            "referral_curve('accuracy', probs, target); got "
            f"{type(name).__name__} for it"
        )


def _find(name: str) -> KeptScore:
    known = _KEPT_SCORES
    check_is_name(name)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise LookupError(
            f"no {name!r} in referral curves.{hint} Known: {', '.join(known)}."
        )
    return known[name]


def _with_oracle(name: str, kept: Array) -> Array:
    items = len(kept)
    retained = np.arange(1, items + 1)
    perfect = 0.0 if name == "nll" else 1.0
    return (retained * kept + (items - retained) * perfect) / items


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


def _auroc_area_plan(score: Array, positive: Index, uncertainty: Array) -> Plan:
    item, first = ranked_items(uncertainty)
    last = np.zeros(len(item), dtype=np.bool_)
    last[first[1:] - 1] = True
    truth, level = (positive == 1)[item], levels(ranked_items(score))[item]

    def one(weights: Weights) -> float:
        ends, count = kept_auroc(weights, item, last, truth, level)
        if not count.size:
            return float("nan")
        curve = np.interp(np.arange(1.0, count[-1] + 1.0), count, ends)
        defined = curve[~np.isnan(curve)]
        return float(defined.mean()) if defined.size else float("nan")

    def value(copies: Copies) -> Array:
        return np.array([one(row) for row in copies.weights])

    return Plan(len(score), value)


def _fill(ends: Array, rank: Ranked) -> Array:
    """(N,) values of every prefix: `ends` where a tie group ends, linear inside."""
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
