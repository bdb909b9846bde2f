"""The values of an array by its kind: numbers, classes, flags, items, names, bytes.

Every function takes the array in the shape it was given in, and answers with the normal
dtype; a refusal names the array, the row and the value.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError
from qualms.predictions._schema import AXES, Field, Kind


def normal_values(
    field: Field, name: str, array: NDArray[Any], axes: str, sizes: Mapping[str, int]
) -> NDArray[Any]:
    """`array` checked and in the dtype of its field's kind."""
    with np.errstate(all="ignore"):
        made = _KINDS[field.kind](field, name, array, axes, sizes)
    return np.ascontiguousarray(made)


def place(axes: str, index: Sequence[Any], skip: str = "") -> str:
    """Where in an array: 'draw 0, row 3, class 1'; space is given as one position."""
    named = [
        f"{AXES[axis]} {int(i)}"
        for axis, i in zip(axes, index, strict=False)
        if axis not in skip
    ]
    rest = tuple(int(i) for i in index[len(axes) :])
    return ", ".join([*named, *([f"position {rest}"] if rest else [])])


class Span(NamedTuple):
    """The smallest and the largest value of an array, exact for integers too."""

    low: float
    high: float


def finite(name: str, array: NDArray[Any], axes: str) -> Span:
    """The range of `array`; nan and infinity are refused."""
    span = Span(array.min().item(), array.max().item())
    if np.isfinite(span.low) and np.isfinite(span.high):
        return span
    where = tuple(np.argwhere(~np.isfinite(array))[0])
    raise PredictionsError(
        f"array '{name}' must be finite, {place(axes, where)} is {array[where]}; "
        "correct the value or leave the item out"
    )


def numbers(name: str, array: NDArray[Any], hint: str = "") -> NDArray[Any]:
    """`array` if its dtype is one of numbers or booleans."""
    if array.dtype.kind in "fiub":
        return array
    got = f"{array.dtype}"
    if array.dtype.kind in "US" and array.size:
        got = f"text such as {array.flat[0].item()!r:.60}"
    raise PredictionsError(
        f"array '{name}' must be numbers, got {got}; {hint or 'convert it'}"
    )


def _real(
    field: Field, name: str, array: NDArray[Any], axes: str, _: Mapping[str, int]
) -> NDArray[Any]:
    given = numbers(name, array)
    low, high = finite(name, given, axes)
    made = given.astype(field.dtype, copy=False)
    if made is not given:
        low, high = finite(name, made, axes)
    if low < field.low or high > field.high:
        wrong = (made < field.low) | (made > field.high)
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must be at least {field.low:g}, {place(axes, where)} is "
            f"{float(made[where]):.6g}; correct the value or leave the item out"
        )
    return made


def _class(
    field: Field, name: str, array: NDArray[Any], axes: str, sizes: Mapping[str, int]
) -> NDArray[Any]:
    given = numbers(name, array, "encode the classes as whole numbers 0..C-1")
    low, high = finite(name, given, axes)
    whole(name, given, axes)
    classes = sizes.get("C")
    limit = 2**63 if classes is None else classes
    if low >= 0 and high < limit:
        return given.astype(np.int64, copy=False)
    where = tuple(np.argwhere((given < 0) | (given >= limit))[0])
    wanted = "0 or more" if classes is None else f"0..{limit - 1} for {limit} classes"
    raise PredictionsError(
        f"array '{name}' must lie in {wanted}, {place(axes, where)} is "
        f"{given[where]:g}; {field.hint}"
    )


def whole(name: str, array: NDArray[Any], axes: str) -> None:
    """Refuse numbers with a fraction."""
    if array.dtype.kind != "f":
        return
    wrong = array != np.floor(array)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must be whole numbers, {place(axes, where)} is "
            f"{float(array[where]):.6g}; correct it"
        )


def _flag(
    _: Field, name: str, array: NDArray[Any], axes: str, __: Mapping[str, int]
) -> NDArray[Any]:
    if array.dtype.kind == "b":
        return array
    given = numbers(name, array, "write true or false, as 1 or 0")
    wrong = (given != 0) & (given != 1)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must be true or false (1 or 0), {place(axes, where)} is "
            f"{given[where]:g}; correct it"
        )
    return given.astype(np.bool_)


def _item(
    field: Field, name: str, array: NDArray[Any], axes: str, sizes: Mapping[str, int]
) -> NDArray[Any]:
    named = _name(field, name, array, axes, sizes).astype(np.str_)
    values = named.tolist()
    if len(set(values)) == len(values):
        return named
    rows: dict[str, int] = {}
    for row, value in enumerate(values):
        if rows.setdefault(value, row) != row:
            raise PredictionsError(
                f"array '{name}' must hold a different name in every row, rows "
                f"{rows[value]} and {row} are both {value!r:.60}; rename one, or use "
                "'cluster' for what several items share"
            )
    raise AssertionError("a smaller set has a repeated value")


def _name(
    _: Field, name: str, array: NDArray[Any], axes: str, __: Mapping[str, int]
) -> NDArray[Any]:
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise PredictionsError(
                f"array '{name}' must be text in UTF-8 ({error}); encode it so"
            ) from error
    given = numbers(name, array, "give text or whole numbers")
    low, high = finite(name, given, axes)
    whole(name, given, axes)
    if low < -(2.0**63) or high >= 2.0**63:
        raise PredictionsError(
            f"array '{name}' must hold text or whole numbers below 2**63, got up to "
            f"{high:g}; write such names as text"
        )
    return given.astype(np.int64)


def _byte(
    _: Field, name: str, array: NDArray[Any], axes: str, __: Mapping[str, int]
) -> NDArray[Any]:
    return to_bytes(name, array, axes)


def to_bytes(name: str, array: NDArray[Any], axes: str) -> NDArray[Any]:
    """`array` as uint8; anything but whole numbers in 0..255 is refused."""
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iub":
        raise PredictionsError(
            f"array '{name}' must be whole numbers in 0..255 (uint8), got "
            f"{array.dtype}; convert it"
        )
    if array.min() < 0 or array.max() > 255:
        where = tuple(np.argwhere((array < 0) | (array > 255))[0])
        raise PredictionsError(
            f"array '{name}' must lie in 0..255, {place(axes, where)} is "
            f"{array[where]}; correct it"
        )
    return array.astype(np.uint8)


_Normal = Callable[[Field, str, NDArray[Any], str, Mapping[str, int]], NDArray[Any]]
_KINDS: dict[Kind, _Normal] = {
    "real": _real,
    "class": _class,
    "flag": _flag,
    "item": _item,
    "name": _name,
    "byte": _byte,
}
