"""Scores of predicted classes and of their probabilities.

Every function takes `probs` as P(y=1) of shape (N,), class probabilities (N, C) or
draws (M, N, C), which are averaged, and `target` (N,) with classes 0..C-1. The
predicted class is the most probable one, ties (up to rounding) going to the lowest
class: for two classes it is 1 when P(y=1) > 0.5.
"""

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import as_score
from qualms.scores._arrays import (
    BLOCK,
    FLOOR,
    at_class,
    flags,
    labelled,
    labels,
    most_probable,
    top_label,
    vector,
)
from qualms.scores.resampling import Copies, Plan, counted, mean_of, share


def correct(probs: ArrayLike, target: ArrayLike) -> Flags:
    """(N,) whether the most probable class of each item is its target.

    >>> correct([0.1, 0.9, 0.8], [0, 1, 0])
    array([ True,  True, False])
    """
    return top_label(probs, target).correct


def item_nll(probs: ArrayLike, target: ArrayLike) -> Array:
    """(N,) negative log-likelihood of each item's target in nats, floored as in `nll`.

    >>> item_nll([0.5, 0.0], [1, 1]).round(2)
    array([ 0.69, 34.54])
    """
    checked, truth = labelled(probs, target)
    floor = np.full(checked.shape[1], FLOOR)
    if len(floor) == 2:
        # Two classes are P(y=1) clipped to [floor, 1 - floor] and its complement, as
        # in the per-item arrays of Band et al. (2021); it matters in the fifth digit.
        floor[0] = 1.0 - (1.0 - FLOOR)
    likelihood: Array = np.maximum(at_class(checked, truth), floor[truth])
    return -np.log(likelihood)


def item_brier(probs: ArrayLike, target: ArrayLike) -> Array:
    """(N,) squared distance of each item's probabilities to its one-hot target.

    >>> item_brier([0.5, 0.0], [1, 1])
    array([0.5, 2. ])
    """
    checked, truth = labelled(probs, target)
    squared = np.empty(len(truth))
    step = max(1, BLOCK // checked.shape[1])
    for start in range(0, len(truth), step):
        distance = checked[start : start + step].copy()
        distance[np.arange(len(distance)), truth[start : start + step]] -= 1.0
        squared[start : start + step] = np.einsum("nc,nc->n", distance, distance)
    return squared


def balanced_accuracy_plan(correct: ArrayLike, target: ArrayLike) -> Plan:
    """`balanced_accuracy` of items that are right or wrong, both arguments (N,)."""
    hit = flags("correct", correct)
    truth, classes = _classes("target", target, len(hit))
    cell = (2 * truth + hit).astype(np.uint32)

    def value(copies: Copies) -> Array:
        counts = counted(copies.weights, cell, 2 * classes)
        found, size = counts[:, 1::2], counts[:, ::2] + counts[:, 1::2]
        recall = found / np.maximum(size, 1)
        return share(recall.sum(axis=1), (size > 0).sum(axis=1))

    return Plan(len(hit), value)


def mcc_plan(predicted: ArrayLike, target: ArrayLike) -> Plan:
    """`mcc` of predicted and true classes, both (N,)."""
    truth, true_classes = _classes("target", target, None)
    guess, guessed_classes = _classes("predicted", predicted, len(truth))
    classes = max(true_classes, guessed_classes)
    cell = (truth * classes + guess).astype(np.uint32)

    def value(copies: Copies) -> Array:
        counts = counted(copies.weights, cell, classes**2)
        table = counts.reshape(-1, classes, classes)
        items, true, said = copies.total(), table.sum(axis=2), table.sum(axis=1)
        chance = (true * said).sum(axis=1)
        true_spread = items**2 - np.square(true).sum(axis=1)
        said_spread = items**2 - np.square(said).sum(axis=1)
        right = np.trace(table, axis1=1, axis2=2)
        return share(items * right - chance, np.sqrt(true_spread * said_spread))

    return Plan(len(truth), value)


def _balanced_accuracy_plan(probs: ArrayLike, target: ArrayLike) -> Plan:
    return balanced_accuracy_plan(correct(probs, target), target)


def _mcc_plan(probs: ArrayLike, target: ArrayLike) -> Plan:
    checked, truth = labelled(probs, target)
    return mcc_plan(most_probable(checked), truth)


@as_score(label="Accuracy", better="higher", plan=mean_of(correct))
def accuracy(probs: ArrayLike, target: ArrayLike) -> float:
    """Share of items whose most probable class is the target.

    >>> accuracy([0.1, 0.9, 0.8], [0, 1, 0])
    0.6666666666666666
    """
    return float(correct(probs, target).mean())


@as_score(label="NLL", better="lower", high=34.54, plan=mean_of(item_nll))
def nll(probs: ArrayLike, target: ArrayLike) -> float:
    """Mean negative log-likelihood of the target, in nats (log score; Good, 1952).

    Probabilities below 1e-15 count as 1e-15: an item that is certain and wrong costs
    34.5 nats, not infinitely many.

    >>> round(nll([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.6067
    """
    return float(item_nll(probs, target).mean())


@as_score(label="Brier", better="lower", high=2.0, plan=mean_of(item_brier))
def brier(probs: ArrayLike, target: ArrayLike) -> float:
    """Mean squared distance between probabilities and one-hot target (Brier, 1950).

    The squares are summed over all classes, so the range is 0..2 whatever C is. For
    two classes this is twice the mean of (P(y=1) - target)^2, which some libraries
    call by the same name.

    >>> round(brier([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.44
    """
    return float(item_brier(probs, target).mean())


@as_score(label="Balanced accuracy", better="higher", plan=_balanced_accuracy_plan)
def balanced_accuracy(probs: ArrayLike, target: ArrayLike) -> float:
    """Mean over the classes present in `target` of the share of their items found.

    >>> balanced_accuracy([0.1, 0.9, 0.8], [0, 1, 0])
    0.75
    """
    counts = _confusion(probs, target)
    size = counts.sum(axis=1)
    present = size > 0
    return float((counts.diagonal()[present] / size[present]).mean())


@as_score(label="MCC", better="higher", low=-1.0, plan=_mcc_plan)
def mcc(probs: ArrayLike, target: ArrayLike) -> float:
    """Correlation of predicted and true class, any number of classes (Gorodkin, 2004).

    Undefined, nan, when all items are predicted as one class or belong to one class.

    >>> mcc([0.1, 0.9, 0.8], [0, 1, 0])
    0.5
    """
    counts = _confusion(probs, target).astype(np.float64)
    true, predicted = counts.sum(axis=1), counts.sum(axis=0)
    items = counts.sum()
    spread = (items**2 - true @ true) * (items**2 - predicted @ predicted)
    if spread == 0.0:
        return float("nan")
    agreement = items * counts.trace() - true @ predicted
    return float(agreement / np.sqrt(spread))


def _confusion(probs: ArrayLike, target: ArrayLike) -> Index:
    """(C, C) how many items of each true class (row) got each predicted class."""
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    pair = truth * classes + most_probable(checked)
    return np.bincount(pair, minlength=classes**2).reshape(classes, classes)


def _classes(name: str, values: ArrayLike, length: int | None) -> tuple[Index, int]:
    """Classes 0, 1, ... (N,) and how many there may be."""
    classes = max(0, int(vector(name, values, length=length).max())) + 1
    return labels(name, values, classes=classes), classes
