"""RETINA's scores as its released code computes them (Band et al., 2021).

Mirrors `eval_utils.py` of the diabetic retinopathy baselines in uncertainty-baselines
(read at 04f275f4) under scikit-learn 1.5, where an undefined AUROC raised an error.
Different from `qualms.scores`: ties go by item index (there by an unstable sort, here
made stable), curves carry an invented point at full referral, AUROC and AUPRC are read
at 101 places only, and undefined values count as 1, 0.5 or 0 instead of staying out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores.arguments import by_name, flags, labels, mean_probabilities, vector
from qualms.scores.decomposition import entropy
from qualms.scores.ranking import auprc_by_rule, auroc_by_rule
from qualms.scores.referral import check_is_name

# The release clips P(y=1) on both sides and takes its complement afterwards.
CLIP = 1e-15
BUCKETS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedReferralCurve:
    """A released referral curve, from nothing referred to everything referred."""

    name: str
    """accuracy, nll, auroc or auprc."""
    oracle: bool
    """True if referred items are counted as answered perfectly."""
    value: Array
    """(N + 1,) for accuracy and nll, (101,) for auroc and auprc."""

    @property
    def referred(self) -> Array:
        """Share of items referred at each point, from 0 to 1."""
        return np.arange(len(self.value)) / (len(self.value) - 1)

    @property
    def area(self) -> float:
        """Plain mean of all points, both ends included."""
        return float(np.mean(self.value))

    def at(self, tau: float) -> float:
        """Return the point nearest to a share `tau` referred."""
        if not 0.0 <= tau <= 1.0:
            raise ValueError(f"tau must lie in [0, 1], got {tau}")
        return float(self.value[round(tau * (len(self.value) - 1))])


def referral_curve(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
    oracle: bool = False,
) -> PublishedReferralCurve:
    """Return the released curve of accuracy, nll, auroc or auprc (Band et al., 2021).

    Accuracy and NLL have N + 1 points, the last an invented 1 or 0. AUROC and AUPRC
    have 101, point k over the int((100 - k) / 100 N) most certain items, the last an
    invented 1. From the certain end a retained set of one class, all correct, counts as
    1; the first set that is not (an empty one, too, when N < 100) ends that rule, and
    from then on an undefined AUROC counts as 0. The full set never has the benefit of
    the rule. The published areas are those with `oracle=True`.

    Args:
        name: accuracy, nll, auroc or auprc.
        probs: P(y=1) (N,), probabilities (N, 2) or draws (M, N, 2).
        target: (N,) 0 or 1.
        uncertainty: (N,); the entropy of `probs` by default. Ties keep item order.
        oracle: count referred items as perfect.

    >>> curve = referral_curve("accuracy", [0.1, 0.9, 0.6, 0.8], [0, 1, 0, 1])
    >>> curve.value
    array([0.75, 1.  , 1.  , 1.  , 1.  ])
    """
    check_is_name(name)
    prob, true = _binary(probs, target)
    if uncertainty is None:
        uncertainty = entropy(prob, class_axis=None)
    order = np.argsort(
        vector("uncertainty", uncertainty, length=len(prob)), kind="stable"
    )
    if name in ("auroc", "auprc"):
        value = _bucketed(name, prob[order], true[order], oracle)
    elif name == "accuracy":
        hits = (prob > 0.5) == (true == 1)
        value = _cumulated(hits[order].astype(np.float64), 1.0, oracle)
    elif name == "nll":
        value = _cumulated(_item_nll(prob, true)[order], 0.0, oracle)
    else:
        raise LookupError(
            f"no {name!r} in the released referral curves. "
            "Known: accuracy, nll, auroc, auprc."
        )
    return PublishedReferralCurve(name=name, oracle=oracle, value=value)


def balanced_referral_curve(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike | None = None,
    oracle: bool = False,
) -> PublishedReferralCurve:
    """Return the released curve on the "balanced" joint set (Band et al., 2021).

    Accuracy and NLL use `balanced_joint`. AUROC and AUPRC are taken on the plain joint
    set, a fault of the release that makes the published R-AUROC and R-AUPRC of its
    Joint and Balanced columns equal; for the intended values, index with
    `qualms.scores.balanced_joint` and call `qualms.scores.referral_curve`.

    `shifted` (N,) marks the shifted items, the rest is as in `referral_curve`.

    >>> probs, target, shifted = [0.1, 0.9, 0.3], [0, 1, 1], [False, False, True]
    >>> balanced_referral_curve(
    ...     name="accuracy", probs=probs, target=target, shifted=shifted
    ... ).value
    array([0.5 , 0.66666667, 1. , 1. , 1. ])
    """
    prob, true = _binary(probs, target)
    moved = flags("shifted", shifted, length=len(prob))
    if uncertainty is None:
        uncertainty = entropy(prob, class_axis=None)
    values = vector("uncertainty", uncertainty, length=len(prob))
    rows = np.arange(len(prob)) if name in ("auroc", "auprc") else balanced_joint(moved)
    return referral_curve(name, prob[rows], true[rows], values[rows], oracle)


def balanced_joint(shifted: ArrayLike, *, seed: int = 0) -> Index:
    """Return row indices of the released "balanced" joint set: 2 x the in-domain rows.

    All in-domain rows, the shifted rows floor(n_id / n_shifted) times, and the
    remainder without replacement from NumPy's old generator. Where the shifted rows are
    the more numerous this throws some of them away, and `qualms.scores.balanced_joint`
    repeats the in-domain ones instead. The release leaves the generator unseeded.

    >>> balanced_joint([False, False, False, False, True, True])
    array([0, 1, 2, 3, 4, 5, 4, 5])
    """
    moved = flags("shifted", shifted)
    if not moved.any():
        raise ValueError("shifted must mark at least one row, got none")
    inside, outside = np.flatnonzero(~moved), np.flatnonzero(moved)
    times, missing = divmod(len(inside), len(outside))
    rng = np.random.RandomState(seed)
    remainder = rng.choice(outside, size=missing, replace=False)
    return np.concatenate([inside, np.tile(outside, times), remainder])


@as_score(label="NLL (RETINA)", better="lower", high=np.inf)
def nll(probs: ArrayLike, target: ArrayLike) -> float:
    """Return mean negative log-likelihood with P(y=1) clipped to [1e-15, 1 - 1e-15].

    The values behind the released curves. They are clipped on both sides: an item that
    is certain and right costs 1e-15, not 0, which is all that `qualms.scores.nll`
    changes.

    >>> nll([0.5, 0.5], [0, 1])
    0.6931471805599453
    """
    return float(np.mean(_item_nll(*_binary(probs, target))))


@as_score(label="log loss (RETINA)", better="lower", high=np.inf)
def log_loss(probs: ArrayLike, target: ArrayLike, *, clip: float = CLIP) -> float:
    """Return released scalar NLL: the `log_loss` of scikit-learn at the paper's time.

    It cut P(y=1) to [1e-15, 1 - 1e-15] and so agrees with `nll`. Since version 1.5
    scikit-learn cuts at the float64 epsilon, 2.2e-16; pass that as `clip` to run the
    released code with a version of today. Only probabilities within 1e-15 of 0 or 1
    differ.

    >>> log_loss([0.5, 0.5], [0, 1])
    0.6931471805599453
    """
    prob, true = _binary(probs, target)
    return float(np.mean(_item_nll(prob, true, clip=clip)))


@as_score(label="AUPRC (RETINA)", better="higher")
@by_name
def auprc(*, score: ArrayLike, positive: ArrayLike) -> float:
    """Return trapezoid AUPRC; without a positive 0.5, as scikit-learn draws that curve.

    `score` and `positive` have shape (N,); the plain `auprc` is nan there.

    >>> auprc(score=[0.2, 0.7], positive=[False, False])
    0.5
    """
    truth = flags("positive", positive)
    values = vector("score", score, length=len(truth))
    return auprc_by_rule(values, truth, tie=0.0) if truth.any() else 0.5


def stderr(values: Iterable[float | None]) -> float:
    """Return standard error over runs as released: np.std with ddof 0, over sqrt(n).

    Undefined runs (None or nan) are left out; nan where none is left. An unbiased
    spread divides by n - 1.

    >>> stderr([1.0, 3.0, None])
    0.7071067811865475
    """
    runs = np.array([np.nan if run is None else run for run in values], np.float64)
    defined = runs[~np.isnan(runs)]
    if not defined.size:
        return float("nan")
    return float(np.std(defined) / np.sqrt(defined.size))


def _binary(probs: ArrayLike, target: ArrayLike) -> tuple[Array, Index]:
    mean = mean_probabilities(probs)
    if mean.shape[1] != 2:
        raise ValueError(
            f"probs must have two classes in RETINA's scores, got {mean.shape[1]}"
        )
    return mean[:, 1], labels("target", target, classes=2, length=len(mean))


def _item_nll(prob: Array, true: Index, clip: float = CLIP) -> Array:
    clipped = np.clip(prob, clip, 1.0 - clip)
    return -np.log(np.where(true == 1, clipped, 1.0 - clipped))


def _cumulated(values: Array, perfect: float, oracle: bool) -> Array:
    """Return means (N + 1,) over retained items; referred ones count `perfect`."""
    items = len(values)
    retained = np.arange(items, 0, -1)
    total = np.cumsum(values)[::-1]
    if oracle:
        curve = (total + perfect * (items - retained)) / items
    else:
        curve = total / retained
    return np.append(curve, perfect)


def _bucketed(name: str, prob: Array, true: Index, oracle: bool) -> Array:
    """Return (101,) AUROC or AUPRC of the most certain items, everything first."""
    items = len(prob)
    positive = true == 1
    hits = (prob > 0.5) == positive
    value = np.ones(BUCKETS + 1)
    one_class_rule = True
    for k in range(BUCKETS - 1, -1, -1):
        count = int(((BUCKETS - k) / BUCKETS) * items)
        one_class_rule &= k > 0 and _one_class_correct(positive[:count], hits[:count])
        if one_class_rule:
            continue
        area = _defined_area(name, prob[:count], positive[:count])
        value[k] = (count * area + (items - count)) / items if oracle else area
    return value


def _one_class_correct(positive: Flags, hits: Flags) -> bool:
    one_class = positive.all() or not positive.any()
    return bool(len(positive) > 0 and one_class and hits.all())


def _defined_area(name: str, prob: Array, positive: Flags) -> float:
    if len(positive) == 0:
        return 0.0
    if name == "auprc":
        return auprc(score=prob, positive=positive)
    two_classes = positive.any() and not positive.all()
    return auroc_by_rule(prob, positive, tie=0.0) if two_classes else 0.0
