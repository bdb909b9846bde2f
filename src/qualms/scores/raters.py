"""Raters: their disagreement with each other, and their agreement with predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array
from qualms.scores._about import as_score
from qualms.scores._pixels import (
    IGNORED,
    check_same_space,
    check_stack,
    checked_labels,
    pixel_mask,
    real_map,
)
from qualms.scores._sums import plain_dot
from qualms.scores.arguments import as_array

__all__ = [
    "Agreement",
    "Defined",
    "mean_defined",
    "ncc",
    "rater_agreement",
    "rater_variance",
]

MASKED = "; leave pixels out by mask=, for example mask=~np.isnan(reference)"


class Agreement(NamedTuple):
    """Numbers of raters per pixel: those who agree with the prediction, and all."""

    correct: NDArray[np.integer[Any]]
    total: NDArray[np.integer[Any]]


class Defined(NamedTuple):
    """A mean over the defined values, and the number of others."""

    mean: float
    left_out: int


@as_score(label="NCC", better="higher", low=-1.0)
def ncc(
    uncertainty: ArrayLike, reference: ArrayLike, *, mask: ArrayLike | None = None
) -> float:
    """Return the normalised cross-correlation of two maps (Hu et al., 2019).

    Args:
        uncertainty: Predicted map, any shape.
        reference: Reference map, for instance `rater_variance`.
        mask: True where a pixel counts.

    Returns:
        The correlation; nan if either map is constant, see `mean_defined`.

    >>> ncc(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.5, 1.0])).__round__(9)
    1.0
    """
    names = ("uncertainty", "reference")
    predicted, expected = map(as_array, names, (uncertainty, reference))
    check_same_space(names, predicted.shape, expected.shape)
    if mask is not None:
        chosen = pixel_mask(mask, predicted.shape)
        predicted, expected = predicted[chosen], expected[chosen]
        if chosen.size and not predicted.size:
            return float("nan")
    remedy = "" if mask is not None else MASKED
    a, b = (
        real_map(name, values, remedy=remedy)
        for name, values in zip(names, (predicted, expected), strict=True)
    )
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return float("nan")
    a, b = _centred(a), _centred(b)
    scale = np.sqrt(plain_dot(a, a) * plain_dot(b, b))
    return float(plain_dot(a, b) / scale)


def rater_variance(raters: ArrayLike, *, ignore: int | None = None) -> Array:
    """Return the disagreement of raters (R, *space) at every pixel, (*space).

    Pairs of raters that disagree over R squared. For two classes this is the
    population variance p (1 - p) of the label (Kahl et al., 2024); for more it is half
    the Gini impurity, half the summed variance of the one-hot labels. A pixel that any
    rater `ignore`s is nan: leave it out of `ncc` by its mask.

    >>> rater_variance(np.array([[0, 1], [1, 1]]))
    array([0.25, 0.  ])
    """
    rated = checked_labels("raters", raters, classes=IGNORED, ignore=ignore)
    check_stack("raters", rated)
    pairs = np.zeros(rated.shape[1:])
    for i in range(1, len(rated)):
        pairs += (rated[:i] != rated[i]).sum(axis=0)
    if ignore is not None:
        pairs[(rated == IGNORED).any(axis=0)] = np.nan
    return pairs / len(rated) ** 2


def rater_agreement(
    prediction: ArrayLike, raters: ArrayLike, *, ignore: int | None = None
) -> Agreement:
    """Return per pixel the number of raters (R, *space) who agree with `prediction`.

    A rater who marks a pixel `ignore` does not count there; a pixel that all raters
    ignore has a total of 0 and carries no weight in `ace` and `fit_platt`.

    >>> rater_agreement(np.array([0, 1]), np.array([[0, 0], [0, 255]]), ignore=255)
    Agreement(correct=array([2, 0], dtype=uint8), total=array([2, 1], dtype=uint8))
    """
    rated = checked_labels("raters", raters, classes=IGNORED, ignore=ignore)
    check_stack("raters", rated)
    predicted = checked_labels("prediction", prediction, classes=IGNORED, ignore=ignore)
    names = ("prediction", "raters")
    check_same_space(names, predicted.shape, rated.shape[1:])
    marked = rated != IGNORED
    if (marked & (predicted == IGNORED)).any():
        raise ValueError(
            f"prediction must name a class wherever a rater does, got {ignore} there"
        )
    correct = (rated == predicted) & marked
    return Agreement(
        correct.sum(axis=0, dtype=np.uint8), marked.sum(axis=0, dtype=np.uint8)
    )


def mean_defined(values: ArrayLike) -> Defined:
    """Return the mean of the values that are not nan, and the number of nan.

    >>> mean_defined(np.array([0.5, np.nan, 1.0]))
    Defined(mean=0.75, left_out=1)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"values must be at least one number, got {array.shape}")
    if np.isinf(array).any():
        row = int(np.flatnonzero(np.isinf(array))[0])
        raise ValueError(f"values must be finite or nan, row {row} is {array[row]}")
    defined = array[~np.isnan(array)]
    mean = float(defined.mean()) if defined.size else float("nan")
    return Defined(mean, int(array.size - defined.size))


def _centred(values: Array) -> Array:
    """Return deviations from the mean, scaled so that no square overflows."""
    deviation = values.ravel() - values.mean()
    scaled: Array = deviation / np.abs(deviation).max()
    return scaled
