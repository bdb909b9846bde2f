"""Checks of the arrays that scores take; inside a score everything is float64.

No score computes with an empty array, a nan or a wrong shape. Every refusal is a
sentence that names the argument, the row, the value and what to do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Flags, Index
from qualms.scores._sums import join_largest, mean_rows
from qualms.scores.ties import TIE, first_largest

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["TopLabel", "mean_probabilities", "predicted_class", "top_label"]

# Largest error of a sum of probabilities that are renormalised.
SUM_TOLERANCE = 1e-3
# Largest rounding error of a sum of one.
EXACT = 64 * float(np.finfo(np.float64).eps)
# Means of probabilities that were stored in float32 are tied within this share of them:
# rounding moves each of two means by up to half of it, and a little is added.
SINGLE = 1.01 * float(np.finfo(np.float32).eps)
# Probabilities processed at a time: few enough to stay in a core's own cache.
BLOCK = 1 << 16
# Least likelihood: a probability of 0 would cost infinitely many nats.
FLOOR = 1e-15


# What other libraries call the arrays that are passed by name.
THEIRS = {
    "called": "y_pred",
    "correct": "y_pred == y_true",
    "positive": "y_true",
    "prob": "y_prob",
    "risk": "y_pred != y_true",
    "score": "y_score",
    "target": "y_true",
}

_ORDER = "probabilities come first: (probs=y_prob, target=y_true)"


class LabelledProbabilities(NamedTuple):
    """Items with their predicted probabilities and their targets."""

    probs: Array
    """(N, C) class probabilities, the mean over draws; rows sum to one."""
    target: Index
    """(N,) true classes."""


class TopLabel(NamedTuple):
    """The predicted class of every item: its probability and whether it is right."""

    confidence: Array
    """(N,) probability of the predicted class."""
    correct: Flags
    """(N,) True where the predicted class is the target."""


def by_name(function: F) -> F:
    """Let a function take its arrays by name only, and show the call in the error.

    Libraries differ in the order of their arguments, and numbers of a wrong order often
    look right. For functions in which the order can neither be told nor is without
    effect.
    """
    names = inspect.signature(function).parameters
    needed = [name for name, one in names.items() if one.default is one.empty]
    call = ", ".join(f"{name}={THEIRS.get(name, name)}" for name in needed)

    @wraps(function)
    def checked(*places: Any, **named: Any) -> Any:
        if places or not set(needed) <= named.keys() <= names.keys():
            raise TypeError(
                f"{function.__name__} takes its arrays by name, since libraries differ"
                f" in their order; write {function.__name__}({call})"
            )
        return function(**named)

    checked.__order__ = tuple(needed)  # type: ignore[attr-defined]
    return checked  # type: ignore[return-value]


def called_in_order(
    score: Callable[..., Any], /, *arrays: ArrayLike, **options: Any
) -> Any:
    """Return `score` of arrays in the order of its parameters, also if `by_name`."""
    function = score.func if isinstance(score, partial) else score
    names = getattr(function, "__order__", None)
    if names is None:
        return score(*arrays, **options)
    return score(**dict(zip(names, arrays, strict=False)), **options)


def as_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return `values` as one array; raise for a list of arrays of different shapes."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be one array of numbers, got a list whose parts differ in "
            "shape; join them first: np.concatenate([np.ravel(part) for part in list])"
        ) from None


def vector(name: str, values: ArrayLike, *, length: int | None = None) -> Array:
    """Return `values` as a finite, non-empty float64 vector (of `length`, if any)."""
    array = _numeric(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    _check_length(name, array, length)
    finite(name, array)
    return array


def matrix(name: str, values: ArrayLike, *, length: int | None = None) -> Array:
    """Return `values` as a finite, non-empty float64 matrix with `length` rows."""
    array = _numeric(name, values)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two axes, got shape {array.shape}")
    _check_length(name, array, length)
    finite(name, array)
    return array


def flags(name: str, values: ArrayLike, *, length: int | None = None) -> Flags:
    """Return `values` as booleans; numbers must be exactly 0 or 1."""
    array = as_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    _check_length(name, array, length)
    if array.dtype == np.bool_:
        return array
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"{name} must be 0 or 1 (or boolean), row {row} is {array[row]}"
        )
    return array.astype(np.bool_)


def labels(
    name: str, values: ArrayLike, *, classes: int, length: int | None = None
) -> Index:
    """Return `values` as classes 0..classes-1; 2.0 is read as 2, 2.5 is an error."""
    array = as_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    _check_length(name, array, length)
    if array.dtype.kind not in "iub":
        numbers = vector(name, array)
        wrong = np.flatnonzero(numbers != np.floor(numbers))
        if wrong.size:
            row = int(wrong[0])
            hint = f"; {_ORDER}" if name == "target" else ""
            raise ValueError(
                f"{name} must be whole numbers, row {row} is {array[row]}{hint}"
            )
    result = array.astype(np.int64, copy=False)
    if result.min() < 0 or result.max() >= classes:
        row = int(np.flatnonzero((result < 0) | (result >= classes))[0])
        raise ValueError(
            f"{name} must lie in 0..{classes - 1} for {classes} classes, "
            f"row {row} is {result[row]}"
        )
    return result


def mean_probabilities(probs: ArrayLike) -> Array:
    """Return class probabilities (N, C): the mean over draws, rows summing to one.

    Accepts P(y=1) of shape (N,), class probabilities (N, C), or draws (M, N, C). The
    order of the draws and of the classes changes no bit. If they were stored in
    float32, classes that are tied for the first place up to its rounding become equal.
    Besides the result, memory is that of a few items; an array (N, C) in float64 that
    needs no change is returned itself.
    """
    array = as_array("probs", probs)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probs must be numbers, got an array of {array.dtype}")
    if array.ndim not in (1, 2, 3) or array.size == 0:
        raise ValueError(
            "probs must be P(y=1) of shape (N,), class probabilities (N, C) or draws "
            f"(M, N, C) with at least one item, got shape {array.shape}"
        )
    if array.ndim == 1:
        if array.dtype.kind != "f":
            raise ValueError(
                f"probs must be probabilities, got whole numbers ({array.dtype}), as"
                f" classes are; {_ORDER}"
            )
        return _of_two_classes(array.astype(np.float64, copy=False))
    if array.shape[-1] < 2:
        _refuse_probabilities(array)
        raise ValueError(
            f"probs must have at least two classes on its last axis, got shape "
            f"{array.shape}; for P(y=1) pass shape (N,)"
        )
    if array.ndim == 3:
        return _mean_of_rows(array)
    ready = array.dtype == np.float64 and _all_exact(array)
    return array if ready else _mean_of_rows(array[None])


def labelled(probs: ArrayLike, target: ArrayLike) -> LabelledProbabilities:
    """Check both arguments, and their agreement, and return them."""
    checked = mean_probabilities(probs)
    items, classes = checked.shape
    return LabelledProbabilities(
        checked, labels("target", target, classes=classes, length=items)
    )


def top_label(probs: ArrayLike, target: ArrayLike) -> TopLabel:
    """Return confidence and correctness of the predicted class, ties to the lowest."""
    checked, truth = labelled(probs, target)
    predicted = most_probable(checked)
    return TopLabel(at_class(checked, predicted), predicted == truth)


def predicted_class(probs: ArrayLike) -> Index:
    """Return (N,) the most probable class of every item, ties to the lowest class.

    Accepts P(y=1) of shape (N,), class probabilities (N, C), or draws (M, N, C), which
    are averaged. Probabilities that differ by rounding alone are tied.

    >>> predicted_class([[0.2, 0.8], [0.5, 0.5], [0.49999999999999994, 0.5]])
    array([1, 0, 0])
    """
    return most_probable(mean_probabilities(probs))


def most_probable(probs: Array) -> Index:
    """Return `predicted_class` of probabilities (N, C) that are checked already."""
    if probs.shape[1] == 2:
        return (probs[:, 1] - probs[:, 0] > TIE * probs[:, 0]).astype(np.int64)
    classes = np.empty(len(probs), dtype=np.int64)
    step = max(1, BLOCK // probs.shape[1])
    for start in range(0, len(probs), step):
        # Another memory layout would be compiled separately.
        block = np.require(probs[start : start + step], np.float64, ["C", "W"])
        classes[start : start + step] = first_largest(block, TIE)
    return classes


def at_class(probs: Array, index: Index) -> Array:
    """Return the probability (N,) that each row gives to its class in `index`."""
    if probs.shape[1] == 2:  # several times faster
        return np.where(index == 1, probs[:, 1], probs[:, 0])
    picked: Array = probs[np.arange(len(index)), index]
    return picked


def not_negative(name: str, values: ArrayLike, *, length: int | None = None) -> Array:
    """Return `values` as a vector of numbers that are 0 or more, such as weights."""
    array = vector(name, values, length=length)
    if array.min() < 0.0:
        row = int(np.argmax(array < 0.0))
        raise ValueError(f"{name} must not be negative, row {row} is {array[row]:g}")
    return array


def open_unit(name: str, value: float) -> None:
    """Raise unless a level or alpha lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")


def finite(name: str, array: NDArray[Any], *, remedy: str = "") -> None:
    """Raise for nan and infinity; the message names the first and a `remedy`."""
    if np.isfinite(array).all():
        return
    where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    place = f"row {where[0]}" if len(where) == 1 else f"position {where}"
    raise ValueError(f"{name} must be finite, {place} is {array[where]}{remedy}")


def _of_two_classes(prob: Array) -> Array:
    """Return (N, 2) from P(y=1) of shape (N,)."""
    finite("probs", prob)
    _check_unit_interval(prob)
    return np.stack([1.0 - prob, prob], axis=1)


def _all_exact(rows: Array) -> bool:
    """Return whether all `rows` (N, C) are probabilities with a sum of one."""
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        # einsum sums short rows several times faster than sum(axis=-1).
        off = np.abs(np.einsum("nc->n", block) - 1.0).max()
        if not (off <= EXACT / 2 and block.min() >= 0.0 and block.max() <= 1.0):
            return False
    return True


def _mean_of_rows(draws: NDArray[Any]) -> Array:
    """Return the mean (N, C) over draws (M, N, C), with sums of one."""
    count, items, classes = draws.shape
    single = _is_single(draws)
    mean = np.empty((items, classes))
    step = max(1, BLOCK // (count * classes))
    for start in range(0, items, step):
        block = np.require(draws[:, start : start + step], np.float64, ["C", "W"])
        place = mean[start : start + step]
        if not mean_rows(block, place, EXACT, SUM_TOLERANCE):
            _refuse_probabilities(draws)
        if single:
            join_largest(place, SINGLE)
    return mean


def _is_single(draws: NDArray[Any]) -> bool:
    """Return whether probabilities (M, N, C) were stored with at most 32 bits."""
    if draws.dtype.kind == "f" and draws.dtype.itemsize <= 4:
        return True
    if draws.shape[-1] != 2 or draws.dtype != np.float64:
        return False
    # P(y=1) was stored, and the other class is one minus it.
    return _fits_single(draws[:, :16, 1]) and _fits_single(draws[..., 1])


def _fits_single(values: NDArray[Any]) -> bool:
    return bool((values == values.astype(np.float32)).all())


def _refuse_probabilities(array: NDArray[Any]) -> None:
    """Raise if an array does not hold probabilities."""
    finite("probs", array)
    _check_unit_interval(array)
    # einsum sums short rows several times faster than sum(axis=-1).
    total = np.einsum("...c->...", array, dtype=np.float64)
    off = np.abs(total - 1.0)
    where = np.unravel_index(int(off.argmax()), off.shape)
    if off[where] > SUM_TOLERANCE:
        raise ValueError(
            f"probs must sum to 1 over the last axis, row {int(where[-1])} sums to "
            f"{float(total[where]):.6g}; pass softmax outputs, not logits"
        )


def _check_unit_interval(array: NDArray[Any]) -> None:
    if array.min() >= 0.0 and array.max() <= 1.0:
        return
    wrong = (array < 0.0) | (array > 1.0)
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise ValueError(
        f"probs must lie in [0, 1], position {where} is {array[where]:.6g}; "
        "if these are logits, apply softmax or sigmoid first"
    )


def _numeric(name: str, values: ArrayLike) -> Array:
    array = as_array(name, values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of {array.dtype}")
    return array.astype(np.float64, copy=False)


def _check_length(name: str, array: NDArray[Any], length: int | None) -> None:
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one item, got none")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} items, got {len(array)}")
