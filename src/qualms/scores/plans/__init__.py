"""Scores as functions of how often each item counts, presorted once.

A plan maps whole weights (N,) to the score of the items in which item i appears
`weights[i]` times, in O(N) and tie exact. With all weights 1 it is the score of the
same name; a bootstrap hands it the `Copies` of a few replicates of `Resampling`, in
which plans of the same items share what they count.
"""

from qualms.scores._copies import Copies
from qualms.scores.plans._calibration import (
    adaptive_ece_plan,
    balanced_accuracy_plan,
    classwise_ece_plan,
    ece_plan,
    mcc_plan,
    smooth_ece_plan,
)
from qualms.scores.plans._plan import (
    Plan,
    edge_plan,
    mean_plan,
    ratio_plan,
    replay_plan,
)
from qualms.scores.plans._ranking import (
    auprc_plan,
    auroc_plan,
    average_precision_plan,
    fpr_at_tpr_plan,
    weighted_auroc_plan,
)
from qualms.scores.plans._selective import (
    augrc_plan,
    aurc_plan,
    eaurc_plan,
    referral_area_plan,
    risk_at_coverage_plan,
)

__all__ = [
    "Copies",
    "Plan",
    "adaptive_ece_plan",
    "augrc_plan",
    "auprc_plan",
    "aurc_plan",
    "auroc_plan",
    "average_precision_plan",
    "balanced_accuracy_plan",
    "classwise_ece_plan",
    "eaurc_plan",
    "ece_plan",
    "edge_plan",
    "fpr_at_tpr_plan",
    "mcc_plan",
    "mean_plan",
    "ratio_plan",
    "referral_area_plan",
    "replay_plan",
    "risk_at_coverage_plan",
    "smooth_ece_plan",
    "weighted_auroc_plan",
]
