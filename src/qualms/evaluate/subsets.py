"""Which items a table speaks of: all, in_domain, shifted, balanced, and groups."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.entry import Sample
from qualms.predictions import Predictions
from qualms.scores import balanced_joint

Index = NDArray[np.int64]


def subsets(
    predictions: Predictions, *, by_group: bool, seed: int
) -> Mapping[str, Index]:
    """Item indices by subset name; 'all' always comes first."""
    chosen: dict[str, Index] = {"all": np.arange(predictions.n)}
    shifted = predictions.get("shifted")
    if shifted is not None and shifted.any() and not shifted.all():
        chosen["in_domain"] = np.flatnonzero(~shifted)
        chosen["shifted"] = np.flatnonzero(shifted)
        chosen["balanced"] = balanced_joint(shifted, seed=seed)
    group = predictions.get("group")
    if by_group and group is not None:
        for name in np.unique(group):
            chosen[f"group={name}"] = np.flatnonzero(group == name)
    return chosen


def sample_of(predictions: Predictions, labels: Index | None = None) -> Sample:
    """The items of a file as one sample; strata are classes and sides of the shift."""
    base = np.zeros(predictions.n, np.int64) if labels is None else labels
    shifted = predictions.get("shifted")
    return Sample(
        n=predictions.n,
        cluster=predictions.get("cluster"),
        strata=base if shifted is None else base * 2 + shifted,
    )
