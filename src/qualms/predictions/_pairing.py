"""Comparing the items of predictions, as pools and paired tests require.

Items and names compare as texts, and targets within the resolution of float32, so that
a file and its copy in another format hold the same items.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, shortened
from qualms.predictions._record import Maps, Predictions

_HEADER = ("dataset", "split", "fingerprint", "alpha", "ignore", "regions")
_ARRAYS = ("target", "known", "group", "cluster", "shifted", "target_probs")
# Arrays that decide how items are drawn and counted.
_DESIGN = ("cluster", "shifted", "known")
# Relative error within which numbers of float32 and float64 are equal.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """Digests of the names in one file, and its targets, for `same_items`."""

    n: int
    digests: Mapping[str, str]
    target: NDArray[Any] | None = None


def pairing(predictions: Predictions) -> Pairing:
    """Return the parts of these predictions that `same_items` compares."""
    names = [name for name in ("item", *_DESIGN) if predictions.get(name) is not None]
    return Pairing(
        n=predictions.n,
        digests={name: _digest(predictions.arrays[name]) for name in names},
        target=predictions.get("target"),
    )


def same_items(first: Pairing, other: Pairing) -> bool:
    """Return whether two files hold equal items in equal order, with equal targets.

    One file may leave out the names of its items, or its targets. Clusters and the
    arrays `shifted` and `known` must be in both or in neither, since they decide how
    items are drawn and counted.

    >>> from qualms.predictions import build
    >>> a = build({"target": [0, 1], "prob": [0.2, 0.9], "item": [7, 8]})
    >>> b = build({"target": [0, 1], "prob": [0.3, 0.6], "item": ["7", "8"]})
    >>> same_items(pairing(a), pairing(b))
    True
    """
    if first.n != other.n:
        return False
    for name in ("item", *_DESIGN):
        digests = first.digests.get(name), other.digests.get(name)
        optional = name == "item" and None in digests
        if digests[0] != digests[1] and not optional:
            return False
    if first.target is None or other.target is None:
        return True
    return bool(_same(first.target, other.target).all())


def check_same(first: Predictions, other: Predictions, names: tuple[str, str]) -> None:
    """Raise unless predictions on equal data can be pooled; `names` are their names."""
    a, b = names
    if first.task != other.task:
        _refuse(f"'{a}' holds {first.task} and '{b}' {other.task} predictions", names)
    for field in _HEADER:
        value, other_value = getattr(first.header, field), getattr(other.header, field)
        # Foreign files may leave the field out; then the items and targets decide.
        if value is not None and other_value is not None and value != other_value:
            _refuse(
                f"the {field} of '{a}' is {_value(value)}, that of '{b}' "
                f"{_value(other_value)}",
                names,
            )
    if first.n != other.n:
        _refuse(f"'{a}' has {first.n} items, '{b}' {other.n}", names)
    _check_items(first, other, names)
    if first.classes != other.classes:
        _refuse(f"'{a}' has {first.classes} classes, '{b}' {other.classes}", names)
    for name in _ARRAYS:
        _check_array(name, first.get(name), other.get(name), names)


def check_same_item(first: Maps, other: Maps, row: int, names: tuple[str, str]) -> None:
    """Raise if two maps of one item differ in classes, space or raters."""
    a, b = names
    shape, other_shape = first.mean_probs.shape, other.mean_probs.shape
    if shape != other_shape:
        _refuse(
            f"item {row} has mean_probs of shape {shape} in '{a}' and {other_shape} in"
            f" '{b}'",
            names,
        )
    if not np.array_equal(first.raters, other.raters):
        _refuse(f"the raters of item {row} differ between '{a}' and '{b}'", names)


def _refuse(difference: str, names: tuple[str, str]) -> NoReturn:
    raise PredictionsError(
        f"cannot pool '{names[0]}' and '{names[1]}': {difference}; pool only runs on "
        "the same items in the same order"
    )


def _check_items(
    first: Predictions, other: Predictions, names: tuple[str, str]
) -> None:
    items, other_items = first.get("item"), other.get("item")
    if items is None or other_items is None or np.array_equal(items, other_items):
        return
    row = int(np.flatnonzero(items != other_items)[0])
    a, b = names
    if set(items.tolist()) == set(other_items.tolist()):
        _refuse(
            f"the items are the same but ordered differently, row {row} is "
            f"{_value(str(items[row]))} in '{a}' and {_value(str(other_items[row]))}"
            f" in '{b}'",
            names,
        )
    missing = sorted(set(items.tolist()) - set(other_items.tolist()))
    _refuse(f"item {_value(missing[0])} of '{a}' is not in '{b}'", names)


def _check_array(
    name: str,
    array: NDArray[Any] | None,
    other_array: NDArray[Any] | None,
    names: tuple[str, str],
) -> None:
    if array is None or other_array is None:
        return
    different = ~_same(array, other_array).reshape(len(array), -1).all(axis=1)
    if different.any():
        row = int(np.flatnonzero(different)[0])
        _refuse(
            f"'{name}' differs, row {row} is {_value(array[row].tolist())} in "
            f"'{names[0]}' and {_value(other_array[row].tolist())} in '{names[1]}'",
            names,
        )


def _same(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    if a.dtype.kind == "f":
        return np.asarray(np.isclose(a, b, rtol=_ROUNDING, atol=0.0))
    # Names may be numbers in one file and the same numbers as text in another.
    if "U" in (a.dtype.kind, b.dtype.kind):
        a, b = a.astype(np.str_), b.astype(np.str_)
    return np.asarray(a == b)


def _digest(array: NDArray[Any]) -> str:
    """Return a digest of the values as texts, whatever their dtype and width."""
    return hashlib.sha256(
        json.dumps(list(map(str, array.tolist()))).encode()
    ).hexdigest()


def _value(value: Any) -> str:
    return shortened(repr(value))
