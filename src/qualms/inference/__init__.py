"""Confidence intervals of scores, from the influence of each item.

`influence_of(score, *arrays)` computes the contribution of each item, `interval_of`
turns it into an interval over items, clusters, samples and repeats of a row,
`influence_difference` compares two rows on the same items, `difference_of_samples` two
of different items, and `compare_rows` finds the rows of a table that may be the best.
"""

from qualms.inference._design import (
    Design,
    Spread,
    joined_clusters,
    sampling_design,
)
from qualms.inference._few import why_uncompared
from qualms.inference._seeds import (
    FEWEST_FREEDOM,
    ONE_RUN,
    RowSeeds,
    far_seeds,
    few_seeds,
    left_out_spread,
    reach,
    seed_spread,
)
from qualms.inference._shares import exact_ends, exact_interval, wilson_ends
from qualms.inference._step_down import ConfidenceSet
from qualms.inference.confidence_set import (
    RowComparison,
    compare_replicates,
    compare_rows,
    confidence_set,
    influence_replicates,
)
from qualms.inference.difference import (
    Bounded,
    WithInterval,
    difference_of_samples,
    influence_difference,
)
from qualms.inference.gap_comparison import ErrorRanges, compare_gaps
from qualms.inference.interval import (
    EXACT,
    FEW_SEEDS,
    ConfidenceInterval,
    far_apart,
    influence_of,
    interval_of,
    no_interval,
)
from qualms.inference.quantile import OrderStatistic, quantile_influence
from qualms.inference.two_samples import (
    PERMUTATIONS,
    TwoSamples,
    compare_classes,
    compare_values,
    holm,
)
from qualms.scores.conformal_sets import worst_stratum_influence
from qualms.scores.influence import Influence, mean_influence
from qualms.scores.proper import recall_influence
from qualms.scores.referral import referral_influence

__all__ = [
    "EXACT",
    "FEWEST_FREEDOM",
    "FEW_SEEDS",
    "ONE_RUN",
    "PERMUTATIONS",
    "Bounded",
    "ConfidenceInterval",
    "ConfidenceSet",
    "Design",
    "ErrorRanges",
    "Influence",
    "OrderStatistic",
    "RowComparison",
    "RowSeeds",
    "Spread",
    "TwoSamples",
    "WithInterval",
    "compare_classes",
    "compare_gaps",
    "compare_replicates",
    "compare_rows",
    "compare_values",
    "confidence_set",
    "difference_of_samples",
    "exact_ends",
    "exact_interval",
    "far_apart",
    "far_seeds",
    "few_seeds",
    "holm",
    "influence_difference",
    "influence_of",
    "influence_replicates",
    "interval_of",
    "joined_clusters",
    "left_out_spread",
    "mean_influence",
    "no_interval",
    "quantile_influence",
    "reach",
    "recall_influence",
    "referral_influence",
    "sampling_design",
    "seed_spread",
    "why_uncompared",
    "wilson_ends",
    "worst_stratum_influence",
]
