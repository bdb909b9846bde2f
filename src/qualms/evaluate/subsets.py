"""Which items a table speaks of: all, in_domain, shifted, balanced, and groups."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import rebalanced_rows
from qualms.predictions import Predictions
from qualms.scores import balanced_joint
from qualms.scores.inference import Design, sampling_design

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


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


def design_of(predictions: Predictions, *kinds: Flags | None) -> Design:
    """How the items of a file were drawn: in-domain and shifted ones apart.

    `kinds` tell further samples apart, such as upstream and downstream items.
    """
    sample = np.zeros(predictions.n, np.int64)
    for kind in (predictions.get("shifted"), *kinds):
        if kind is not None:
            sample = 2 * sample + kind
    return sampling_design(
        predictions.n, sample=sample, cluster=predictions.get("cluster")
    )


def rebalanced(group: NDArray[Any], shifted: Flags, *, seed: int = 0) -> Index | None:
    """Shifted rows whose groups have the in-domain proportions (Band et al., D.5).

    None where a group has no shifted row.

    >>> group = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> drawn = group[rebalanced(group, np.arange(8) >= 4)]
    >>> np.bincount(drawn)
    array([7500, 2500])
    """
    names, counts = np.unique(group[~shifted], return_counts=True)
    rows = np.flatnonzero(shifted)
    if not np.isin(names, group[rows]).all():
        return None
    shares = {
        name.item(): int(count) for name, count in zip(names, counts, strict=True)
    }
    return rows[rebalanced_rows(group[rows], shares=shares, seed=seed)]
