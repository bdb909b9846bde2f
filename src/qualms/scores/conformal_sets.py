"""Sets of classes that hold the true one with a stated probability.

Split conformal prediction: every class of an item gets a nonconformity, and a set holds
the classes up to a threshold, which is an order statistic of validation items. If
validation and new items are exchangeable, sets hold the target of at least 1 - alpha of
new items, for any network. Under a shift they may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores.arguments import (
    BLOCK,
    at_class,
    labelled,
    labels,
    mean_probabilities,
    not_negative,
    open_unit,
    vector,
)
from qualms.scores.conformal import rank_reaching
from qualms.scores.influence import Influence, Strata, mean_influence
from qualms.scores.ties import TIE

__all__ = [
    "ConformalSets",
    "SetRule",
    "fit_conformal_sets",
    "fit_label_shift_sets",
    "label_shift_weights",
    "nonconformity",
    "set_coverage",
    "set_size",
    "singleton_share",
    "size_stratified_coverage",
]

SetRule = Literal["lac", "aps", "raps", "saps"]
PENALTY = 0.01
"""Penalty of RAPS for each class beyond the free ones (Angelopoulos et al., 2021)."""
FREE = 5
ROUNDS, SETTLED = 1_000, 1e-10
"""Most rounds of expectation maximisation, and the change at which it ends."""
RANK_WEIGHT = 0.2
"""Weight of each more probable class in SAPS (Huang et al., 2024)."""
STRATA = (2, 4, 11, 101)
"""Lower ends of strata of set sizes: 0 and 1, 2 and 3, 4 to 10, 11 to 100, and more."""


def nonconformity(
    probs: ArrayLike, *, rule: SetRule = "lac", uniform: ArrayLike | None = None
) -> Array:
    """Return the nonconformity (N, C) of each class with the prediction for the item.

    lac: one minus its probability (Sadinle et al., 2019). aps: the probability of all
    classes that are as probable or more so (Romano et al., 2020). raps: that plus 0.01
    for every such class beyond five (Angelopoulos et al., 2021). saps: the largest
    probability, and 0.2 for every class that is more probable (Huang et al., 2024).
    Tied classes get the same number. `uniform` (N,), random numbers between 0 and 1,
    makes all but lac smooth: they count that share of the class's own part.

    >>> nonconformity([[0.5, 0.3, 0.2]], rule="aps")
    array([[0.5, 0.8, 1. ]])
    """
    if rule not in get_args(SetRule):
        rules = ", ".join(get_args(SetRule))
        raise ValueError(f"rule must be one of {rules}, got {rule!r}")
    checked = mean_probabilities(probs)
    if rule == "lac":
        if uniform is not None:
            raise ValueError("uniform is for aps, raps and saps; leave it out")
        return 1.0 - checked
    chance = np.ones(1)
    if uniform is not None:
        chance = vector("uniform", uniform, length=len(checked))
        if chance.min() < 0.0 or chance.max() > 1.0:
            raise ValueError("uniform must hold numbers between 0 and 1")
    if rule == "saps":
        return _by_rank(checked, chance)
    return _cumulated(checked, chance, PENALTY if rule == "raps" else 0.0)


def _cumulated(probs: Array, chance: Array, penalty: float) -> Array:
    """Return the cumulated probability (N, C) up to each class, with tied classes."""
    order = np.argsort(-probs, axis=1)
    result = np.empty(probs.shape)
    _fill_cumulated(probs, order, chance, penalty, result)
    return result


@jit
def _fill_cumulated(
    probs: Array, order: Index, chance: Array, penalty: float, result: Array
) -> None:
    """Fill row by row, from the most probable class on; `chance` is (N,) or (1,)."""
    classes = probs.shape[1]
    for row in range(len(probs)):
        share = chance[row if len(chance) > 1 else 0]
        above, first = 0.0, 0
        while first < classes:
            below = min(above, 1.0)
            last = first
            mass = probs[row, order[row, first]]
            above += mass
            while last + 1 < classes:
                after = probs[row, order[row, last + 1]]
                if mass - after > TIE * mass:
                    break
                above += after
                mass = after
                last += 1
            beyond = max(last + 1.0 - FREE, 0.0)
            value = below + share * (min(above, 1.0) - below) + penalty * beyond
            for place in range(first, last + 1):
                result[row, order[row, place]] = value
            first = last + 1


def _by_rank(probs: Array, chance: Array) -> Array:
    """Return (N, C) the largest probability plus a weight per more probable class."""
    order = np.argsort(-probs, axis=1)
    rank = np.empty(probs.shape)
    _fill_last_ranks(probs, order, rank)
    largest, share = probs.max(axis=1, keepdims=True), chance[:, None]
    below = largest + RANK_WEIGHT * (rank - 2.0 + share)
    value: Array = np.where(rank == 1.0, share * largest, below)
    return value


@jit
def _fill_last_ranks(probs: Array, order: Index, rank: Array) -> None:
    """Write to `rank` how many classes are at least as probable as each class."""
    classes = probs.shape[1]
    for row in range(len(probs)):
        first = 0
        while first < classes:
            last = first
            mass = probs[row, order[row, first]]
            while last + 1 < classes:
                after = probs[row, order[row, last + 1]]
                if mass - after > TIE * mass:
                    break
                mass = after
                last += 1
            for place in range(first, last + 1):
                rank[row, order[row, place]] = last + 1.0
            first = last + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConformalSets:
    """A rule with its threshold; `apply` gives the sets of new items."""

    rule: SetRule
    threshold: Array
    """(C,) threshold of each class; infinite if validation items are too few."""

    def apply(self, probs: ArrayLike, *, uniform: ArrayLike | None = None) -> Flags:
        """Return a mask (N, C) of the classes in the set of each item."""
        score = nonconformity(probs, rule=self.rule, uniform=uniform)
        if score.shape[1] != len(self.threshold):
            raise ValueError(
                f"probs must have the {len(self.threshold)} classes that the sets were "
                f"fitted on, got {score.shape[1]}"
            )
        return conforms(score, self.threshold)


def conforms(score: Array, threshold: ArrayLike) -> Flags:
    """Return whether a nonconformity is at most its threshold, up to rounding."""
    within: Flags = score <= np.asarray(threshold) + TIE
    return within


def fit_conformal_sets(
    probs: ArrayLike,
    target: ArrayLike,
    *,
    alpha: float,
    rule: SetRule = "lac",
    by_class: bool = False,
    uniform: ArrayLike | None = None,
) -> ConformalSets:
    """Return the sets that hold 1 - `alpha` of new targets, from validation items.

    The threshold is the ceil((N + 1)(1 - alpha))-th smallest `nonconformity` of the
    targets; if N is too small for that, it is infinite and sets hold all classes. With
    `by_class` every class has a threshold from its own items, and is in the sets of
    1 - alpha of its items (Vovk, 2012).

    >>> probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> sets = fit_conformal_sets(probs, [0, 0, 1, 0], alpha=0.4)
    >>> sets.apply([[0.75, 0.25], [0.5, 0.5]])
    array([[ True, False],
           [False, False]])
    """
    checked, truth = labelled(probs, target)
    score = own_nonconformity(checked, truth, rule=rule, uniform=uniform)
    classes = checked.shape[1]
    if by_class:
        thresholds = [
            set_threshold(score[truth == c], alpha=alpha) for c in range(classes)
        ]
        return ConformalSets(rule=rule, threshold=np.array(thresholds))
    threshold = set_threshold(score, alpha=alpha)
    return ConformalSets(rule=rule, threshold=np.full(classes, threshold))


def label_shift_weights(
    val_probs: ArrayLike, val_target: ArrayLike, probs: ArrayLike
) -> Array:
    """Return the ratio (C,) of each class's frequency in new and in validation items.

    Labels of new items are not needed: their frequencies maximise the likelihood of the
    new `probs` (N, C), by expectation maximisation from those in validation (Saerens et
    al., 2002). It assumes that probabilities are calibrated in validation, and that
    images of a class do not change. The ratio of a class without validation items is 1.

    >>> val_probs = [[0.9, 0.1], [0.1, 0.9]]
    >>> new = [[0.9, 0.1]] * 7 + [[0.1, 0.9]] * 3
    >>> label_shift_weights(val_probs, [0, 1], new).round(4)
    array([1.5, 0.5])
    """
    checked, truth = labelled(val_probs, val_target)
    new = mean_probabilities(probs)
    classes = checked.shape[1]
    if new.shape[1] != classes:
        raise ValueError(
            f"probs must have the {classes} classes of val_probs, got {new.shape[1]}"
        )
    before = np.bincount(truth, minlength=classes) / len(truth)
    present = before > 0.0
    share = before[present]
    ratio = new[:, present] / share
    for _ in range(ROUNDS):
        joint = ratio * share
        total = joint.sum(axis=1, keepdims=True)
        after = (joint / np.where(total > 0.0, total, 1.0)).mean(axis=0)
        settled = np.abs(after - share).max() < SETTLED
        share = after
        if settled:
            break
    weight = np.ones(classes)
    weight[present] = share / before[present]
    return weight


def fit_label_shift_sets(
    probs: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike,
    *,
    alpha: float,
    rule: SetRule = "lac",
) -> ConformalSets:
    """Return sets for new items whose classes are `weight` (C,) times as frequent.

    Weighted conformal sets under a label shift (Podkopaev & Ramdas, 2021): the
    threshold of a class is the least nonconformity up to which validation items carry
    1 - `alpha` of all weight, with that of a new item of the class. Infinite where they
    cannot. Equal weights give `fit_conformal_sets`.

    >>> sets = fit_label_shift_sets(
    ...     [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 0, 1], [1.0, 4.0], alpha=0.5
    ... )
    >>> sets.threshold
    array([0.3, 0.3])
    """
    checked, truth = labelled(probs, target)
    open_unit("alpha", alpha)
    by_class = not_negative("weight", weight, length=checked.shape[1])
    score = own_nonconformity(checked, truth, rule=rule)
    order = np.argsort(score, kind="stable")
    carried = np.cumsum(by_class[truth[order]])
    needed = (1 - alpha) * (carried[-1] + by_class) * (1 - TIE)
    reached = np.append(score[order], np.inf)
    return ConformalSets(rule=rule, threshold=reached[np.searchsorted(carried, needed)])


def own_nonconformity(
    probs: Array,
    target: Index,
    *,
    rule: SetRule,
    uniform: ArrayLike | None = None,
) -> Array:
    """Return (N,) the `nonconformity` of each item's target, a few items at a time."""
    score = np.empty(len(target))
    chance = None if uniform is None else np.asarray(uniform)
    step = max(1, BLOCK // probs.shape[1])
    for start in range(0, len(target), step):
        rows = slice(start, start + step)
        part = None if chance is None else chance[rows]
        block = nonconformity(probs[rows], rule=rule, uniform=part)
        score[rows] = at_class(block, target[rows])
    return score


def set_threshold(score: Array, *, alpha: float) -> float:
    """Return the ceil((N + 1)(1 - alpha))-th smallest of `score` (N,), or infinity.

    >>> set_threshold(np.array([0.1, 0.4, 0.2]), alpha=0.3)
    0.4
    """
    open_unit("alpha", alpha)
    rank = rank_reaching(1 - alpha, len(score) + 1)
    return float(np.sort(score)[rank - 1]) if rank <= len(score) else math.inf


def item_in_set(sets: ArrayLike, target: ArrayLike) -> Flags:
    """Return whether each set (N,), a row of `sets` (N, C), holds its target."""
    members = _sets(sets)
    truth = labels("target", target, classes=members.shape[1], length=len(members))
    inside: Flags = members[np.arange(len(members)), truth]
    return inside


def item_set_size(sets: ArrayLike) -> Array:
    """Return the number (N,) of classes in each set, a row of `sets` (N, C)."""
    count: Array = _sets(sets).sum(axis=1).astype(np.float64)
    return count


def item_singleton(sets: ArrayLike) -> Flags:
    """Return a mask (N,) of the sets, rows of `sets` (N, C), with exactly one class."""
    single: Flags = item_set_size(sets) == 1.0
    return single


@as_score(label="Set coverage", better="neither", items=item_in_set)
def set_coverage(sets: ArrayLike, target: ArrayLike) -> float:
    """Return share of items whose set, a row of `sets` (N, C), holds their target (N,).

    >>> set_coverage([[True, False], [True, True]], [1, 1])
    0.5
    """
    return float(item_in_set(sets, target).mean())


def _set_size_influence(sets: ArrayLike) -> Influence:
    bound = float(np.shape(sets)[1])
    return mean_influence(item_set_size(sets), bound=bound)


@as_score(
    label="Set size", better="lower", high=math.inf, influence=_set_size_influence
)
def set_size(sets: ArrayLike) -> float:
    """Return the mean number of classes in the sets, rows of `sets` (N, C).

    >>> set_size([[True, False], [True, True]])
    1.5
    """
    return float(item_set_size(sets).mean())


@as_score(label="Singletons", better="higher", items=item_singleton)
def singleton_share(sets: ArrayLike) -> float:
    """Return the share of the sets, rows of `sets` (N, C), that hold exactly one class.

    >>> singleton_share([[True, False], [True, True]])
    0.5
    """
    return float(item_singleton(sets).mean())


def _size_stratified_influence(sets: ArrayLike, target: ArrayLike) -> Influence:
    return worst_stratum_influence(item_set_size(sets), item_in_set(sets, target))


def worst_stratum_influence(size: Array, inside: Flags) -> Influence:
    """Return the influence on the least coverage, from each set's size and coverage."""
    stratum, hit = size_stratum(size), inside.astype(np.float64)
    count = np.bincount(stratum)
    present = count > 0
    share = np.bincount(stratum, hit)[present] / count[present]
    worst = int(np.flatnonzero(present)[share.argmin()])
    within = stratum == worst
    return Influence(
        value=float(share.min()),
        values=np.where(within, hit - share.min(), 0.0) / count[worst],
        scale="logit",
        construction=Strata(hit, stratum, "least"),
    )


@as_score(
    label="Size-stratified coverage",
    better="higher",
    influence=_size_stratified_influence,
)
def size_stratified_coverage(sets: ArrayLike, target: ArrayLike) -> float:
    """Return the least coverage among sets of similar size (Angelopoulos et al., 2021).

    The strata are the paper's: 0 and 1 classes, 2 and 3, 4 to 10, 11 to 100, and more.
    Strata without items are left out.

    >>> size_stratified_coverage([[True, False], [True, True]], [1, 1])
    0.0
    """
    return worst_stratum(item_set_size(sets), item_in_set(sets, target))


def worst_stratum(size: Array, inside: Flags) -> float:
    """Return `size_stratified_coverage` from each set's size and coverage."""
    stratum = size_stratum(size)
    count = np.bincount(stratum)
    hits = np.bincount(stratum, inside)
    return float((hits[count > 0] / count[count > 0]).min())


def size_stratum(size: Array) -> Index:
    """Return the index (N,) in `STRATA` of the size of each set.

    >>> size_stratum(np.array([0.0, 1.0, 2.0, 10.0, 101.0]))
    array([0, 0, 1, 2, 4])
    """
    return np.searchsorted(STRATA, size, side="right").astype(np.int64)


def _sets(sets: ArrayLike) -> Flags:
    members = np.asarray(sets)
    if members.ndim != 2 or not members.size:
        raise ValueError(
            f"sets must have shape (N, C) with at least one item, got {members.shape}"
        )
    if members.dtype != np.bool_:
        if not np.isin(members, (0, 1)).all():
            raise ValueError("sets must be true or false for each item and class")
        members = members.astype(np.bool_)
    return members
