"""The sets a plan is about: the items of a file, those in-domain and those shifted."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.draws import decomposed
from qualms.evaluate.refer.plan import ReferralOptions
from qualms.evaluate.scoring import Source
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions, build, read
from qualms.scores import Ranked, ranked_items
from qualms.shelf import suggest

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

# What every file with draws has, in the order of `scores.decompose`.
PARTS = ("entropy", "aleatoric", "epistemic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferralItems:
    """Numbers of every item of one set, all (N,)."""

    name: str
    subset: str
    classes: int
    target: Index
    correct: Flags
    nll: Array
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
            correct=self.correct[index],
            nll=self.nll[index],
            positive=self.positive[index],
            uncertainty=self.uncertainty[index],
            rank=ranked_items(self.uncertainty[index]),
            cluster=None if self.cluster is None else _codes(self.cluster[index]),
            group=None if self.group is None else self.group[index],
        )


def take(source: Source, options: ReferralOptions) -> Predictions:
    """The predictions of `source`, refused unless they are of classes."""
    if isinstance(source, Predictions):
        taken = source
    elif isinstance(source, (str, Path)):
        taken = read(source, logits=options.logits)
    else:
        taken = build(source, logits=options.logits)
    if taken.task != "classification":
        raise ValueError(
            f"{taken.source}: a plan needs classification predictions ('target' with "
            f"'probs' or 'prob'), this file holds {taken.task}; use qualms score for it"
        )
    if "target" not in taken.arrays:
        raise ValueError(
            f"{taken.source}: has no 'target', and a plan is chosen and checked on "
            "items whose class is known; add the true classes as 'target'"
        )
    return taken


def sets_of(
    predictions: Predictions, name: str, options: ReferralOptions
) -> tuple[ReferralItems, ...]:
    """In-domain and shifted items apart, where the file marks some of them shifted.

    Items of no known class are left out.
    """
    index = known_items(predictions)
    every = _items(predictions, index, name, options)
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
    # Sorted by all that is known of an item, so that their order in the file has no
    # influence.
    keys = (items.positive, items.nll, items.correct, items.target, items.uncertainty)
    order = np.lexsort((*keys, items.cluster))
    size = np.bincount(items.cluster)
    size = size[size > 0]
    start = np.cumsum(size) - size
    drawn = np.random.default_rng(seed).random(len(size))
    return items.part(order[start + (drawn * size).astype(np.int64)], items.subset)


def groups_of(items: ReferralItems) -> Sequence[ReferralItems]:
    """The items of each group, in the order of their names."""
    if items.group is None:
        return ()
    return [
        items.part(np.flatnonzero(items.group == name), f"group={name}")
        for name in np.unique(items.group)
    ]


def _items(
    predictions: Predictions, index: Index, name: str, options: ReferralOptions
) -> ReferralItems:
    target = predictions.arrays["target"][index]
    uncertainty = _uncertainty(predictions, options.uncertainty)[index]
    probs = scores.mean_probabilities(predictions.arrays["probs"])[index]
    cluster, group = predictions.get("cluster"), predictions.get("group")
    return ReferralItems(
        name=name,
        subset="",
        classes=probs.shape[1],
        target=target,
        correct=scores.correct(probs, target),
        nll=scores.item_nll(probs, target),
        positive=probs[:, 1],
        uncertainty=uncertainty,
        rank=ranked_items(uncertainty),
        cluster=None if cluster is None else _codes(cluster[index]),
        group=None if group is None else group[index],
    )


def _uncertainty(predictions: Predictions, name: str) -> Array:
    own = predictions.named("uncertainty")
    if name in own:
        found: Array = own[name]
        return found
    if name not in PARTS:
        known = sorted({*own, *PARTS})
        raise LookupError(
            f"{predictions.source}: no uncertainty {name!r}.{suggest(name, known)} "
            f"Known: {', '.join(known)}."
        )
    if name != "entropy" and predictions.draws == 1:
        raise ValueError(
            f"{predictions.source}: the {name} uncertainty needs several draws "
            "(M, N, C), this file has one; use entropy, or give the values as "
            f"'uncertainty/{name}'"
        )
    parts = decomposed(predictions.arrays["probs"])
    return dict(zip(PARTS, parts, strict=True))[name].astype(np.float64)


def _codes(cluster: NDArray[np.int64] | NDArray[np.str_]) -> Index | None:
    names, codes = np.unique(cluster, return_inverse=True)
    return None if len(names) == len(cluster) else codes.astype(np.int64)
