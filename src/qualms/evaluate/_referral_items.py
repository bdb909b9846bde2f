"""What a repeat says about in-domain and shifted items, and the sets that are judged.

All sets are rows of one joint set, in-domain items first, so that a bootstrap replicate
of its items is a replicate of every set at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.datasets import rebalanced_rows
from qualms.evaluate._runs import AbsentError
from qualms.predictions import Predictions
from qualms.scores.as_published import retina as published

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Uncertainty(NamedTuple):
    """Entropy of the mean prediction in nats, and its parts, (N,) each."""

    total: Array
    aleatoric: Array
    epistemic: Array


class Items(NamedTuple):
    """One repeat of a row on the joint set; N items, in-domain first."""

    probs: Array
    """(N, 2) mean over draws."""
    target: Index
    uncertainty: Uncertainty
    shifted: Flags
    draws: int
    group: NDArray[Any] | None = None
    """(N,) clinical grade."""
    cluster: NDArray[Any] | None = None
    """(N,) patient."""
    truth: Array | None = None
    """(N, 2) true probabilities of the classes, where a simulator knows them."""


class Sets(NamedTuple):
    """Rows of the joint set, by the name of the set they make up."""

    ours: Mapping[str, Index]
    theirs: Mapping[str, Index]
    """As the released code takes them."""


def items_of(inside: Predictions, outside: Predictions) -> Items:
    """The items of an in-domain and a shifted split as one joint set."""
    for split in (inside, outside):
        if split.classes != 2:
            raise AbsentError(
                f"{split.source} must have two classes to be referred by, got "
                f"{split.classes}"
            )
    if inside.draws != outside.draws:
        raise AbsentError(
            f"{inside.source} and {outside.source} must have as many draws, got "
            f"{inside.draws} and {outside.draws}"
        )
    both = inside, outside
    draws = np.concatenate([split.arrays["probs"] for split in both], axis=1)
    return Items(
        probs=scores.mean_probabilities(draws),
        target=np.concatenate([split.arrays["target"] for split in both]),
        uncertainty=Uncertainty(*map(_wide, scores.decompose(draws))),
        shifted=np.repeat([False, True], [split.n for split in both]),
        draws=inside.draws,
        group=_joined(both, "group"),
        cluster=_joined(both, "cluster"),
        truth=_joined(both, "target_probs"),
    )


def sets_of(items: Items, seed: int) -> Sets:
    """In-domain, shifted, joint and balanced rows, and rebalanced ones if there are.

    Balanced are as many shifted rows as in-domain ones; rebalanced are shifted rows
    with the grades of the in-domain ones.
    """
    ours = {
        "in_domain": np.flatnonzero(~items.shifted),
        "shifted": np.flatnonzero(items.shifted),
        "joint": np.arange(len(items.shifted)),
    }
    theirs = {**ours, "balanced": published.balanced_joint(items.shifted, seed=seed)}
    ours["balanced"] = scores.balanced_joint(items.shifted, seed=seed)
    if items.group is not None:
        drawn = rebalanced(items.group, items.shifted, seed=seed)
        if drawn is not None:
            ours["rebalanced"] = theirs["rebalanced"] = drawn
    return Sets(ours, theirs)


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


def _wide(part: NDArray[np.floating]) -> Array:
    return part.astype(np.float64, copy=False)


def _joined(splits: Sequence[Predictions], name: str) -> NDArray[Any] | None:
    """The array `name` of both splits; None unless both have it."""
    arrays = [split.get(name) for split in splits]
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if len(there) == len(arrays) else None
