"""Which plan gives which score: the presorted form of every score that has one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import (
    calibration,
    intervals,
    ood,
    plans,
    proper,
    ranking,
    regression,
    retrieval,
    selective,
)
from qualms.scores._arrays import Array
from qualms.scores._copies import Copies
from qualms.scores._labelled import labelled, top_label
from qualms.scores._weighted import counted
from qualms.scores.plans import Plan


def plan_of(score: Callable[..., float], *arrays: ArrayLike) -> Plan:
    """The fastest plan that gives `score(*arrays)`.

    Options bound by `functools.partial` are honoured. A score without a presorted form
    is called on the repeated items, which must lie on the first axis of every array.

    >>> plan_of(ranking.auroc, [0.2, 0.4, 0.3], [0, 1, 1])(np.array([1, 2, 0]))
    1.0
    """
    if isinstance(score, partial) and score.func in _PLANNED and not score.args:
        return _PLANNED[score.func](*arrays, **score.keywords)
    if score in _PLANNED:
        return _PLANNED[score](*arrays)
    return plans.replay_plan(score, *arrays)


def _accuracy(probs: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(proper.correct(probs, target))


def _nll(probs: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(proper.item_nll(probs, target))


def _brier(probs: ArrayLike, target: ArrayLike) -> Plan:
    mean, truth = labelled(probs, target)
    one_hot = truth[:, None] == np.arange(mean.shape[1])
    return plans.mean_plan(np.square(mean - one_hot).sum(axis=1))


def _balanced_accuracy(probs: ArrayLike, target: ArrayLike) -> Plan:
    right = proper.correct(probs, target)
    return plans.balanced_accuracy_plan(right, target)


def _mcc(probs: ArrayLike, target: ArrayLike) -> Plan:
    mean, truth = labelled(probs, target)
    return plans.mcc_plan(mean.argmax(axis=1), truth)


def _ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Plan:
    return plans.ece_plan(*top_label(probs, target), bins=bins)


def _adaptive_ece(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Plan:
    return plans.adaptive_ece_plan(*top_label(probs, target), bins=bins)


def _smooth_ece(probs: ArrayLike, target: ArrayLike) -> Plan:
    return plans.smooth_ece_plan(*top_label(probs, target))


# Repeating an item would make its copy its nearest neighbour, so the neighbours are
# sought once, among all items, and the verdicts are resampled.
def _recall_at_1(
    embedding: ArrayLike, target: ArrayLike, *, hits: ArrayLike | None = None
) -> Plan:
    if hits is None:
        hits = retrieval.retrieval_hits(embedding, target)
    return plans.mean_plan(hits)


def _r_auroc(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Plan:
    if hits is None:
        hits = retrieval.retrieval_hits(embedding, target)
    right = np.asarray(hits, dtype=np.float64)
    return plans.weighted_auroc_plan(uncertainty, 1 - right, right)


def _mixed_r_auroc(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    upstream: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Plan:
    mixed = retrieval.mixed_target(target, upstream)
    return _r_auroc(embedding, mixed, uncertainty, hits=hits)


def _mae(mean: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(np.abs(np.subtract(mean, target)))


def _rmse(mean: ArrayLike, target: ArrayLike) -> Plan:
    squared = plans.mean_plan(np.square(np.subtract(mean, target)))
    return Plan(squared.items, lambda copies: np.sqrt(squared.value(copies)))


def _gaussian_nll(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(regression.item_gaussian_nll(mean, var, target))


def _crps_gaussian(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(regression.item_crps_gaussian(mean, var, target))


def _crps_ensemble(draws: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(regression.item_crps_ensemble(draws, target))


def _regression_ece(
    mean: ArrayLike,
    var: ArrayLike,
    target: ArrayLike,
    *,
    alphas: Sequence[float] = regression.ALPHAS,
) -> Plan:
    nominal = 1 - np.asarray(alphas, dtype=np.float64)
    needed = regression.item_level(mean, var, target)
    # The cell of an item: how many of the nominal levels are too low to hold it.
    ascending = np.sort(nominal)
    cell = np.searchsorted(ascending, needed, side="left").astype(np.uint32)

    def value(copies: Copies) -> Array:
        counts = counted(copies.weights, cell, len(nominal) + 1)
        observed = np.cumsum(counts, axis=1)[:, :-1] / copies.total()[:, None]
        off: Array = np.abs(observed - ascending).mean(axis=1)
        return off

    return Plan(len(cell), value)


def _coverage(lower: ArrayLike, upper: ArrayLike, target: ArrayLike) -> Plan:
    return plans.mean_plan(intervals.covered(lower, upper, target))


def _interval_length(lower: ArrayLike, upper: ArrayLike) -> Plan:
    return _unbounded_mean(intervals.item_length(lower, upper))


def _interval_score(
    lower: ArrayLike, upper: ArrayLike, target: ArrayLike, *, alpha: float
) -> Plan:
    found = intervals.item_interval_score(lower, upper, target, alpha=alpha)
    return _unbounded_mean(found)


def _inverted_fraction(lower: ArrayLike, upper: ArrayLike) -> Plan:
    return plans.mean_plan(intervals.item_length(lower, upper) < 0)


def _unbounded_mean(values: Array) -> Plan:
    """A mean of values that may be infinite, as lengths are before calibration."""
    if np.isfinite(values).all():
        return plans.mean_plan(values)

    unbounded = np.isinf(values)
    bounded = np.where(unbounded, 0.0, values)
    ends = np.where(unbounded, values, 0.0)

    def value(copies: Copies) -> Array:
        drawn: Array = np.array([ends[row > 0].sum() for row in copies.weights])
        drawn += copies.mean(bounded)
        return drawn

    return Plan(len(values), value)


def _crop_rate(uncertainty: ArrayLike, cropped: ArrayLike) -> Plan:
    return plans.mean_plan(np.less(uncertainty, cropped))


def _scod_auroc(correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike) -> Plan:
    failed = np.logical_or(shifted, np.logical_not(correct))
    return plans.auroc_plan(uncertainty, failed)


def _scod_aurc(
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    *,
    cost: float = 1.0,
) -> Plan:
    wrong = np.logical_not(correct)
    return plans.aurc_plan(np.where(shifted, cost, wrong), uncertainty)


_PLANNED: Mapping[Callable[..., float], Callable[..., Plan]] = {
    proper.accuracy: _accuracy,
    proper.nll: _nll,
    proper.brier: _brier,
    proper.balanced_accuracy: _balanced_accuracy,
    proper.mcc: _mcc,
    calibration.ece: _ece,
    calibration.adaptive_ece: _adaptive_ece,
    calibration.classwise_ece: plans.classwise_ece_plan,
    calibration.smooth_ece: _smooth_ece,
    ranking.auroc: plans.auroc_plan,
    ranking.weighted_auroc: plans.weighted_auroc_plan,
    ranking.auprc: plans.auprc_plan,
    ranking.average_precision: plans.average_precision_plan,
    ranking.fpr_at_tpr: plans.fpr_at_tpr_plan,
    ood.ood_auroc: plans.auroc_plan,
    ood.ood_auprc: plans.auprc_plan,
    ood.ood_fpr95: plans.fpr_at_tpr_plan,
    ood.scod_auroc: _scod_auroc,
    ood.scod_aurc: _scod_aurc,
    selective.aurc: plans.aurc_plan,
    selective.eaurc: plans.eaurc_plan,
    selective.augrc: plans.augrc_plan,
    selective.risk_at_coverage: plans.risk_at_coverage_plan,
    retrieval.recall_at_1: _recall_at_1,
    retrieval.r_auroc: _r_auroc,
    retrieval.mixed_r_auroc: _mixed_r_auroc,
    retrieval.crop_rate: _crop_rate,
    regression.mae: _mae,
    regression.rmse: _rmse,
    regression.gaussian_nll: _gaussian_nll,
    regression.crps_gaussian: _crps_gaussian,
    regression.crps_ensemble: _crps_ensemble,
    regression.regression_ece: _regression_ece,
    intervals.coverage: _coverage,
    intervals.interval_length: _interval_length,
    intervals.interval_score: _interval_score,
    intervals.inverted_fraction: _inverted_fraction,
}
