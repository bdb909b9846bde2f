"""Class probabilities beside their targets: where a classification score starts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._arrays import Array, Flags, Index, labels, probabilities

# A probability of exactly zero would cost an infinite number of nats.
FLOOR = 1e-15


class Labelled(NamedTuple):
    """Items with their predicted probabilities and their targets."""

    probs: Array
    """(N, C) class probabilities, the mean over draws; rows sum to one."""
    target: Index
    """(N,) true classes."""


class TopLabel(NamedTuple):
    """What calibration is about: how sure of the predicted class, and was it right."""

    confidence: Array
    """(N,) probability of the predicted class."""
    correct: Flags
    """(N,) whether the predicted class is the target."""


def labelled(probs: ArrayLike, target: ArrayLike) -> Labelled:
    """Both arguments, checked against each other."""
    checked = probabilities(probs)
    items, classes = checked.shape
    return Labelled(checked, labels("target", target, classes=classes, length=items))


def top_label(probs: ArrayLike, target: ArrayLike) -> TopLabel:
    """Confidence and correctness of the predicted class, ties to the lowest class."""
    checked, truth = labelled(probs, target)
    predicted = checked.argmax(axis=1)
    return TopLabel(at_class(checked, predicted), predicted == truth)


def at_class(probs: Array, index: Index) -> Array:
    """(N,) the probability that each row of `probs` gives to its class in `index`."""
    picked: Array = probs[np.arange(len(index)), index]
    return picked
