"""Scores: from arrays to numbers, tie exact, in float64.

The plain name is the correct score; where a paper's released code computes something
else, `qualms.scores.as_published.<paper>` has it under the same name. Uncertainty:
larger is less certain. Functions that take `probs` accept P(y=1) of shape (N,), class
probabilities (N, C), or draws (M, N, C), which they average.
"""

from qualms.scores import plans
from qualms.scores._about import About, Better, about
from qualms.scores._arrays import probabilities as mean_probabilities
from qualms.scores._planned import plan_of
from qualms.scores._resample import Resampling
from qualms.scores.active import al_improvement
from qualms.scores.aggregation import (
    aggregate_image,
    aggregate_patch,
    aggregate_threshold,
    background_share,
    patch_position,
    pooled_quantile,
    threshold_from_validation,
)
from qualms.scores.bootstrap import (
    Estimate,
    Interval,
    bootstrap,
    bootstrap_interval,
    percentile_interval,
)
from qualms.scores.calibration import (
    Reliability,
    adaptive_ece,
    classwise_ece,
    ece,
    reliability,
    smooth_ece,
)
from qualms.scores.comparison import (
    Difference,
    TieGroup,
    draws_needed,
    holm,
    paired_difference,
    tie_group,
)
from qualms.scores.conformal import (
    accept,
    conformal_offset,
    prediction_rate,
    selection_threshold,
    weighted_conformal_offset,
)
from qualms.scores.decomposition import Decomposition, decompose, entropy
from qualms.scores.distance import mean_neighbour_distance
from qualms.scores.human import Alignment, human_alignment, vote_entropy
from qualms.scores.intervals import (
    coverage,
    interval_length,
    interval_score,
    inverted_fraction,
)
from qualms.scores.maps import (
    UNCERTAINTY_TYPES,
    Statistics,
    UncertaintyMaps,
    sufficient_statistics,
    uncertainty_maps,
    uncertainty_type,
)
from qualms.scores.ood import (
    ood_auprc,
    ood_auroc,
    ood_fpr95,
    scod_aurc,
    scod_auroc,
)
from qualms.scores.overlap import dice, ged
from qualms.scores.plans import Plan
from qualms.scores.platt import (
    Platt,
    UncertaintyHistogram,
    ace,
    fit_platt,
    uncertainty_histogram,
)
from qualms.scores.proper import (
    accuracy,
    balanced_accuracy,
    brier,
    correct,
    item_nll,
    mcc,
    nll,
)
from qualms.scores.ranking import (
    PrecisionRecallCurve,
    RocCurve,
    auprc,
    auroc,
    average_precision,
    fpr_at_tpr,
    precision_recall_curve,
    roc_curve,
    weighted_auroc,
)
from qualms.scores.raters import (
    Agreement,
    Defined,
    mean_defined,
    ncc,
    rater_agreement,
    rater_variance,
)
from qualms.scores.recalibration import (
    Isotonic,
    Temperature,
    fit_isotonic,
    fit_temperature,
)
from qualms.scores.referral import ReferralCurve, referral_curve
from qualms.scores.regression import (
    Moments,
    crps_ensemble,
    crps_gaussian,
    gaussian_interval,
    gaussian_nll,
    mae,
    pinball,
    pool_gaussian,
    regression_ece,
    rmse,
)
from qualms.scores.retrieval import (
    crop_rate,
    mixed_r_auroc,
    mixed_target,
    nearest_neighbour,
    r_auroc,
    recall_at_1,
    retrieval_hits,
)
from qualms.scores.selective import (
    RiskCoverage,
    augrc,
    aurc,
    balanced_joint,
    coverage_at_risk,
    eaurc,
    risk_at_coverage,
    risk_coverage_curve,
)
from qualms.scores.threshold import ReferralThreshold, referral_threshold

__all__ = [
    "UNCERTAINTY_TYPES",
    "About",
    "Agreement",
    "Alignment",
    "Better",
    "Decomposition",
    "Defined",
    "Difference",
    "Estimate",
    "Interval",
    "Isotonic",
    "Moments",
    "Plan",
    "Platt",
    "PrecisionRecallCurve",
    "ReferralCurve",
    "ReferralThreshold",
    "Reliability",
    "Resampling",
    "RiskCoverage",
    "RocCurve",
    "Statistics",
    "Temperature",
    "TieGroup",
    "UncertaintyHistogram",
    "UncertaintyMaps",
    "about",
    "accept",
    "accuracy",
    "ace",
    "adaptive_ece",
    "aggregate_image",
    "aggregate_patch",
    "aggregate_threshold",
    "al_improvement",
    "augrc",
    "auprc",
    "aurc",
    "auroc",
    "average_precision",
    "background_share",
    "balanced_accuracy",
    "balanced_joint",
    "bootstrap",
    "bootstrap_interval",
    "brier",
    "classwise_ece",
    "conformal_offset",
    "correct",
    "coverage",
    "coverage_at_risk",
    "crop_rate",
    "crps_ensemble",
    "crps_gaussian",
    "decompose",
    "dice",
    "draws_needed",
    "eaurc",
    "ece",
    "entropy",
    "fit_isotonic",
    "fit_platt",
    "fit_temperature",
    "fpr_at_tpr",
    "gaussian_interval",
    "gaussian_nll",
    "ged",
    "holm",
    "human_alignment",
    "interval_length",
    "interval_score",
    "inverted_fraction",
    "item_nll",
    "mae",
    "mcc",
    "mean_defined",
    "mean_neighbour_distance",
    "mean_probabilities",
    "mixed_r_auroc",
    "mixed_target",
    "ncc",
    "nearest_neighbour",
    "nll",
    "ood_auprc",
    "ood_auroc",
    "ood_fpr95",
    "paired_difference",
    "patch_position",
    "percentile_interval",
    "pinball",
    "plan_of",
    "plans",
    "pool_gaussian",
    "pooled_quantile",
    "precision_recall_curve",
    "prediction_rate",
    "r_auroc",
    "rater_agreement",
    "rater_variance",
    "recall_at_1",
    "referral_curve",
    "referral_threshold",
    "regression_ece",
    "reliability",
    "retrieval_hits",
    "risk_at_coverage",
    "risk_coverage_curve",
    "rmse",
    "roc_curve",
    "scod_aurc",
    "scod_auroc",
    "selection_threshold",
    "smooth_ece",
    "sufficient_statistics",
    "threshold_from_validation",
    "tie_group",
    "uncertainty_histogram",
    "uncertainty_maps",
    "uncertainty_type",
    "vote_entropy",
    "weighted_auroc",
    "weighted_conformal_offset",
]
