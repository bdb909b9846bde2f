"""Influence on the scores of predicted classes."""

import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._arrays import Array, labelled
from qualms.scores.inference._influence import Influence, undefined


def balanced_accuracy_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the share found.

    In small classes the share found is often 0 or 1 and seems to vary not at all; its
    variance is therefore that of (hits + 1) among (items + 2).
    """
    checked, truth = labelled(probs, target)
    hit = (checked.argmax(axis=1) == truth).astype(np.float64)
    size = np.bincount(truth)
    found = np.bincount(truth, hit)
    present = size > 0
    classes = int(present.sum())
    recall = np.divide(found, size, out=np.zeros(len(size)), where=present)
    shrunk = (found[present] + 1.0) / (size[present] + 2.0)
    smallest = float(size[present].min())
    return Influence(
        value=float(recall.sum() / classes),
        values=(hit - recall[truth]) / size[truth] / classes,
        scale="logit",
        variance=float(np.sum(shrunk * (1.0 - shrunk) / size[present]) / classes**2),
        normal=True,
        extreme=smallest,
        # Errors that were not seen cost most where all are of the smallest class.
        floor=lambda chance: 1.0 - (1.0 - chance ** (1.0 / smallest)) / classes,
    )


def mcc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Correlation of predicted and true class."""
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    guess = checked.argmax(axis=1)
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
