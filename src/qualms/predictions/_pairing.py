"""What must agree between predictions that are pooled; differences in sentences."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._record import Maps, Predictions

_HEADER = ("dataset", "split", "fingerprint", "alpha", "ignore")
_ARRAYS = ("target", "group", "cluster", "shifted", "target_probs")
# The same number written in float32 and in float64 is still the same number.
_ROUNDING = 1e-6

Equal = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]


def check_same(first: Predictions, other: Predictions, names: tuple[str, str]) -> None:
    """Refuse to pool predictions on different data; `names` are those of the two."""
    a, b = names
    if first.task != other.task:
        _refuse(f"'{a}' holds {first.task} and '{b}' {other.task} predictions", names)
    for field in _HEADER:
        mine, theirs = getattr(first.header, field), getattr(other.header, field)
        # A foreign file need not say; then the items and targets decide.
        if mine is not None and theirs is not None and mine != theirs:
            _refuse(
                f"the {field} of '{a}' is {mine!r}, that of '{b}' {theirs!r}", names
            )
    if first.n != other.n:
        _refuse(f"'{a}' has {first.n} items, '{b}' {other.n}", names)
    _check_items(first, other, names)
    if first.classes != other.classes:
        _refuse(f"'{a}' has {first.classes} classes, '{b}' {other.classes}", names)
    for name in _ARRAYS:
        _check_array(name, first.get(name), other.get(name), names)


def check_same_item(first: Maps, other: Maps, row: int, names: tuple[str, str]) -> None:
    """Refuse to pool maps of one item that differ in classes, space or raters."""
    a, b = names
    mine, theirs = first.mean_probs.shape, other.mean_probs.shape
    if mine != theirs:
        _refuse(
            f"item {row} has mean_probs of shape {mine} in '{a}' and {theirs} in '{b}'",
            names,
        )
    if not np.array_equal(first.raters, other.raters):
        _refuse(f"the raters of item {row} differ between '{a}' and '{b}'", names)


def _refuse(difference: str, names: tuple[str, str]) -> None:
    raise PredictionsError(
        f"cannot pool '{names[0]}' and '{names[1]}': {difference}; pool only runs on "
        "the same items in the same order"
    )


def _check_items(
    first: Predictions, other: Predictions, names: tuple[str, str]
) -> None:
    mine, theirs = first.get("item"), other.get("item")
    if mine is None or theirs is None or np.array_equal(mine, theirs):
        return
    row = int(np.flatnonzero(mine != theirs)[0])
    a, b = names
    if set(mine.tolist()) == set(theirs.tolist()):
        _refuse(
            f"the items are the same but ordered differently, row {row} is "
            f"{str(mine[row])!r:.60} in '{a}' and {str(theirs[row])!r:.60} in '{b}'",
            names,
        )
    lacking = sorted(set(mine.tolist()) - set(theirs.tolist()))
    _refuse(f"item {lacking[0]!r:.60} of '{a}' is not in '{b}'", names)


def _check_array(
    name: str,
    mine: NDArray[Any] | None,
    theirs: NDArray[Any] | None,
    names: tuple[str, str],
) -> None:
    if mine is None or theirs is None:
        return
    same = _close if mine.dtype.kind == "f" else _identical
    differs = ~same(mine, theirs).reshape(len(mine), -1).all(axis=1)
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        _refuse(
            f"'{name}' differs, row {row} is {_shown(mine[row])} in '{names[0]}' and "
            f"{_shown(theirs[row])} in '{names[1]}'",
            names,
        )


def _close(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(a, b, rtol=_ROUNDING, atol=0.0))


def _identical(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    # Groups may be numbers in one file and the same numbers as text in another.
    if "U" in (a.dtype.kind, b.dtype.kind):
        a, b = a.astype(np.str_), b.astype(np.str_)
    return np.asarray(a == b)


def _shown(value: Any) -> str:
    return f"{value.tolist()!r:.60}"
