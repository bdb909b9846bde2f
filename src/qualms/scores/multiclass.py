"""Scores of several classes: top k, F1, and AUROC of one class against the rest.

`probs` and `target` are those of `qualms.scores.proper`. Means over classes give every
class the same weight, however many items it has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores.arguments import BLOCK, at_class, labelled, most_probable
from qualms.scores.influence import Influence, few_of_a_kind, undefined
from qualms.scores.ties import is_less, ranked_items

__all__ = [
    "macro_auroc",
    "macro_f1",
    "quadratic_kappa",
    "top_k_accuracy",
]

FEWEST_OF_EACH = 5
"""Fewest items of a class, on average, with an interval of a mean over classes."""


def item_top_k(probs: ArrayLike, target: ArrayLike, *, k: int = 5) -> Array:
    """Return whether each target (N,) is among the `k` most probable classes.

    Of classes that are tied for the last places, each is as likely to get one.

    >>> item_top_k([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], [2, 2], k=2)
    array([0. , 0.5])
    """
    if k < 1:
        raise ValueError(f"k must be 1 or more, got {k}")
    checked, truth = labelled(probs, target)
    prob = at_class(checked, truth)
    hit = np.empty(len(truth))
    step = max(1, BLOCK // checked.shape[1])
    for start in range(0, len(truth), step):
        rows = slice(start, start + step)
        before = is_less(prob[rows, None], checked[rows]).sum(axis=1)
        behind = is_less(checked[rows], prob[rows, None]).sum(axis=1)
        tied = checked.shape[1] - before - behind
        hit[rows] = np.clip((k - before) / tied, 0.0, 1.0)
    return hit


@as_score(label="Top-k accuracy", better="higher", items=item_top_k)
def top_k_accuracy(probs: ArrayLike, target: ArrayLike, *, k: int = 5) -> float:
    """Return the share of items whose target is among the `k` most probable classes.

    Of classes that are tied for the last places, each is as likely to get one.

    >>> top_k_accuracy([[0.5, 0.3, 0.2], [0.4, 0.5, 0.1]], [1, 2], k=2)
    0.5
    """
    return float(item_top_k(probs, target, k=k).mean())


def _macro_f1_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    guess = most_probable(checked)
    hit = guess == truth
    true = np.bincount(truth, minlength=classes)
    size = true + np.bincount(guess, minlength=classes)
    present = size > 0
    count = int(present.sum())
    divisor = np.where(present, size, 1).astype(np.float64)
    f1 = 2.0 * np.bincount(truth[hit], minlength=classes) / divisor
    change = 2.0 * hit / divisor[truth] - (f1 / divisor)[truth] - (f1 / divisor)[guess]
    least = float(true[true > 0].min())
    return Influence(
        value=float(f1[present].mean()),
        values=change / count,
        scale="logit",
        # A handful of items of a class do not show their variance.
        inflation=1.0 + 3.0 / max(least - 1.0, 1.0),
        extreme=least,
        step=1.0 / (count * least),
        uncompared=few_of_a_kind(least),
        reason=_few_of_each(len(truth), count),
    )


@as_score(label="Macro F1", better="higher", influence=_macro_f1_influence)
def macro_f1(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the mean over classes of 2 TP / (2 TP + FP + FN) (van Rijsbergen, 1979).

    Classes that are neither the target nor the prediction of any item are left out.

    >>> round(macro_f1([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.6667
    """
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    guess = most_probable(checked)
    true_positives = np.bincount(truth[guess == truth], minlength=classes)
    size = np.bincount(truth, minlength=classes)
    size = size + np.bincount(guess, minlength=classes)
    present = size > 0
    return float((2.0 * true_positives[present] / size[present]).mean())


def _quadratic_kappa_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    guess, truth = _grades(probs, target)
    apart = np.square(guess - truth)
    first, second = guess - guess.mean(), truth - truth.mean()
    shift = float(guess.mean() - truth.mean())
    chance = float(np.square(first).mean() + np.square(second).mean() + shift**2)
    if chance == 0.0:
        return undefined("all items have one grade, and are predicted to have it")
    mean = float(apart.mean())
    by_chance = np.square(first) + np.square(second) + 2.0 * shift * (first - second)
    by_chance += shift**2 - chance
    change = (mean / chance * by_chance - (apart - mean)) / (chance * len(truth))
    return Influence(
        value=1.0 - mean / chance,
        values=change - change.mean(),
        scale="fisher",
        low=-1.0,
        extreme=float(len(truth)),
    )


@as_score(
    label="Quadratic kappa",
    better="higher",
    low=-1.0,
    influence=_quadratic_kappa_influence,
)
def quadratic_kappa(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the agreement of predicted and true grades beyond chance (Cohen, 1968).

    Classes are grades 0, 1, 2, ...; a disagreement counts by the square of its
    distance. Undefined, nan, where all items have one grade and are predicted to have
    it.

    >>> round(quadratic_kappa([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]], [0, 1]), 4)
    0.6667
    """
    guess, truth = _grades(probs, target)
    observed = float(np.square(guess - truth).mean())
    chance = float(guess.var() + truth.var() + (guess.mean() - truth.mean()) ** 2)
    return 1.0 - observed / chance if chance > 0.0 else float("nan")


def _grades(probs: ArrayLike, target: ArrayLike) -> tuple[Array, Array]:
    checked, truth = labelled(probs, target)
    return most_probable(checked).astype(np.float64), truth.astype(np.float64)


def _macro_auroc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    checked, truth = labelled(probs, target)
    classes = list(present_classes(truth))
    if len(classes) < 2:
        return undefined("all items are of one class")
    values, change = [], np.zeros(len(truth))
    for c in classes:
        rank = ranked_items(checked[:, c])
        values.append(class_auroc(rank.order, rank.start, truth, c))
        _add_placements(rank.order, rank.start, truth == c, values[-1], change)
    count = np.bincount(truth)[classes]
    smaller = float(np.minimum(count, len(truth) - count).min())
    return Influence(
        value=float(np.mean(values)),
        values=change / len(values),
        scale="logit",
        # As for one AUROC: a handful of items do not show their variance.
        inflation=1.0 + 3.0 / max(smaller - 1.0, 1.0),
        extreme=smaller,
        uncompared=few_of_a_kind(smaller),
        reason=_few_of_each(len(truth), len(values)),
    )


def _few_of_each(items: int, classes: int) -> str:
    """Return why a mean over classes has no interval; '' if it has one.

    A class with a few items has a score far from its own, which no spread shows.
    """
    if items >= FEWEST_OF_EACH * classes:
        return ""
    return (
        f"{items} items of {classes} classes: no interval holds with fewer than "
        f"{FEWEST_OF_EACH} of each on average"
    )


@jit
def _add_placements(
    order: Index, start: Index, positive: Flags, value: float, change: Array
) -> None:
    """Add the influence of each item on an AUROC of this `value`."""
    positives = positive.sum()
    negatives = len(positive) - positives
    above, below = 0, 0
    for group in range(len(start) - 1):
        inside = 0
        for place in range(start[group], start[group + 1]):
            inside += positive[order[place]]
        outside = start[group + 1] - start[group] - inside
        won = (below + outside / 2) / negatives
        lost = 1.0 - (above + inside / 2) / positives
        above += inside
        below += outside
        for place in range(start[group], start[group + 1]):
            item = order[place]
            if positive[item]:
                change[item] += (won - value) / positives
            else:
                change[item] += (lost - value) / negatives


@as_score(label="Macro AUROC", better="higher", influence=_macro_auroc_influence)
def macro_auroc(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the mean over classes of the AUROC of one class against the rest.

    Each AUROC is `auroc`, ties one half. Classes without items are left out; nan where
    all items are of one class. With two classes it is the AUROC of P(y=1).

    >>> macro_auroc([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.5, 0.4]], [0, 1, 2])
    1.0
    """
    checked, truth = labelled(probs, target)
    ranks = ((c, ranked_items(checked[:, c])) for c in present_classes(truth))
    aurocs = [class_auroc(rank.order, rank.start, truth, c) for c, rank in ranks]
    return float(np.mean(aurocs)) if len(aurocs) > 1 else float("nan")


@jit
def class_auroc(order: Index, start: Index, truth: Index, label: int) -> float:
    """Return the AUROC of the items of a class against the rest; nan without either.

    Counts of pairs are whole numbers and halves, so no order of adding them matters.
    """
    above, below, pairs = 0, 0, 0.0
    for group in range(len(start) - 1):
        positive = 0
        for place in range(start[group], start[group + 1]):
            positive += truth[order[place]] == label
        negative = start[group + 1] - start[group] - positive
        pairs += positive * (below + negative / 2)
        above += positive
        below += negative
    return pairs / (above * below) if above * below else np.nan


def present_classes(truth: ArrayLike) -> Iterator[int]:
    """Yield the classes with at least one item, in ascending order."""
    return map(int, np.unique(truth))
