"""Scores at a threshold: sensitivity, specificity, predictive values and more.

An item is called positive if its score is at or above the threshold. `called` (N,)
marks these items, and `positive` (N,) the items that are positive. Thresholds are
chosen on other items, or promise a rate for new ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores.arguments import by_name, flags, open_unit, vector
from qualms.scores.influence import (
    Exceedance,
    Influence,
    RateRatio,
    few_of_a_kind,
    mean_influence,
    undefined,
)
from qualms.scores.ranking import fpr_at_tpr, fpr_at_tpr_influence
from qualms.scores.ties import is_less, ranked_items

__all__ = [
    "called_positive",
    "called_share",
    "cost_threshold",
    "lr_negative",
    "lr_positive",
    "npv",
    "ppv",
    "sensitivity",
    "sensitivity_at_specificity",
    "specificity",
    "threshold_at_sensitivity",
    "threshold_at_specificity",
    "youden_threshold",
]


def called_positive(score: ArrayLike, threshold: float) -> Flags:
    """Return a mask (N,) of items with a `score` at or above `threshold`.

    A score below it by a rounding error (1e-12 of its size) counts as equal.

    >>> called_positive([0.2, 0.3, 0.9], 0.3)
    array([False,  True,  True])
    """
    if math.isnan(threshold):
        raise ValueError("threshold must be a number, got nan")
    values = vector("score", score)
    if math.isinf(threshold):
        return np.full(len(values), threshold < 0.0)
    return ~is_less(values, threshold)


@by_name
def threshold_at_sensitivity(
    *,
    score: ArrayLike,
    positive: ArrayLike,
    sensitivity: float,
    confidence: float | None = None,
) -> float:
    """Return the highest score that calls at least a share `sensitivity` of positives.

    With `confidence` the threshold holds for new items of the population, too: of n
    positives the k-th highest is chosen, with the least k for which a threshold that
    finds too few positives would have found so many with a probability of at most
    1 - `confidence` (an exact binomial tolerance limit). It is -inf, which calls all
    items, if the positives are too few for a promise.

    >>> threshold_at_sensitivity(
    ...     score=[0.1, 0.4, 0.6, 0.8], positive=[0, 1, 1, 1], sensitivity=0.6
    ... )
    0.6
    """
    values, truth = _score_and_truth(score, positive)
    open_unit("sensitivity", sensitivity)
    if not truth.any():
        raise ValueError("a sensitivity needs positive items, and there are none")
    highest = np.sort(values[truth])[::-1]
    rank = _least_rank(len(highest), sensitivity, confidence)
    return float(highest[rank - 1]) if rank <= len(highest) else -math.inf


@by_name
def threshold_at_specificity(
    *,
    score: ArrayLike,
    positive: ArrayLike,
    specificity: float,
    confidence: float | None = None,
) -> float:
    """Return the lowest score below which a share `specificity` of negatives lies.

    It is inf, which calls none, if no occurring score is high enough. With `confidence`
    it holds for new items, too, as in `threshold_at_sensitivity`.

    >>> threshold_at_specificity(
    ...     score=[0.1, 0.4, 0.6, 0.8], positive=[0, 0, 1, 0], specificity=0.6
    ... )
    0.6
    """
    values, truth = _score_and_truth(score, positive)
    open_unit("specificity", specificity)
    if truth.all():
        raise ValueError("a specificity needs negative items, and there are none")
    lowest = np.sort(values[~truth])
    rank = _least_rank(len(lowest), specificity, confidence)
    if rank > len(lowest):
        return math.inf
    above = values[is_less(np.full(len(values), lowest[rank - 1]), values)]
    return float(above.min()) if above.size else math.inf


@by_name
def youden_threshold(*, score: ArrayLike, positive: ArrayLike) -> float:
    """Return the score with the largest sensitivity + specificity (Youden, 1950).

    Of several such scores it is the highest.

    >>> youden_threshold(score=[0.1, 0.4, 0.6, 0.8], positive=[0, 0, 1, 1])
    0.6
    """
    _, truth = _score_and_truth(score, positive)
    if truth.all() or not truth.any():
        raise ValueError(
            "youden needs items of both kinds, positive and negative; state a threshold"
            " between 0 and 1 instead, or use validation items that have both"
        )
    negatives, positives = int((~truth).sum()), int(truth.sum())
    return cost_threshold(score=score, positive=positive, cost=negatives / positives)


@by_name
def cost_threshold(*, score: ArrayLike, positive: ArrayLike, cost: float) -> float:
    """Return the score where misses and false alarms cost least together.

    A missed positive item costs `cost` times as much as a negative one that is called.
    Of several such scores it is the highest; inf if it is cheapest to call none.

    >>> cost_threshold(score=[0.1, 0.4, 0.6, 0.8], positive=[0, 1, 0, 1], cost=5)
    0.4
    """
    values, truth = _score_and_truth(score, positive)
    if not (cost > 0.0 and math.isfinite(cost)):
        raise ValueError(f"cost must be a finite number above 0, got {cost}")
    order, start = ranked_items(values)
    below = np.concatenate([[0], np.cumsum(truth[order])])[start]
    alarms = (len(values) - start) - (below[-1] - below)
    total = cost * below + alarms
    # Costs that differ by a rounding error are equal.
    cheapest = np.flatnonzero(total <= total.min() * (1.0 + 1e-12))[-1]
    thresholds = np.append(values[order[start[:-1]]], math.inf)
    return float(thresholds[cheapest])


def item_called(called: ArrayLike) -> Flags:
    """Return a mask (N,) of called items; `called_share` is the mean."""
    return flags("called", called)


@as_score(label="Called positive", better="neither", items=item_called)
def called_share(called: ArrayLike) -> float:
    """Return the share of items (N,) that are called positive.

    >>> called_share([1, 1, 0, 0])
    0.5
    """
    return float(item_called(called).mean())


def item_sensitivity(called: ArrayLike, positive: ArrayLike) -> Array:
    """Return 1 or 0 (N,) for called and other positive items; nan for negative ones."""
    calls, truth = _calls_and_truth(called, positive)
    return np.where(truth, calls.astype(np.float64), np.nan)


def item_specificity(called: ArrayLike, positive: ArrayLike) -> Array:
    """Return 0 or 1 (N,) for called and other negative items; nan for positive ones."""
    calls, truth = _calls_and_truth(called, positive)
    return np.where(truth, np.nan, (~calls).astype(np.float64))


@as_score(label="Sensitivity", better="higher", items=item_sensitivity)
@by_name
def sensitivity(*, called: ArrayLike, positive: ArrayLike) -> float:
    """Return the share of the positive items that are called; nan without any.

    >>> sensitivity(called=[1, 1, 0, 0], positive=[1, 0, 1, 0])
    0.5
    """
    return _mean_of_defined(item_sensitivity(called, positive))


@as_score(label="Specificity", better="higher", items=item_specificity)
@by_name
def specificity(*, called: ArrayLike, positive: ArrayLike) -> float:
    """Return the share of the negative items that are not called; nan without any.

    >>> specificity(called=[1, 1, 0, 0], positive=[1, 0, 0, 0])
    0.6666666666666666
    """
    return _mean_of_defined(item_specificity(called, positive))


def _ppv_influence(
    called: ArrayLike, positive: ArrayLike, *, prevalence: float | None = None
) -> Influence:
    calls, truth = _calls_and_truth(called, positive)
    if prevalence is None:
        return _share_of(truth, calls)
    return _of_rates(calls, truth, partial(_chance, prevalence=prevalence))


@as_score(label="PPV", better="higher", influence=_ppv_influence)
@by_name
def ppv(
    *, called: ArrayLike, positive: ArrayLike, prevalence: float | None = None
) -> float:
    """Return the share of the called items that are positive.

    With `prevalence`, its value for this share of positive items, with the same
    sensitivity and specificity (Bayes). Undefined, nan, if no item is called, or, with
    `prevalence`, if items are of one kind.

    >>> (
    ...     ppv(called=[1, 1, 0, 0], positive=[1, 0, 1, 0]),
    ...     ppv(called=[1, 1, 0, 0], positive=[1, 0, 1, 0], prevalence=0.1),
    ... )
    (0.5, 0.1)
    """
    calls, truth = _calls_and_truth(called, positive)
    if prevalence is None:
        return _mean_of_defined(np.where(calls, truth.astype(np.float64), np.nan))
    return _chance(*_rates(calls, truth), prevalence=prevalence).value


def _npv_influence(
    called: ArrayLike, positive: ArrayLike, *, prevalence: float | None = None
) -> Influence:
    calls, truth = _calls_and_truth(called, positive)
    if prevalence is None:
        return _share_of(~truth, ~calls)
    return _of_rates(~calls, truth, partial(_other_chance, prevalence=prevalence))


@as_score(label="NPV", better="higher", influence=_npv_influence)
@by_name
def npv(
    *, called: ArrayLike, positive: ArrayLike, prevalence: float | None = None
) -> float:
    """Return the share of the items not called that are negative.

    `prevalence` is as in `ppv`. Undefined, nan, where every item is called, or, with
    `prevalence`, where items are of one kind.

    >>> (
    ...     npv(called=[1, 1, 0, 0], positive=[1, 0, 1, 0]),
    ...     npv(called=[1, 1, 0, 0], positive=[1, 0, 1, 0], prevalence=0.1),
    ... )
    (0.5, 0.9)
    """
    calls, truth = _calls_and_truth(called, positive)
    if prevalence is None:
        return _mean_of_defined(np.where(calls, np.nan, (~truth).astype(np.float64)))
    return _other_chance(*_rates(~calls, truth), prevalence=prevalence).value


def _lr_positive_influence(called: ArrayLike, positive: ArrayLike) -> Influence:
    calls, truth = _calls_and_truth(called, positive)
    return _of_rates(calls, truth, _ratio)


@as_score(label="LR+", better="higher", high=math.inf, influence=_lr_positive_influence)
@by_name
def lr_positive(*, called: ArrayLike, positive: ArrayLike) -> float:
    """Return the ratio of the rates at which positives and negatives are called.

    Sensitivity / (1 - specificity). Undefined, nan, where no negative item is called or
    items are of one kind.

    >>> lr_positive(called=[1, 1, 0, 0], positive=[1, 0, 1, 0])
    1.0
    """
    hits, alarms = _rates(*_calls_and_truth(called, positive))
    return hits / alarms if alarms > 0.0 else math.nan


def _lr_negative_influence(called: ArrayLike, positive: ArrayLike) -> Influence:
    calls, truth = _calls_and_truth(called, positive)
    return _of_rates(~calls, truth, _ratio)


@as_score(label="LR-", better="lower", high=math.inf, influence=_lr_negative_influence)
@by_name
def lr_negative(*, called: ArrayLike, positive: ArrayLike) -> float:
    """Return the ratio of the rates at which positives and negatives are not called.

    (1 - sensitivity) / specificity. Undefined, nan, where every negative item is called
    or items are of one kind.

    >>> lr_negative(called=[1, 1, 0, 0], positive=[1, 0, 1, 0])
    1.0
    """
    calls, truth = _calls_and_truth(called, positive)
    missed, cleared = _rates(~calls, truth)
    return missed / cleared if cleared > 0.0 else math.nan


def _sensitivity_at_specificity_influence(
    score: ArrayLike, positive: ArrayLike, *, specificity: float = 0.8
) -> Influence:
    values, truth = _score_and_truth(score, positive)
    missed = fpr_at_tpr_influence(-values, ~truth, tpr=specificity)
    if missed.values is None or not isinstance(missed.construction, Exceedance):
        return missed
    return dataclasses.replace(
        missed,
        value=1.0 - missed.value,
        values=-missed.values,
        construction=missed.construction._replace(complement=True),
    )


@as_score(
    label="Sensitivity at specificity",
    better="higher",
    influence=_sensitivity_at_specificity_influence,
)
@by_name
def sensitivity_at_specificity(
    *, score: ArrayLike, positive: ArrayLike, specificity: float = 0.8
) -> float:
    """Return the highest sensitivity of a threshold with this `specificity` or more.

    A threshold is a score that occurs, or one above all of them. The interval allows
    for the choice of the threshold on the same items. Undefined, nan, with positives
    or negatives only.

    >>> sensitivity_at_specificity(
    ...     score=[0.1, 0.4, 0.35, 0.8], positive=[0, 0, 1, 1], specificity=0.9
    ... )
    0.5
    """
    values, truth = _score_and_truth(score, positive)
    open_unit("specificity", specificity)
    return 1.0 - fpr_at_tpr(score=-values, positive=~truth, tpr=specificity)


def _score_and_truth(score: ArrayLike, positive: ArrayLike) -> tuple[Array, Flags]:
    values = vector("score", score)
    return values, flags("positive", positive, length=len(values))


def _calls_and_truth(called: ArrayLike, positive: ArrayLike) -> tuple[Flags, Flags]:
    calls = flags("called", called)
    return calls, flags("positive", positive, length=len(calls))


def _least_rank(items: int, share: float, confidence: float | None) -> int:
    """Return the rank of the item at the threshold; above `items` if there is none."""
    if confidence is None:
        return max(math.ceil(share * items * (1.0 - 1e-12)), 1)
    open_unit("confidence", confidence)
    ranks: Index = np.arange(1, items + 1)
    # Below the k-th item the population has too little with this probability.
    safe = bdtr(ranks - 1, items, share) >= confidence
    return int(ranks[safe][0]) if safe.any() else items + 1


def _mean_of_defined(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _rates(calls: Flags, truth: Flags) -> tuple[float, float]:
    """Return the shares of positive and of negative items that `calls` marks."""
    if truth.all() or not truth.any():
        return math.nan, math.nan
    return float(calls[truth].mean()), float(calls[~truth].mean())


def _share_of(hit: Flags, among: Flags) -> Influence:
    if not among.any():
        return undefined("there is no such item")
    return mean_influence(np.where(among, hit.astype(np.float64), np.nan))


class _OfRates(NamedTuple):
    """A score of two rates, of positive and of negative items, and its slopes."""

    value: float
    by_positive: float
    by_negative: float


def _ratio(positive: float, negative: float) -> _OfRates:
    if negative == 0.0:
        return _OfRates(math.inf, math.inf, -math.inf)
    return _OfRates(positive / negative, 1.0 / negative, -positive / negative**2)


def _chance(positive: float, negative: float, *, prevalence: float) -> _OfRates:
    """Return the share of positive items among the hits (Bayes)."""
    open_unit("prevalence", prevalence)
    true, false = positive * prevalence, negative * (1.0 - prevalence)
    if true + false == 0.0:
        return _OfRates(math.nan, math.nan, math.nan)
    slope = prevalence * (1.0 - prevalence) / (true + false) ** 2
    return _OfRates(true / (true + false), slope * negative, -slope * positive)


def _other_chance(positive: float, negative: float, *, prevalence: float) -> _OfRates:
    chance = _chance(positive, negative, prevalence=prevalence)
    return _OfRates(1.0 - chance.value, -chance.by_positive, -chance.by_negative)


def _of_rates(
    hit: Flags, truth: Flags, score: Callable[[float, float], _OfRates]
) -> Influence:
    """Return the influence on a score that depends on the ratio of rates of hits."""
    rates = _rates(hit, truth)
    at = score(*rates)
    if not math.isfinite(at.value):
        reason = "the rate that is divided by is 0, or items are of one kind"
        return undefined(reason)
    positive = np.where(truth, (hit - rates[0]) / truth.sum(), 0.0)
    negative = np.where(truth, 0.0, (hit - rates[1]) / (~truth).sum())
    chance = math.isfinite(score(1.0, 0.0).value)
    return Influence(
        value=at.value,
        values=at.by_positive * positive + at.by_negative * negative,
        scale="logit" if chance else "log",
        high=1.0 if chance else math.inf,
        part=truth.astype(np.int64),
        construction=RateRatio(hit, truth, lambda *ends: score(*ends).value),
        uncompared=few_of_a_kind(float(min(truth.sum(), (~truth).sum()))),
    )
