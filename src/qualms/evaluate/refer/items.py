"""The sets a plan is about: the items of a file, those in-domain and those shifted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.refer.uncertainty import (
    FAMILY,
    UncertaintyUsed,
    predicted_of,
    uncertainty_values,
)
from qualms.evaluate.scoring import Source, taken_from
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.scores import Ranked, ranked_items

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralItems:
    """Numbers of every item of one set, all (N,)."""

    name: str
    subset: str
    classes: int | None
    """None for regression."""
    target: Index | Array
    predicted: Index | Array
    """The most probable class, or the predicted value."""
    correct: Flags
    """False throughout for regression."""
    loss: Array
    """The NLL of classes, the absolute error of values."""
    positive: Array
    """Probability of class 1; of use with two classes only."""
    uncertainty: Array
    rank: Ranked
    """The items in ascending order of `uncertainty`, sorted once for all uses."""
    cluster: Index | None
    """Clusters by number; None where no two items share one."""
    group: NDArray[np.int64] | NDArray[np.str_] | None

    @property
    def n(self) -> int:
        """How many items there are."""
        return len(self.target)

    @property
    def clusters(self) -> int | None:
        """How many clusters there are; None where none are given."""
        return None if self.cluster is None else len(np.unique(self.cluster))

    def among(self, score: str) -> Flags:
        """(N,) the items whose share of right ones is `score`."""
        if score == "accuracy":
            return np.ones(self.n, np.bool_)
        found: Flags = self.target == (1 if score == "sensitivity" else 0)
        return found

    def part(self, index: Index, subset: str) -> "ReferralItems":
        """The items at `index` alone."""
        return ReferralItems(
            name=self.name,
            subset=subset,
            classes=self.classes,
            target=self.target[index],
            predicted=self.predicted[index],
            correct=self.correct[index],
            loss=self.loss[index],
            positive=self.positive[index],
            uncertainty=self.uncertainty[index],
            rank=ranked_items(self.uncertainty[index]),
            cluster=cluster_codes(self.cluster, index),
            group=None if self.group is None else self.group[index],
        )


def referable(source: Source, *, logits: bool, labelled: bool = True) -> Predictions:
    """The predictions of `source`, refused unless a plan can be about them."""
    taken = taken_from(source, logits=logits)
    if taken.task not in FAMILY:
        raise ValueError(
            f"{taken.source}: a plan needs predictions of classification ('probs' or "
            f"'prob') or regression ('mean'), this file holds {taken.task}; use qualms "
            "score for it"
        )
    if labelled and "target" not in taken.arrays:
        raise ValueError(
            f"{taken.source}: has no 'target', and a plan is chosen and checked on "
            "items whose target is known; add it as 'target', or apply a plan that was "
            "made before (--apply)"
        )
    return taken


def sets_of(
    predictions: Predictions, name: str, used: UncertaintyUsed
) -> tuple[ReferralItems, ...]:
    """In-domain and shifted items apart, where the file marks some of them shifted.

    Items of no known class are left out.
    """
    index = known_items(predictions)
    every = _items(predictions, index, name, used)
    marks = predictions.get("shifted")
    shifted = np.zeros(every.n, np.bool_) if marks is None else marks[index]
    if shifted.all() or not shifted.any():
        return (every,)
    return (
        every.part(np.flatnonzero(~shifted), "in_domain"),
        every.part(np.flatnonzero(shifted), "shifted"),
    )


def independent(items: ReferralItems, seed: int) -> ReferralItems:
    """One item of each cluster, drawn by `seed`; all items where there are none."""
    if items.cluster is None:
        return items
    keys = (items.positive, items.loss, items.correct, items.target, items.uncertainty)
    return items.part(one_per_cluster(items.cluster, keys, seed), items.subset)


def one_per_cluster(cluster: Index, keys: tuple[NDArray[Any], ...], seed: int) -> Index:
    """One item of each cluster, drawn by `seed`.

    They are sorted by `keys`, all that is known of an item, so that their order in the
    file has no influence.
    """
    order = np.lexsort((*keys, cluster))
    size = np.bincount(cluster)
    size = size[size > 0]
    start = np.cumsum(size) - size
    drawn = np.random.default_rng(seed).random(len(size))
    chosen: Index = order[start + (drawn * size).astype(np.int64)]
    return chosen


def cluster_codes(cluster: NDArray[Any] | None, index: Index) -> Index | None:
    """Clusters of the items at `index` by number; None where no two share one."""
    if cluster is None:
        return None
    names, codes = np.unique(cluster[index], return_inverse=True)
    return None if len(names) == len(index) else codes.astype(np.int64)


def groups_of(items: ReferralItems) -> Sequence[ReferralItems]:
    """The items of each group, in the order of their names."""
    if items.group is None:
        return ()
    return [
        items.part(np.flatnonzero(items.group == name), f"group={name}")
        for name in np.unique(items.group)
    ]


def _items(
    predictions: Predictions, index: Index, name: str, used: UncertaintyUsed
) -> ReferralItems:
    target = predictions.arrays["target"][index]
    uncertainty = uncertainty_values(predictions, used)[index]
    group = predictions.get("group")
    predicted = predicted_of(predictions)[index]
    if predictions.classes is None:
        correct, positive = np.zeros(len(index), np.bool_), np.zeros(len(index))
        loss = np.abs(predicted - target)
    else:
        probs = scores.mean_probabilities(predictions.arrays["probs"])[index]
        correct, positive = scores.correct(probs, target), probs[:, 1]
        loss = scores.item_nll(probs, target)
    return ReferralItems(
        name=name,
        subset="",
        classes=predictions.classes,
        target=target,
        predicted=predicted,
        correct=correct,
        loss=loss,
        positive=positive,
        uncertainty=uncertainty,
        rank=ranked_items(uncertainty),
        cluster=cluster_codes(predictions.get("cluster"), index),
        group=None if group is None else group[index],
    )
