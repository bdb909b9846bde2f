"""Scores as functions of how often each item counts, presorted once.

A plan maps whole weights (N,) to the score of the items in which item i appears
`weights[i]` times, in O(N) and tie exact. With all weights 1 it is the score of the
same name; a bootstrap calls it with the weights of `Resampling`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from qualms.scores import _weighted as kernel
from qualms.scores import proper
from qualms.scores._arrays import Array, Index, flags, labels, vector
from qualms.scores._labelled import labelled
from qualms.scores._resample import Weights
from qualms.scores._smooth import fixed_point
from qualms.scores._ties import ranked
from qualms.scores.referral import referral_curve


@dataclass(frozen=True, slots=True)
class Plan:
    """A score of fixed items, waiting for their weights.

    >>> plan = mean_plan([1.0, 2.0, 6.0])
    >>> plan(np.array([1, 1, 1])), plan(np.array([0, 3, 1]))
    (3.0, 3.0)
    """

    items: int
    """How many items the plan was made for."""
    value: Callable[[Weights], float]
    """The score for checked weights; call the plan itself to have them checked."""

    def __call__(self, weights: NDArray[np.integer]) -> float:
        """The score of the items, each repeated by its weight; nan without any."""
        if weights.shape != (self.items,):
            raise ValueError(
                f"weights must have shape ({self.items},), got {weights.shape}"
            )
        if weights.dtype.kind not in "iu":
            raise TypeError(f"weights must be whole numbers, got {weights.dtype}")
        if weights.min() < 0:
            raise ValueError(f"weights must be 0 or more, got {weights.min()}")
        if not weights.any():
            return float("nan")
        return float(self.value(np.require(weights, np.int32, ["C", "W"])))


def mean_plan(values: ArrayLike) -> Plan:
    """The mean of per-item `values` (N,): accuracy, NLL, Brier score, coverage."""
    array = vector("values", values)
    return Plan(len(array), lambda weights: (weights @ array) / weights.sum())


def ratio_plan(numerator: ArrayLike, denominator: ArrayLike) -> Plan:
    """One sum over another, both (N,), such as the coverage among accepted items.

    Undefined, nan, where the denominator sums to 0.
    """
    below = vector("denominator", denominator)
    above = vector("numerator", numerator, length=len(below))

    def value(weights: Weights) -> float:
        return _share(float(weights @ above), float(weights @ below))

    return Plan(len(below), value)


def replay_plan(score: Callable[..., float], *arrays: ArrayLike) -> Plan:
    """Any score of arrays with items on the first axis, called on repeated items."""
    held = [np.asarray(array) for array in arrays]
    if not held or any(array.ndim == 0 for array in held):
        raise TypeError(
            "arrays must have items on their first axis; bind other arguments with "
            "functools.partial"
        )
    lengths = [len(array) for array in held]
    if len(set(lengths)) > 1:
        raise ValueError(
            "arrays must have the same items on their first axis, got lengths "
            f"{lengths}; pass draws (M, N) as (N, M) and transpose inside the score"
        )

    def value(weights: Weights) -> float:
        index = np.repeat(np.arange(len(weights)), weights)
        return _number(score(*(array[index] for array in held)))

    return Plan(lengths[0], value)


def auroc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auroc` of `score` (N,) for `positive` (N,)."""
    truth = flags("positive", positive)
    return weighted_auroc_plan(score, truth, ~truth)


def weighted_auroc_plan(
    score: ArrayLike, positive_weight: ArrayLike, negative_weight: ArrayLike
) -> Plan:
    """`weighted_auroc`: items are positive and negative by a share, all (N,)."""
    rank = vector("score", score)
    item, last = kernel.ascending(rank)
    positive = _at_least_zero("positive_weight", positive_weight, len(rank))[item]
    negative = _at_least_zero("negative_weight", negative_weight, len(rank))[item]

    def value(weights: Weights) -> float:
        return kernel.concordance(weights, item, last, positive, negative)

    return Plan(len(rank), value)


def auprc_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`auprc` (trapezoids) of `score` (N,) for `positive` (N,)."""

    def area(found: Array, count: Array) -> float:
        precision = np.concatenate([[1.0], found[1:] / count[1:]])
        return float(np.diff(found) @ (precision[1:] + precision[:-1]) / 2 / found[-1])

    return _detection_plan(score, positive, area)


def average_precision_plan(score: ArrayLike, positive: ArrayLike) -> Plan:
    """`average_precision` of `score` (N,) for `positive` (N,)."""

    def area(found: Array, count: Array) -> float:
        return float(np.diff(found) @ (found[1:] / count[1:]) / found[-1])

    return _detection_plan(score, positive, area)


def fpr_at_tpr_plan(
    score: ArrayLike, positive: ArrayLike, *, tpr: float = 0.95
) -> Plan:
    """`fpr_at_tpr` of `score` (N,) for `positive` (N,)."""
    if not 0.0 < tpr <= 1.0:
        raise ValueError(f"tpr must lie in (0, 1], got {tpr}")

    def rate(found: Array, count: Array) -> float:
        false = count - found
        return _share(false[np.argmax(found / found[-1] >= tpr)], false[-1])

    return _detection_plan(score, positive, rate)


def aurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`aurc` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    rank = vector("uncertainty", uncertainty)
    item, last = kernel.ascending(rank)
    ranked_risk = vector("risk", risk, length=len(rank))[item]

    def value(weights: Weights) -> float:
        harmonic = kernel.harmonic_numbers(int(weights.sum()).bit_length())
        return kernel.kept_risk(weights, item, last, ranked_risk, harmonic)

    return Plan(len(rank), value)


def eaurc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`eaurc`: the AURC above that of the same items ranked by their risk (N,)."""
    ours, best = aurc_plan(risk, uncertainty), aurc_plan(risk, risk)
    return Plan(ours.items, lambda weights: ours.value(weights) - best.value(weights))


def augrc_plan(risk: ArrayLike, uncertainty: ArrayLike) -> Plan:
    """`augrc` of `risk` (N,), most certain first by `uncertainty` (N,)."""

    def area(total: Array, count: Array) -> float:
        # The mean of a line over whole steps: trapezoids, and half the last step.
        trapezoids = np.diff(count) @ (total[1:] + total[:-1]) / 2
        return float((trapezoids + total[-1] / 2) / count[-1] ** 2)

    return _cumulative_plan(risk, vector("uncertainty", uncertainty), area)


def risk_at_coverage_plan(
    risk: ArrayLike, uncertainty: ArrayLike, *, coverage: float = 0.8
) -> Plan:
    """`risk_at_coverage` of `risk` (N,), most certain first by `uncertainty` (N,)."""
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")

    def kept(total: Array, count: Array) -> float:
        retained = max(1, round(coverage * float(count[-1])))
        return float(np.interp(retained, count, total) / retained)

    return _cumulative_plan(risk, vector("uncertainty", uncertainty), kept)


def referral_area_plan(
    name: str,
    probs: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike | None = None,
) -> Plan:
    """The `area` of `referral_curve(name, probs, target, uncertainty)`.

    Accuracy, NLL and AUROC are presorted; the other curves are made anew every time.
    """
    mean, truth = labelled(probs, target)
    doubt = entr(mean).sum(axis=1) if uncertainty is None else uncertainty
    if name == "accuracy":
        return aurc_plan(proper.correct(mean, truth), doubt)
    if name == "nll":
        return aurc_plan(proper.item_nll(mean, truth), doubt)
    if name == "auroc" and mean.shape[1] == 2:
        return _auroc_area_plan(mean[:, 1], truth, vector("uncertainty", doubt))
    curve = partial(referral_curve, name)
    return replay_plan(lambda *arrays: curve(*arrays).area, mean, truth, doubt)


def ece_plan(confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15) -> Plan:
    """`ece` of the top label: its probability and whether it is right, both (N,)."""
    claim, gap = _claims(confidence, correct)
    return _binned_plan(claim[None], gap[None], bins)


def classwise_ece_plan(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Plan:
    """`classwise_ece` of `probs` (N, C) for `target` (N,)."""
    claim, truth = labelled(probs, target)
    gap = claim - (truth[:, None] == np.arange(claim.shape[1]))
    return _binned_plan(claim.T, gap.T, bins)


def adaptive_ece_plan(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15
) -> Plan:
    """`adaptive_ece` of the top label: its probability and whether it is right."""
    claim, gap = _claims(confidence, correct)
    _check_bins(bins)

    def off(total: Array, count: Array) -> float:
        edges = np.linspace(0.0, count[-1], bins + 1)
        return float(np.abs(np.diff(np.interp(edges, count, total))).sum() / count[-1])

    return _cumulative_plan(gap, claim, off)


def smooth_ece_plan(confidence: ArrayLike, correct: ArrayLike) -> Plan:
    """`smooth_ece` of the top label; tens of milliseconds a call, whatever N is."""
    claim, gap = _claims(confidence, correct)
    return Plan(
        len(claim), lambda weights: fixed_point(claim, weights * gap / weights.sum())
    )


def balanced_accuracy_plan(correct: ArrayLike, target: ArrayLike) -> Plan:
    """`balanced_accuracy`: the mean recall (N,) over the classes that have weight."""
    hit = flags("correct", correct).astype(np.float64)
    truth, classes = _classes("target", target, len(hit))
    one = np.ones(len(hit))

    def value(weights: Weights) -> float:
        size = kernel.binned(weights, truth, one, classes)
        found = kernel.binned(weights, truth, hit, classes)
        return float(np.mean(found[size > 0] / size[size > 0]))

    return Plan(len(hit), value)


def mcc_plan(predicted: ArrayLike, target: ArrayLike) -> Plan:
    """`mcc` of the predicted and true classes (N,)."""
    truth, true_classes = _classes("target", target, None)
    guess, guessed_classes = _classes("predicted", predicted, len(truth))
    classes = max(true_classes, guessed_classes)
    hit, one = (truth == guess).astype(np.float64), np.ones(len(truth))

    def value(weights: Weights) -> float:
        items = float(weights.sum())
        true = kernel.binned(weights, truth, one, classes)
        said = kernel.binned(weights, guess, one, classes)
        spread = (items**2 - true @ true) * (items**2 - said @ said)
        return _share(items * (weights @ hit) - true @ said, float(np.sqrt(spread)))

    return Plan(len(truth), value)


def _detection_plan(
    score: ArrayLike, positive: ArrayLike, value: Callable[[Array, Array], float]
) -> Plan:
    """`value(found, count)` of the positives among the highest scores; nan if none."""

    def defined(found: Array, count: Array) -> float:
        return value(found, count) if found[-1] > 0 else np.nan

    highest_first = -vector("score", score)
    truth = flags("positive", positive, length=len(highest_first))
    return _cumulative_plan(truth, highest_first, defined)


def _cumulative_plan(
    summand: ArrayLike, rank: Array, value: Callable[[Array, Array], float]
) -> Plan:
    """`value(total, count)` of the sums of `summand` up to each tie group."""
    item, last = kernel.ascending(rank)
    ranked_summand = vector("risk", summand, length=len(rank))[item]

    def at(weights: Weights) -> float:
        total, count = kernel.cumulative(weights, item, last, ranked_summand)
        return value(total, count)

    return Plan(len(rank), at)


def _binned_plan(claim: Array, gap: Array, bins: int) -> Plan:
    """Mean over the K rows of `claim` and `gap` (K, N) of the binned absolute gap."""
    _check_bins(bins)
    cell = np.minimum((claim * bins).astype(np.int64, order="C"), bins - 1)
    gap = np.ascontiguousarray(gap)

    def value(weights: Weights) -> float:
        rows = zip(cell, gap, strict=True)
        off = sum(np.abs(kernel.binned(weights, *row, bins)).sum() for row in rows)
        return float(off / (len(cell) * weights.sum()))

    return Plan(claim.shape[1], value)


def _auroc_area_plan(score: Array, positive: Index, uncertainty: Array) -> Plan:
    item, last = kernel.ascending(uncertainty)
    order, start = ranked(score)
    level = np.empty(len(score), dtype=np.int64)
    level[order] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    truth, ranked_level = (positive == 1)[item], level[item]

    def value(weights: Weights) -> float:
        ends, count = kernel.kept_auroc(weights, item, last, truth, ranked_level)
        curve = np.interp(np.arange(1.0, count[-1] + 1.0), count, ends)
        defined = curve[~np.isnan(curve)]
        return _share(defined.sum(), defined.size)

    return Plan(len(score), value)


def _at_least_zero(name: str, values: ArrayLike, length: int) -> Array:
    array = vector(name, values, length=length)
    if array.min() < 0.0:
        row = int(np.argmax(array < 0.0))
        raise ValueError(f"{name} must not be negative, row {row} is {array[row]}")
    return array


def _claims(confidence: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """Confidence (N,) and how far it lies above being right."""
    claim = vector("confidence", confidence)
    if claim.min() < 0.0 or claim.max() > 1.0:
        row = int(np.argmax((claim < 0.0) | (claim > 1.0)))
        raise ValueError(f"confidence must lie in [0, 1], row {row} is {claim[row]}")
    return claim, claim - flags("correct", correct, length=len(claim))


def _classes(name: str, values: ArrayLike, length: int | None) -> tuple[Index, int]:
    """Classes 0, 1, ... (N,) and how many there may be."""
    classes = max(0, int(vector(name, values, length=length).max())) + 1
    return labels(name, values, classes=classes), classes


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole != 0.0 else float("nan")


def _number(value: object) -> float:
    if isinstance(value, float | int | np.number):
        return float(value)
    raise TypeError(
        f"the score must return one number, got {type(value).__name__}; wrap it in a "
        "function that reads the number out"
    )
