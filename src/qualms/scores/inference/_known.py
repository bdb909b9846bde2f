"""Which influence belongs to which score."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags
from qualms.scores import calibration as errors
from qualms.scores import (
    conformal,
    conformal_sets,
    gallery,
    human,
    intervals,
    multiclass,
    ood,
    proper,
    ranking,
    regression,
    retrieval,
    selective,
)
from qualms.scores._about import about
from qualms.scores._arrays import flags, labelled, vector
from qualms.scores.inference import (
    _classes,
    _ranking,
    _selective,
    calibration,
)
from qualms.scores.inference._influence import (
    SQUARES,
    Influence,
    mean_influence,
    undefined,
    with_enough_errors,
)
from qualms.scores.ties import is_less

Makes = Callable[..., Influence]


def influence_of(score: Callable[..., Any], *arrays: ArrayLike) -> Influence | None:
    """The influence of every item on `score(*arrays)`, or None where none is known.

    Options bound by `functools.partial` are honoured, as in `plan_of`.

    >>> influence_of(ranking.auroc, [0.1, 0.4, 0.3, 0.8], [0, 0, 1, 1]).value
    0.75
    """
    options: Mapping[str, Any] = {}
    function = score
    if isinstance(score, partial) and not score.args:
        function, options = score.func, score.keywords
    found = _KNOWN.get(function)
    return None if found is None else found(*arrays, **options)


def _mean_of(score: Callable[..., Any], values: Callable[..., ArrayLike]) -> Makes:
    """The influence on a `score` that is the mean of per-item `values(...)`."""
    record = about(score)

    def made(*arrays: ArrayLike, **options: Any) -> Influence:
        return mean_influence(values(*arrays, **options), about=record)

    return made


def _nll(probs: ArrayLike, target: ArrayLike) -> Influence:
    # The bound of 34.54 nats is that of rounding; the scale is that of a positive mean.
    found = mean_influence(proper.item_nll(probs, target))
    return _of_errors(found, probs, target)


def _brier(probs: ArrayLike, target: ArrayLike) -> Influence:
    found = mean_influence(_item_brier(probs, target), about=about(proper.brier))
    return _of_errors(found, probs, target)


def _of_errors(found: Influence, probs: ArrayLike, target: ArrayLike) -> Influence:
    """Wrong items carry most of the loss: with a handful of them its spread is luck."""
    right = proper.correct(probs, target)
    return with_enough_errors(found, int((~right).sum()), len(right))


def _item_brier(probs: ArrayLike, target: ArrayLike) -> Array:
    checked, truth = labelled(probs, target)
    square = np.einsum("nc,nc->n", checked, checked)
    likelihood = checked[np.arange(len(truth)), truth]
    distance: Array = np.maximum(square - 2.0 * likelihood + 1.0, 0.0)
    return distance


def _absolute(mean: ArrayLike, target: ArrayLike) -> Array:
    wanted = vector("target", target)
    return np.abs(vector("mean", mean, length=len(wanted)) - wanted)


def _pinball(prediction: ArrayLike, target: ArrayLike, *, level: float) -> Array:
    wanted = vector("target", target)
    short = wanted - vector("prediction", prediction, length=len(wanted))
    return np.maximum(level * short, (level - 1.0) * short)


def _rmse(mean: ArrayLike, target: ArrayLike) -> Influence:
    """On the log scale a root is half the mean square."""
    found = mean_influence(np.square(_absolute(mean, target)))
    root = math.sqrt(found.value)
    if found.values is None or root == 0.0:
        return undefined("every error is 0", value=root)
    return dataclasses.replace(
        found, value=root, values=found.values / (2.0 * root), reason=SQUARES
    )


def _gaussian_nll(mean: ArrayLike, var: ArrayLike, target: ArrayLike) -> Influence:
    each = regression.item_gaussian_nll(mean, var, target)
    found = mean_influence(each, about=about(regression.gaussian_nll))
    return dataclasses.replace(found, reason=SQUARES)


def _interval_length(lower: ArrayLike, upper: ArrayLike) -> Influence:
    length = intervals.item_length(lower, upper)
    if not np.isfinite(length).all():
        return undefined("some intervals are unbounded", value=math.inf)
    # Inverted intervals have negative lengths.
    positive = None if length.min() > 0.0 else about(intervals.interval_length)
    return mean_influence(length, about=positive)


def _inverted(lower: ArrayLike, upper: ArrayLike) -> Flags:
    return intervals.item_length(lower, upper) < 0.0


def _hits(
    embedding: ArrayLike, target: ArrayLike, *, hits: ArrayLike | None = None
) -> ArrayLike:
    return retrieval.retrieval_hits(embedding, target) if hits is None else hits


def _hits_within(embedding: ArrayLike, target: ArrayLike, *, k: int = 5) -> Array:
    return gallery.hits_within(gallery.right_ranks(embedding, target), k)


def _r_auroc(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Influence:
    right = np.asarray(_hits(embedding, target, hits=hits), dtype=np.float64)
    return _ranking.weighted_auroc_influence(uncertainty, 1.0 - right, right)


def _mixed_r_auroc(
    embedding: ArrayLike,
    target: ArrayLike,
    uncertainty: ArrayLike,
    upstream: ArrayLike,
    *,
    hits: ArrayLike | None = None,
) -> Influence:
    mixed = retrieval.mixed_target(target, upstream)
    return _r_auroc(embedding, mixed, uncertainty, hits=hits)


def _crop_rate(uncertainty: ArrayLike, cropped: ArrayLike) -> Flags:
    whole = vector("uncertainty", uncertainty)
    return is_less(whole, vector("cropped", cropped, length=len(whole)))


def _ood_auprc(uncertainty: ArrayLike, shifted: ArrayLike) -> Influence:
    found = _ranking.auprc_influence(uncertainty, shifted)
    return _of_two_samples(found, shifted)


def _scod_auroc(
    correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike
) -> Influence:
    moved = flags("shifted", shifted)
    failed = moved | ~flags("correct", correct, length=len(moved))
    found = _ranking.auroc_influence(uncertainty, failed)
    if found.part is None:
        return found
    # A failure that is shifted comes from the other sample: three kinds of item.
    return dataclasses.replace(found, part=found.part + moved)


def _scod_aurc(
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    *,
    cost: float = 1.0,
) -> Influence:
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    found = _selective.aurc_influence(np.where(moved, cost, wrong), uncertainty)
    return _of_two_samples(found, shifted)


def _of_two_samples(found: Influence, shifted: ArrayLike) -> Influence:
    """Shifted and in-domain items were sought out apart, in fixed numbers."""
    part = flags("shifted", shifted).astype(np.int64)
    return dataclasses.replace(found, part=part)


def _prediction_rate(select: ArrayLike, threshold: float) -> Influence:
    return mean_influence(conformal.accept(select, threshold))


def _set_size(sets: ArrayLike) -> Influence:
    bound = float(np.shape(sets)[1])
    return mean_influence(conformal_sets.item_set_size(sets), bound=bound)


_KNOWN: Mapping[Callable[..., Any], Makes] = {
    proper.accuracy: _mean_of(proper.accuracy, proper.correct),
    proper.nll: _nll,
    proper.brier: _brier,
    proper.balanced_accuracy: _classes.balanced_accuracy_influence,
    proper.mcc: _classes.mcc_influence,
    errors.ece: calibration.ece_influence,
    errors.adaptive_ece: calibration.adaptive_ece_influence,
    errors.classwise_ece: calibration.classwise_ece_influence,
    errors.smooth_ece: calibration.smooth_ece_influence,
    regression.regression_ece: calibration.regression_ece_influence,
    ranking.auroc: _ranking.auroc_influence,
    ranking.weighted_auroc: _ranking.weighted_auroc_influence,
    ranking.auprc: _ranking.auprc_influence,
    ranking.average_precision: _ranking.average_precision_influence,
    ranking.fpr_at_tpr: _ranking.fpr_at_tpr_influence,
    ood.ood_auroc: _ranking.auroc_influence,
    ood.ood_auprc: _ood_auprc,
    ood.ood_fpr95: _ranking.fpr_at_tpr_influence,
    ood.scod_auroc: _scod_auroc,
    ood.scod_aurc: _scod_aurc,
    selective.aurc: _selective.aurc_influence,
    selective.eaurc: _selective.eaurc_influence,
    selective.augrc: _selective.augrc_influence,
    selective.risk_at_coverage: _selective.risk_at_coverage_influence,
    retrieval.recall_at_1: _mean_of(retrieval.recall_at_1, _hits),
    gallery.recall_at_k: _mean_of(gallery.recall_at_k, _hits_within),
    retrieval.r_auroc: _r_auroc,
    retrieval.mixed_r_auroc: _mixed_r_auroc,
    retrieval.crop_rate: _mean_of(retrieval.crop_rate, _crop_rate),
    human.human_alignment: _ranking.human_alignment_influence,
    regression.mae: _mean_of(regression.mae, _absolute),
    regression.rmse: _rmse,
    regression.gaussian_nll: _gaussian_nll,
    regression.pinball: _mean_of(regression.pinball, _pinball),
    regression.crps_gaussian: _mean_of(
        regression.crps_gaussian, regression.item_crps_gaussian
    ),
    regression.crps_ensemble: _mean_of(
        regression.crps_ensemble, regression.item_crps_ensemble
    ),
    intervals.coverage: _mean_of(intervals.coverage, intervals.covered),
    intervals.interval_length: _interval_length,
    intervals.interval_score: _mean_of(
        intervals.interval_score, intervals.item_interval_score
    ),
    intervals.inverted_fraction: _mean_of(intervals.inverted_fraction, _inverted),
    conformal.prediction_rate: _prediction_rate,
    multiclass.top_k_accuracy: _mean_of(
        multiclass.top_k_accuracy, multiclass.item_top_k
    ),
    multiclass.macro_f1: _classes.macro_f1_influence,
    multiclass.macro_auroc: _classes.macro_auroc_influence,
    conformal_sets.set_coverage: _mean_of(
        conformal_sets.set_coverage, conformal_sets.item_in_set
    ),
    conformal_sets.set_size: _set_size,
    conformal_sets.singleton_share: _mean_of(
        conformal_sets.singleton_share, conformal_sets.item_singleton
    ),
    conformal_sets.size_stratified_coverage: _classes.size_stratified_influence,
}
