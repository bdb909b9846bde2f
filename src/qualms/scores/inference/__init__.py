"""How sure a score is: intervals from the influence of each item.

`influence_of(score, *arrays)` says what each item contributes, `interval_of` turns it
into an interval over items, clusters, samples and repeats of a row.
"""

from qualms.scores.inference._design import Design, sampling_design
from qualms.scores.inference._influence import Influence, mean_influence
from qualms.scores.inference._known import influence_of
from qualms.scores.inference.interval import (
    ConfidenceInterval,
    interval_of,
    no_interval,
)

__all__ = [
    "ConfidenceInterval",
    "Design",
    "Influence",
    "influence_of",
    "interval_of",
    "mean_influence",
    "no_interval",
    "sampling_design",
]
