"""Influence on the scores of predicted classes."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from qualms.scores._arrays import Array, Index, labelled, most_probable
from qualms.scores.inference._design import Design
from qualms.scores.inference._influence import Influence, undefined
from qualms.scores.inference._shares import effective_size, wilson


def balanced_accuracy_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the share found."""
    checked, truth = labelled(probs, target)
    return recall_influence(most_probable(checked) == truth, truth)


def recall_influence(correct: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the share of `correct` items, both (N,).

    In small classes the share found is often 0 or 1, and its sample variance nothing.
    Two classes get Wilson's intervals, combined by squares (MOVER; Zou & Donner, 2008);
    more classes the variances of (hits + 1) among (items + 2), on the logit scale.
    """
    hit = np.asarray(correct, dtype=np.float64)
    truth = np.asarray(target, dtype=np.int64)
    size = np.bincount(truth)
    found = np.bincount(truth, hit)
    present = size > 0
    classes = int(present.sum())
    recall = np.divide(found, size, out=np.zeros(len(size)), where=present)
    change = (hit - recall[truth]) / size[truth] / classes

    def ends(design: Design, level: float) -> tuple[float, float]:
        sizes = _effective_sizes(design, hit, truth, size)[present]
        combined = _by_squares if classes == 2 else _shrunk
        return combined(recall[present], sizes, level)

    return Influence(
        value=float(recall.sum() / classes),
        values=change,
        scale="logit",
        ends=ends,
        method="Wilson's interval in every class, by squares"
        if classes == 2
        else "variance of every class from one more hit and miss, logit scale",
    )


def _by_squares(recall: Array, size: Array, level: float) -> tuple[float, float]:
    ends = [
        wilson(float(r), float(n), level) for r, n in zip(recall, size, strict=True)
    ]
    low, high = np.array(ends).T
    value = float(recall.mean())
    below = float(np.linalg.norm(recall - low)) / len(recall)
    return value - below, value + float(np.linalg.norm(high - recall)) / len(recall)


def _shrunk(recall: Array, size: Array, level: float) -> tuple[float, float]:
    share = (recall * size + 1.0) / (size + 2.0)
    error = math.sqrt(float(np.sum(share * (1.0 - share) / size))) / len(recall)
    value, middle = float(recall.mean()), float(share.mean())
    if not 0.0 < value < 1.0:
        value = middle
    logit = math.log(value / (1.0 - value))
    reach = float(ndtri(0.5 + level / 2.0)) * error / (value * (1.0 - value))
    low, high = (float(expit(logit + step)) for step in (-reach, reach))
    found = float(recall.mean())
    return min(low, found), max(high, found)


def _effective_sizes(design: Design, hit: Array, truth: Index, size: Index) -> Array:
    """(C,) how many independent items of each class know its share equally well."""
    counts = size.astype(np.float64)
    if design.cluster is None:
        return counts
    for label in np.flatnonzero(size):
        inside = truth == label
        share = float(hit[inside].mean())
        change = np.where(inside, hit - share, 0.0) / size[label]
        spread = design.spread(change, inside.astype(np.int64))
        counts[label] = effective_size(share, spread, size[label])
    return counts


def mcc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Correlation of predicted and true class."""
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
    )


def _worst_correlation(chance: float, size: float, share: float) -> float:
    """The correlation when all errors that were not seen are of the smallest class."""
    found = chance ** (1.0 / size)
    missed = (1.0 - found) * share / (1.0 - share)
    return math.sqrt(found / (1.0 + missed))
