"""Which items a table speaks of: all, in_domain, shifted, balanced, and groups."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Flags, Index
from qualms.inference import Design, sampling_design
from qualms.predictions import Predictions
from qualms.scores import balanced_joint

_WORDS = {
    "all": "every item",
    "in_domain": "items not marked as shifted",
    "shifted": "items marked as shifted",
    "balanced": "as many in-domain as shifted items; the fewer ones are repeated",
}


def subset_words(subset: str) -> str:
    """Return a description of the items of a subset.

    >>> subset_words("group=clinic A")
    "items whose array 'group' says 'clinic A'"
    """
    name = subset.removeprefix("group=")
    return _WORDS.get(subset) or f"items whose array 'group' says {name!r}"


def subsets(
    predictions: Predictions, *, by_group: bool, seed: int
) -> Mapping[str, Index]:
    """Return item indices by subset name; 'all' always comes first.

    Items of no known class are in none of them.
    """
    everyone = known_items(predictions)
    chosen: dict[str, Index] = {"all": everyone}
    shifted = predictions.get("shifted")
    if shifted is not None:
        moved = shifted[everyone]
        if moved.any() and not moved.all():
            chosen["in_domain"] = everyone[~moved]
            chosen["shifted"] = everyone[moved]
            chosen["balanced"] = everyone[balanced_joint(moved, seed=seed)]
    group = predictions.get("group")
    if by_group and group is not None:
        for name in np.unique(group[everyone]):
            chosen[f"group={name}"] = everyone[group[everyone] == name]
    return chosen


def known_items(predictions: Predictions) -> Index:
    """Return the items whose class is known, by number.

    Raises:
        ValueError: If there are none.
    """
    is_known = predictions.get("known")
    if is_known is None:
        return np.arange(predictions.n)
    if not is_known.any():
        raise ValueError(
            f"{predictions.source}: no item has a known class, so there is nothing to "
            "score; give 'target' where it is known"
        )
    return np.flatnonzero(is_known)


def outside(predictions: Predictions) -> Flags | None:
    """Return which items (N,) are shifted or of no known class; None without both."""
    shifted, is_known = predictions.get("shifted"), predictions.get("known")
    marked = np.zeros(predictions.n, np.bool_)
    if shifted is not None:
        marked |= shifted
    if is_known is not None:
        marked |= ~is_known
    return marked if marked.any() and not marked.all() else None


def unknown_notes(
    predictions: Predictions, *, in_ood_scores: bool = True
) -> tuple[str, ...]:
    """Return a note on items of no known class; `in_ood_scores` if these count them."""
    is_known = predictions.get("known")
    count = 0 if is_known is None else int((~is_known).sum())
    if not count:
        return ()
    subject = "1 item has" if count == 1 else f"{count} items have"
    if in_ood_scores:
        return (
            f"{subject} no known class: counted as shifted in OOD and SCOD scores, and "
            "left out of all others",
        )
    return (f"{subject} no known target: left out of every score",)


def design_of(predictions: Predictions, *kinds: Flags | None) -> Design:
    """Return how the items of a file were drawn: in-domain and shifted apart.

    `kinds` tell further samples apart, such as upstream and downstream items. Items of
    no known class are a sample of their own.
    """
    sample = np.zeros(predictions.n, np.int64)
    for kind in (predictions.get("shifted"), predictions.get("known"), *kinds):
        if kind is not None:
            sample = 2 * sample + kind
    return sampling_design(
        predictions.n, sample=sample, cluster=predictions.get("cluster")
    )


def rebalanced(group: NDArray[Any], shifted: Flags, *, seed: int = 0) -> Index | None:
    """Return shifted rows, their groups in in-domain proportions (Band et al., D.5).

    None where a group has no shifted row.

    >>> group = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> drawn = group[rebalanced(group, np.arange(8) >= 4)]
    >>> np.bincount(drawn)
    array([7500, 2500])
    """
    # Scoring a file needs no datasets, and should not wait for them.
    from qualms.datasets import rebalanced_rows

    names, counts = np.unique(group[~shifted], return_counts=True)
    rows = np.flatnonzero(shifted)
    if not np.isin(names, group[rows]).all():
        return None
    shares = {
        name.item(): int(count) for name, count in zip(names, counts, strict=True)
    }
    return rows[rebalanced_rows(group[rows], shares=shares, seed=seed)]
