"""The items of a file for a plan: uncertainty, decision and outcome of each.

In-domain and shifted items are separate sets. The uncertainty of a plan is an array of
the file or is computed from its predictions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.evaluate.chosen_uncertainty import (
    FAMILIES,
    chosen_uncertainty,
    own_uncertainties,
)
from qualms.evaluate.sources import Source, predictions_of, refuse_huge
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions, pool
from qualms.referral._request import SHARE_SCORES
from qualms.referral._task import ReferredOutcomes, referable_tasks, referral_of
from qualms.scores import Ranked, ranked_items


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintySource:
    """Source of the uncertainty of a plan; larger is less certain."""

    name: str
    from_file: bool
    """True for an array of the file; False if computed from the predictions."""
    how: str
    """Description of its computation."""
    draws: int
    """Draws of the predictions that the plan was made from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralItems:
    """One set of items; all arrays are (N,)."""

    name: str
    """Name of the file."""
    subset: str
    """Part of the file: '' (all), 'in_domain', 'shifted' or 'group=...'."""
    task: str
    classes: int | None
    """Number of classes of a classification; None for other tasks."""
    target: Index | Array
    predicted: Index | Array
    """The most probable class, the predicted value, or the length of the embedding."""
    correct: Flags
    """True where the predicted class, or that of the nearest neighbour, is right; False
    for all items of a regression."""
    loss: Array
    """NLL for classes, absolute error for values, 1 for a wrong neighbour."""
    positive: Array
    """Probability of class 1; of use with two classes only."""
    uncertainty: Array
    rank: Ranked
    """The items in ascending order of `uncertainty`, sorted once for all uses."""
    cluster: Index | None
    """Number of the cluster of each item; None where no two items share one."""
    group: NDArray[np.int64] | NDArray[np.str_] | None

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.target)

    @property
    def clusters(self) -> int | None:
        """Number of clusters; None where no two items share one."""
        return None if self.cluster is None else len(np.unique(self.cluster))

    @property
    def is_decided(self) -> bool:
        """True if items are right or wrong; values are neither."""
        return referral_of(self.task).is_decided

    def counted(self, score: str) -> Flags:
        """Return a mask of the items that count in `score`, one of `SHARE_SCORES`."""
        target = SHARE_SCORES[score].target
        if target is None:
            return np.ones(self.n, np.bool_)
        same_class: Flags = self.target == target
        return same_class

    def part(self, index: Index, subset: str) -> "ReferralItems":
        """Return the items at `index` alone."""
        return ReferralItems(
            name=self.name,
            subset=subset,
            task=self.task,
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

    def groups(self) -> "tuple[ReferralItems, ...]":
        """Return the items of each group, in the order of the groups' names."""
        if self.group is None:
            return ()
        return tuple(
            self.part(np.flatnonzero(self.group == name), f"group={name}")
            for name in np.unique(self.group)
        )

    def independent(self, seed: int) -> "ReferralItems":
        """Return one item per cluster, drawn by `seed`; all items without clusters."""
        if self.cluster is None:
            return self
        keys = (self.positive, self.loss, self.correct, self.target, self.uncertainty)
        return self.part(one_per_cluster(self.cluster, keys, seed), self.subset)


def read_for_referral(
    source: Source, *, logits: bool, labelled: bool = True, draws: str | None = None
) -> Predictions:
    """Read `source`; raise unless a plan can be made from it or applied to it."""
    predictions = predictions_of(source, logits=logits, draws=draws)
    refuse_huge(predictions)
    if predictions.task not in referable_tasks():
        raise ValueError(
            f"{predictions.source}: a plan needs predictions of classification "
            "('probs' or 'prob') or regression ('mean'), or embeddings, and this file "
            f"holds {predictions.task}; use qualms score for it"
        )
    if labelled and "target" not in predictions.arrays:
        raise ValueError(
            f"{predictions.source}: has no 'target', and a plan is chosen and checked "
            "on items whose target is known; add it as 'target', or apply a plan that "
            "was made before (--apply)"
        )
    return predictions


def split_by_shift(
    predictions: Predictions,
    name: str,
    uncertainty: UncertaintySource,
    gallery: Predictions | None = None,
) -> tuple[ReferralItems, ...]:
    """Return in-domain and shifted items separately if the file marks some as shifted.

    Items of no known class and embeddings of upstream items are left out.
    """
    judged = referral_of(predictions.task).judged(predictions, gallery)
    items = _items_of(predictions, judged, name, uncertainty)
    shifted = _marks(predictions, judged.rows)
    if not shifted.any():
        return (items,)
    return (
        items.part(np.flatnonzero(~shifted), "in_domain"),
        items.part(np.flatnonzero(shifted), "shifted"),
    )


def in_domain_items(predictions: Predictions) -> Index:
    """Return the rows of the items on which a plan is made."""
    index = known_items(predictions)
    upstream = predictions.get("upstream")
    if upstream is not None:
        index = index[~upstream[index]]
    rows: Index = index[~_marks(predictions, index)]
    return rows


def _marks(predictions: Predictions, index: Index) -> Flags:
    """Return a mask of the shifted items; all False if all items are shifted."""
    marks = predictions.get("shifted")
    shifted = np.zeros(len(index), np.bool_) if marks is None else marks[index]
    return np.zeros_like(shifted) if shifted.all() else shifted


def one_per_cluster(cluster: Index, keys: tuple[NDArray[Any], ...], seed: int) -> Index:
    """Return the index of one item of each cluster, drawn by `seed`.

    Items are sorted by `keys`, their properties, so that their order in the file has no
    influence.
    """
    order = np.lexsort((*keys, cluster))
    size = np.bincount(cluster)
    size = size[size > 0]
    start = np.cumsum(size) - size
    place = np.random.default_rng(seed).random(len(size))
    chosen: Index = order[start + (place * size).astype(np.int64)]
    return chosen


def cluster_codes(cluster: NDArray[Any] | None, index: Index) -> Index | None:
    """Return the clusters of the items at `index` by number; None if all differ."""
    if cluster is None:
        return None
    names, codes = np.unique(cluster[index], return_inverse=True)
    return None if len(names) == len(index) else codes.astype(np.int64)


def uncertainty_source(predictions: Predictions, name: str | None) -> UncertaintySource:
    """Return the source of the uncertainty `name`; arrays of the file come first.

    Without a name it is the uncertainty that `qualms score` judges: that of the header,
    else the first of the file's own, else the usual one of the task.

    Raises:
        LookupError: If there is none of this name.
        ValueError: If the file lacks what it is computed from.
    """
    task, own = referral_of(predictions.task), own_uncertainties(predictions)
    available = (*own, *task.computed, *task.other_names)
    name = chosen_uncertainty(predictions, available, requested=name or "")
    if not name:
        name = task.usual(predictions)
    elif name not in own and name in task.other_names:
        _check_computable(predictions, name)
        name = task.named(predictions, name)
    if name in own:
        how = f"array '{array_name(predictions, name)}' of the predictions"
    else:
        _check_computable(predictions, name)
        how = task.computed[name]
    return UncertaintySource(
        name=name, from_file=name in own, how=how, draws=predictions.draws
    )


def array_name(predictions: Predictions, name: str) -> str:
    """Return the full name of the array of one of the file's own uncertainties."""
    return next(
        f"{family}/{name}" for family in FAMILIES if name in predictions.named(family)
    )


def uncertainty_values(predictions: Predictions, source: UncertaintySource) -> Array:
    """Return the uncertainty (N,) of every item, as `source` describes it.

    Raises:
        ValueError: If the predictions lack what it is computed from.
    """
    if source.from_file:
        return _array_of_file(predictions, source.name)
    _check_computable(predictions, source.name)
    return referral_of(predictions.task).compute(predictions, source.name)


def predicted_values(predictions: Predictions) -> Index | Array:
    """Return the predicted classes or values (N,); for embeddings their lengths."""
    return referral_of(predictions.task).predicted(predictions)


def _items_of(
    predictions: Predictions,
    judged: ReferredOutcomes,
    name: str,
    source: UncertaintySource,
) -> ReferralItems:
    index = judged.rows
    uncertainty = uncertainty_values(predictions, source)[index]
    group = predictions.get("group")
    return ReferralItems(
        name=name,
        subset="",
        task=predictions.task,
        classes=predictions.classes,
        target=predictions.arrays["target"][index],
        predicted=predicted_values(predictions)[index],
        correct=judged.correct,
        loss=judged.loss,
        positive=judged.positive,
        uncertainty=uncertainty,
        rank=ranked_items(uncertainty),
        cluster=cluster_codes(judged.unit, np.arange(len(index))),
        group=None if group is None else group[index],
    )


def _array_of_file(predictions: Predictions, name: str) -> Array:
    own = own_uncertainties(predictions)
    if name not in own:
        array = referral_of(predictions.task).family.replace("<name>", name)
        names = ", ".join(f"'{array_name(predictions, each)}'" for each in own)
        raise ValueError(
            f"{predictions.source}: the plan refers by the array '{array}', and this "
            f"file has {names or 'none'}; add it, or make the plan by another "
            "uncertainty (--uncertainty)"
        )
    array = array_name(predictions, name)
    if array.startswith("uncertainty/"):
        return np.asarray(predictions.arrays[array], np.float64)
    # Draws of a selection score are pooled by the rule in the header.
    many = predictions.draws > 1
    joined = pool([predictions]) if many else predictions
    return np.asarray(joined.arrays[array][0], np.float64)


def is_computable(predictions: Predictions, name: str) -> bool:
    """Return whether the uncertainty can be computed from the predictions."""
    return not referral_of(predictions.task).lacking(predictions, name)


def _check_computable(predictions: Predictions, name: str) -> None:
    """Raise unless the uncertainty can be computed."""
    task = referral_of(predictions.task)
    if needs := task.lacking(predictions, name):
        array = task.family.replace("<name>", name)
        raise ValueError(
            f"{predictions.source}: the {name} uncertainty needs {needs};"
            f" {task.instead}give the values as '{array}'"
        )
