"""Simulated annotators: the more ambiguous a picture, the more their votes differ.

Each annotator takes the picture of class c for class k with a probability that falls
with the distance between the portraits of c and k. The ambiguity of the picture widens
this distribution, and so does the carelessness of the annotator.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.species.canvas import Floats

FEWEST, MOST = 20, 50
"""Annotators of a picture."""
SHARPEST, WIDEST = 0.12, 1.3
"""Width of the confusion at ambiguity 0 and 1, in mean distances between classes."""
CARELESSNESS = 0.25
"""Standard deviation of the logarithm of an annotator's width."""


def class_distances(portraits: Floats) -> NDArray[np.float64]:
    """Distances (K, K) between portraits (K, side, side, 3); their mean is 1."""
    flat = portraits.reshape(len(portraits), -1).astype(np.float64)
    apart = np.sqrt(((flat[:, None] - flat[None]) ** 2).mean(axis=2))
    classes = len(apart)
    scaled: NDArray[np.float64] = apart * (classes * (classes - 1) / apart.sum())
    return scaled


def annotator_votes(
    distance: NDArray[np.float64], ambiguity: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many annotators vote for each class.

    Args:
        distance: (K,) distances from the class of the picture to every class.
        ambiguity: of the picture, 0 to 1.
        rng: draws the annotators and their votes.
    """
    annotators = int(rng.integers(FEWEST, MOST + 1))
    width = SHARPEST * (WIDEST / SHARPEST) ** ambiguity
    widths = width * np.exp(CARELESSNESS * rng.standard_normal(annotators))
    chance = np.exp(-0.5 * (distance[None] / widths[:, None]) ** 2)
    edges = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    chosen = (rng.random((annotators, 1)) > edges).sum(axis=1)
    return np.bincount(np.minimum(chosen, len(distance) - 1), minlength=len(distance))
