"""How sure a score is: bootstrap replicates and intervals over items.

Items are drawn with replacement, within strata and by clusters where given, and every
score is computed on the same replicates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import calibration, ood, plans, proper, ranking, retrieval, selective
from qualms.scores._arrays import Array
from qualms.scores._labelled import labelled, top_label
from qualms.scores._resample import Resampling
from qualms.scores.plans import Plan

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A percentile interval over bootstrap replicates."""

    low: float
    high: float
    undefined: float
    """Share of the replicates in which the score was undefined, left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score with its bootstrap interval."""

    value: float
    low: float
    high: float
    undefined: float
    """Share of the replicates in which the score was undefined, left out."""


def bootstrap(
    plans: Mapping[str, Plan],
    resampling: Resampling,
    *,
    draws: int = 1000,
    progress: Progress | None = None,
) -> dict[str, Array]:
    """(draws,) replicates of every plan, all on the weights of the same replicates.

    `progress(done, draws)` is called after every replicate. Where a score is undefined
    (one class only) the replicate is nan.

    >>> from qualms.scores.plans import mean_plan
    >>> plans = {"accuracy": mean_plan([1, 0, 1, 1])}
    >>> bootstrap(plans, Resampling(4, seed=1), draws=3)["accuracy"].shape
    (3,)
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    for name, plan in plans.items():
        if plan.items != resampling.n:
            raise ValueError(
                f"plan {name!r} is for {plan.items} items, the resampling for "
                f"{resampling.n}; make both from the same file"
            )
    samples = {name: np.empty(draws) for name in plans}
    for replicate in range(draws):
        weights = resampling.weights(replicate)
        for name, plan in plans.items():
            samples[name][replicate] = plan(weights)
        if progress is not None:
            progress(replicate + 1, draws)
    return samples


def percentile_interval(samples: ArrayLike, *, level: float = 0.95) -> Interval:
    """The central `level` of bootstrap `samples` (draws,) (Efron, 1979).

    Undefined replicates (nan) are left out and their share is stated; the interval is
    nan where none is left.

    >>> percentile_interval(np.arange(101.0), level=0.5)
    Interval(low=25.0, high=75.0, undefined=0.0)
    """
    tail = (1.0 - check_level(level)) / 2.0
    array = np.asarray(samples, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"samples must have shape (draws,), at least one draw, got {array.shape}"
        )
    defined = array[~np.isnan(array)]
    undefined = 1.0 - defined.size / array.size
    if not defined.size:
        return Interval(low=np.nan, high=np.nan, undefined=undefined)
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(low=float(low), high=float(high), undefined=undefined)


def bootstrap_interval(
    score: Callable[..., float],
    *arrays: ArrayLike,
    strata: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """`score(*arrays)` with its bootstrap interval over the items.

    Items lie on the first axis of every array. Options of a score are bound beforehand,
    `functools.partial(fpr_at_tpr, tpr=0.8)`. Most classification, ranking, selective
    and retrieval scores are presorted and cost O(N) per draw; any other function is
    called on the resampled arrays. For a progress report, call `bootstrap` with
    `plan_of(score, *arrays)`.

    >>> bootstrap_interval(np.mean, [2.0, 2.0, 2.0], draws=5)
    Estimate(value=2.0, low=2.0, high=2.0, undefined=0.0)
    """
    plan = plan_of(score, *arrays)
    resampling = Resampling(plan.items, strata=strata, cluster=cluster, seed=seed)
    samples = bootstrap({"score": plan}, resampling, draws=draws)["score"]
    interval = percentile_interval(samples, level=level)
    return Estimate(
        value=float(score(*arrays)),
        low=interval.low,
        high=interval.high,
        undefined=interval.undefined,
    )


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


def check_level(level: float) -> float:
    """`level`, refused unless it lies strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")
    return level


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
    selective.aurc: plans.aurc_plan,
    selective.eaurc: plans.eaurc_plan,
    selective.augrc: plans.augrc_plan,
    selective.risk_at_coverage: plans.risk_at_coverage_plan,
    retrieval.recall_at_1: _recall_at_1,
    retrieval.r_auroc: _r_auroc,
    retrieval.mixed_r_auroc: _mixed_r_auroc,
}
