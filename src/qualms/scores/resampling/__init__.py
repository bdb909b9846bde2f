"""Bootstrap over items: weights, plans, replicates, intervals and comparisons.

`Resampling` says how often each item counts in a replicate, a `Plan` gives a score for
such weights, and `bootstrap` evaluates many plans on the same replicates. Plans of
several samples, such as validation and test items, take their own items from the
replicate by `Copies.of(index)`, and keep what they have in common in `Copies.shared`.
"""

from qualms.scores.resampling._bootstrap import (
    Difference,
    Estimate,
    Interval,
    bootstrap,
    bootstrap_interval,
    check_level,
    paired_difference,
    percentile_interval,
)
from qualms.scores.resampling._cells import Cells, Copies, ranked_cells
from qualms.scores.resampling._kernels import (
    binned,
    concordance,
    counted,
    harmonic_numbers,
    kept_risk,
    precision_areas,
    trapezoid_risk,
    undetected_risk,
)
from qualms.scores.resampling._plan import (
    Plan,
    edge_plan,
    mean_of,
    mean_plan,
    plan_of,
    ratio_plan,
    replay_plan,
    risk_cells,
    share,
)
from qualms.scores.resampling._weights import Resampling, Weights

__all__ = [
    "Cells",
    "Copies",
    "Difference",
    "Estimate",
    "Interval",
    "Plan",
    "Resampling",
    "Weights",
    "binned",
    "bootstrap",
    "bootstrap_interval",
    "check_level",
    "concordance",
    "counted",
    "edge_plan",
    "harmonic_numbers",
    "kept_risk",
    "mean_of",
    "mean_plan",
    "paired_difference",
    "percentile_interval",
    "plan_of",
    "precision_areas",
    "ranked_cells",
    "ratio_plan",
    "replay_plan",
    "risk_cells",
    "share",
    "trapezoid_risk",
    "undetected_risk",
]
