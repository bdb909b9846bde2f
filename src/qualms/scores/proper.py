"""Scores of predicted classes and of their probabilities.

Every function takes `probs` as P(y=1) of shape (N,), class probabilities (N, C) or
draws (M, N, C), which are averaged, and `target` (N,) with classes 0..C-1. The
predicted class is the most probable one, ties (up to rounding) going to the lowest
class: for two classes it is 1 when P(y=1) > 0.5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index
from qualms.scores._about import about, as_score
from qualms.scores.arguments import (
    BLOCK,
    FLOOR,
    at_class,
    by_name,
    labelled,
    mean_probabilities,
    most_probable,
    top_label,
)
from qualms.scores.influence import (
    FEWEST_ERRORS,
    Influence,
    Strata,
    losses_of_rare_errors,
    mean_influence,
    undefined,
    with_rare_errors,
)

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "brier",
    "correct",
    "expected_brier",
    "expected_nll",
    "item_brier",
    "item_nll",
    "mcc",
    "nll",
]


def correct(probs: ArrayLike, target: ArrayLike) -> Flags:
    """Return a mask (N,) of items whose most probable class is the target.

    >>> correct([0.1, 0.9, 0.8], [0, 1, 0])
    array([ True,  True, False])
    """
    return top_label(probs, target).correct


def item_nll(probs: ArrayLike, target: ArrayLike) -> Array:
    """Return each target's negative log-likelihood (N,) in nats, floored as in `nll`.

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
    """Return (N,) squared distance of each item's probabilities to its one-hot target.

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


def recall_influence(correct: ArrayLike, target: ArrayLike) -> Influence:
    """Return the influence on the mean over classes of the share of `correct` items.

    Both are (N,). In small classes the share is often 0 or 1 with a sample variance of
    0, so the interval is made from the shares of the classes.
    """
    hit = np.asarray(correct, dtype=np.float64)
    truth = np.asarray(target, dtype=np.int64)
    size = np.bincount(truth)
    hits = np.bincount(truth, hit)
    present = size > 0
    classes = int(present.sum())
    recall = np.divide(hits, size, out=np.zeros(len(size)), where=present)
    return Influence(
        value=float(recall.sum() / classes),
        values=(hit - recall[truth]) / size[truth] / classes,
        scale="logit",
        construction=Strata(hit, truth, "mean"),
        step=1.0 / (classes * size[present]),
    )


def _balanced_accuracy_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    checked, truth = labelled(probs, target)
    return recall_influence(most_probable(checked) == truth, truth)


def _nll_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    # The bound of 34.54 nats is no property of the score; the scale is that of a mean.
    influence = mean_influence(item_nll(probs, target))
    influence = dataclasses.replace(influence, skewed=False)
    checked, truth = labelled(probs, target)
    return _of_errors(
        influence, checked, truth, lambda p: -np.log(np.maximum(p, FLOOR))
    )


def _brier_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    checked, truth = labelled(probs, target)
    square = np.einsum("nc,nc->n", checked, checked)
    likelihood = checked[np.arange(len(truth)), truth]
    distance: Array = np.maximum(square - 2.0 * likelihood + 1.0, 0.0)
    influence = mean_influence(distance, about=about(brier))
    return _of_errors(influence, checked, truth, lambda p: -2.0 * p, square + 1.0)


def _of_errors(
    influence: Influence,
    probs: Array,
    target: Index,
    loss: Callable[[Array], Array],
    shared: Array | float = 0.0,
) -> Influence:
    """Return `influence`, with the interval of rare errors if few items are wrong.

    Wrong items have most of the loss, so with few of them its spread is luck. The loss
    of an item is `shared` plus the `loss` of the probability of its class.
    """
    wrong = most_probable(probs) != target
    if min(wrong.sum(), (~wrong).sum()) >= FEWEST_ERRORS:
        return influence
    right, other = (shared + part for part in _expected_losses(probs, loss))
    ends = losses_of_rare_errors(right, other - right)
    return with_rare_errors(influence, wrong, ends)


def _expected_losses(
    probs: Array, loss: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return the `loss` (N,) of the most probable class, and the mean of others."""
    right, other = np.empty((2, len(probs)))
    step = max(1, BLOCK // probs.shape[1])
    for start in range(0, len(probs), step):
        block = probs[start : start + step]
        top = most_probable(block)[:, None]
        lost = loss(block)
        weight = block + FLOOR
        np.put_along_axis(weight, top, 0.0, axis=1)
        right[start : start + step] = np.take_along_axis(lost, top, axis=1)[:, 0]
        mean = (weight * lost).sum(axis=1) / weight.sum(axis=1)
        other[start : start + step] = mean
    return right, other


def _mcc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    guess = most_probable(checked)
    hit = (guess == truth).astype(np.float64)
    true = np.bincount(truth, minlength=classes) / items
    guessed = np.bincount(guess, minlength=classes) / items
    true_spread, guess_spread = 1.0 - true @ true, 1.0 - guessed @ guessed
    if min((true > 0).sum(), (guessed > 0).sum()) < 2:
        return undefined("all items are of one class, or predicted as one class")
    right, chance = float(hit.mean()), float(true @ guessed)
    scale = float(np.sqrt(true_spread * guess_spread))
    value = (right - chance) / scale
    agreement = hit - right - (true[guess] + guessed[truth] - 2.0 * chance)
    spread = (guessed[guess] - guessed @ guessed) / guess_spread
    spread += (true[truth] - true @ true) / true_spread
    change: Array = (agreement / scale + value * spread) / items
    least = float(true[true > 0].min())
    return Influence(
        value=value,
        values=change - change.mean(),
        scale="fisher",
        low=-1.0,
        extreme=items * least,
        floor=lambda chance: _worst_correlation(chance, items * least, least),
        step=1.0 / (items * scale),
    )


def _worst_correlation(chance: float, size: float, share: float) -> float:
    """Return the correlation if all unseen errors are in the smallest class."""
    recall = chance ** (1.0 / size)
    missed = (1.0 - recall) * share / (1.0 - share)
    return math.sqrt(recall / (1.0 + missed))


@as_score(label="Accuracy", better="higher", items=correct)
def accuracy(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the share of items whose most probable class is the target.

    >>> accuracy([0.1, 0.9, 0.8], [0, 1, 0])
    0.6666666666666666
    """
    return float(correct(probs, target).mean())


@as_score(label="NLL", better="lower", high=34.54, influence=_nll_influence)
def nll(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the mean negative log-likelihood in nats (log score; Good, 1952).

    Probabilities below 1e-15 count as 1e-15: an item that is certain and wrong costs
    34.5 nats, not infinitely many.

    >>> round(nll([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.6067
    """
    return float(item_nll(probs, target).mean())


@as_score(label="Brier", better="lower", high=2.0, influence=_brier_influence)
def brier(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the mean squared distance to the one-hot target (Brier, 1950).

    The squares are summed over all classes, so the range is 0..2 whatever C is. For
    two classes this is twice the mean of (P(y=1) - target)^2, which some libraries
    call by the same name.

    >>> round(brier([0.1, 0.9, 0.8], [0, 1, 0]), 4)
    0.44
    """
    return float(item_brier(probs, target).mean())


def item_expected_nll(probs: ArrayLike, target_probs: ArrayLike) -> Array:
    """Return (N,) the NLL expected of a class that `target_probs` draws."""
    checked, true = _stated_and_true(probs, target_probs)
    expected: Array = -np.einsum("nc,nc->n", true, np.log(np.maximum(checked, FLOOR)))
    return expected


def item_expected_brier(probs: ArrayLike, target_probs: ArrayLike) -> Array:
    """Return (N,) the Brier score expected of a class that `target_probs` draws."""
    checked, true = _stated_and_true(probs, target_probs)
    off: Array = checked - true
    spread = 1.0 - np.einsum("nc,nc->n", true, true)
    expected: Array = np.einsum("nc,nc->n", off, off) + spread
    return expected


def _expected_nll_influence(probs: ArrayLike, target_probs: ArrayLike) -> Influence:
    checked, true = _stated_and_true(probs, target_probs)
    if _certain(true):
        return _nll_influence(checked, most_probable(true))
    return mean_influence(item_expected_nll(checked, true))


def _expected_brier_influence(probs: ArrayLike, target_probs: ArrayLike) -> Influence:
    checked, true = _stated_and_true(probs, target_probs)
    if _certain(true):
        return _brier_influence(checked, most_probable(true))
    return mean_influence(item_expected_brier(checked, true), about=about(brier))


def _certain(true: Array) -> bool:
    """Return whether every item has one class, so that few may be wrong."""
    return bool((true.max(axis=1) == 1.0).all())


@as_score(
    label="Expected NLL", better="lower", high=34.54, influence=_expected_nll_influence
)
@by_name
def expected_nll(*, probs: ArrayLike, target_probs: ArrayLike) -> float:
    """Return the mean NLL of classes drawn from the distributions `target_probs`.

    `target_probs` (N, C) is the true distribution of each item's class, such as the
    shares of votes; for two classes P(y=1) (N,) as well. It is the cross-entropy, and
    least, the entropy of `target_probs`, where `probs` equals it.

    >>> round(expected_nll(probs=[0.5, 0.9], target_probs=[0.5, 0.5]), 4)
    0.9486
    """
    return float(item_expected_nll(probs, target_probs).mean())


@as_score(
    label="Expected Brier",
    better="lower",
    high=2.0,
    influence=_expected_brier_influence,
)
@by_name
def expected_brier(*, probs: ArrayLike, target_probs: ArrayLike) -> float:
    """Return the mean Brier score of classes drawn from `target_probs`.

    The arguments are those of `expected_nll`.

    >>> expected_brier(probs=[0.5, 0.9], target_probs=[0.5, 0.5])
    0.66
    """
    return float(item_expected_brier(probs, target_probs).mean())


def _stated_and_true(probs: ArrayLike, target_probs: ArrayLike) -> tuple[Array, Array]:
    """Return both as checked distributions (N, C)."""
    checked = mean_probabilities(probs)
    if np.ndim(target_probs) == 3:
        raise ValueError(
            "target_probs must be the distribution of each item, of shape (N, C), got "
            f"shape {np.shape(target_probs)}"
        )
    true = mean_probabilities(target_probs)
    if true.shape != checked.shape:
        raise ValueError(
            f"target_probs must have the shape of the probabilities, {checked.shape}, "
            f"got {true.shape}"
        )
    return checked, true


@as_score(
    label="Balanced accuracy", better="higher", influence=_balanced_accuracy_influence
)
def balanced_accuracy(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the mean over the classes in `target` of the share of their items found.

    >>> balanced_accuracy([0.1, 0.9, 0.8], [0, 1, 0])
    0.75
    """
    counts = _confusion(probs, target)
    size = counts.sum(axis=1)
    present = size > 0
    return float((counts.diagonal()[present] / size[present]).mean())


@as_score(label="MCC", better="higher", low=-1.0, influence=_mcc_influence)
def mcc(probs: ArrayLike, target: ArrayLike) -> float:
    """Return the correlation of predicted and true classes (Gorodkin, 2004).

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
    """Return the number of items by true class (row) and predicted class."""
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    pair = truth * classes + most_probable(checked)
    return np.bincount(pair, minlength=classes**2).reshape(classes, classes)
