"""Checks of shapes and values, array by array.

Every array has the axes of its field, and sizes agree between arrays. By the kind of
the field its values are numbers, classes, flags, items, names or bytes, and are
converted to the normal dtype. Messages name the array, the row and the value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._limits import refuse_wide_text
from qualms.predictions.schema import AXES, Field, Kind

# Most decimals of probabilities that are recognised in these types. With more, too many
# other numbers would look like decimals.
_DECIMALS = {np.dtype(np.float32): 4, np.dtype(np.float16): 2}
_BLOCK = 2**16
_COUNTED = {"N": "items", "M": "draws", "C": "classes", "3": "channels"}
# Share of negative variances above which they are taken for logarithms.
_MANY = 0.2
_NUL = (
    "array '{}', row {} has a NUL in its text, which no name holds; write the name"
    " without it"
)
_Shape = tuple[int, ...]


class Shaped(NamedTuple):
    """The axes of each array, and the size of every axis."""

    axes: dict[str, str]
    sizes: dict[str, int]


def check_axes(
    fields: Mapping[str, Field],
    shapes: Mapping[str, _Shape],
    *,
    maps: int | None = None,
) -> Shaped:
    """Raise on wrong numbers of axes, empty axes and sizes that disagree.

    `fields` is in the order of the schema, so that `target` sets the number of items;
    in segmentation, the number of `maps` does.
    """
    axes: dict[str, str] = {}
    sizes = {} if maps is None else {"N": maps}
    stated_by = {"N": "maps"} if sizes else {}
    for name, field in fields.items():
        shape = shapes[name]
        axes[name] = _axes(name, field, shape)
        _refuse_empty(name, axes[name], shape)
        for axis, size in zip(axes[name], shape, strict=False):
            if not _agrees(axis, size, sizes, name):
                expected = (sizes.get(axis, 3), stated_by.get(axis, ""))
                raise PredictionsError(
                    _disagreement(name, axes[name], shape, axis, expected)
                    + _remedy(field, name, shape, axes[name], sizes)
                )
        for axis, size in (*zip(axes[name], shape, strict=False), *field.implies):
            if not _stands_for_all(axis, size, name):
                sizes.setdefault(axis, size)
                stated_by.setdefault(axis, name)
    return Shaped(axes, sizes)


def _axes(name: str, field: Field, shape: _Shape) -> str:
    if not field.axes:
        return ""
    for axes in field.axes:
        if len(axes) == len(shape):
            return axes
    wanted = " or ".join(f"({', '.join(axes)})" for axes in field.axes)
    hint = field.hint if field.probability and field.hint else "reshape it"
    if field.kind == "class" and len(shape) == 2:
        hint = "if it is one-hot, take its argmax over the last axis"
    if len(shape) == len(field.axes[-1]) + 1 and shape[-1] == 1:
        hint = f"drop the last axis, for example {name}[..., 0]"
    wanted = wanted.replace("(N)", "(N,)")
    raise PredictionsError(
        f"array '{name}' must have shape {wanted}, got {shape}; {hint}"
    )


def _refuse_empty(name: str, axes: str, shape: _Shape) -> None:
    if axes and 0 in shape:
        axis = AXES[axes[shape.index(0)]]
        plural = "classes" if axis == "class" else f"{axis}s"
        raise PredictionsError(
            f"array '{name}' has no {plural} (shape {shape}); there must be at least "
            "one"
        )
    if axes.endswith("C") and shape[-1] < 2:
        raise PredictionsError(
            f"array '{name}' must have at least two classes on its last axis, got "
            f"shape {shape}; P(y=1) of two classes alone is called 'prob'"
        )


def _agrees(axis: str, size: int, sizes: Mapping[str, int], name: str) -> bool:
    if axis.isdigit():
        return size == int(axis)
    return _stands_for_all(axis, size, name) or sizes.get(axis, size) == size


def _stands_for_all(axis: str, size: int, name: str) -> bool:
    # A select/<name> of one draw stands for all draws of the file.
    return axis == "M" and size == 1 and name.startswith("select/")


def _disagreement(
    name: str, axes: str, shape: _Shape, axis: str, expected: tuple[int, str]
) -> str:
    counted = _COUNTED[axis]
    size, other = expected
    sizes = f"array '{name}' has {shape[axes.index(axis)]} {counted} (shape {shape})"
    if not other:
        return f"{sizes}, there must be {size}"
    return f"{sizes}, but array '{other}' has {size}; they must agree"


def _remedy(
    field: Field, name: str, shape: _Shape, axes: str, sizes: Mapping[str, int]
) -> str:
    if field.becomes == "probs" and len(shape) == 2 and shape[0] == sizes.get("N"):
        return (
            ". If its columns are the classes, it is called 'probs'; if they are "
            f"draws, turn it to (M, N): {name}.T"
        )
    for order in permutations(range(len(shape))):
        turned = [shape[i] for i in order]
        if all(
            _agrees(axis, size, sizes, name)
            for axis, size in zip(axes, turned, strict=True)
        ):
            wanted = ", ".join(axes)
            return (
                f". It would fit with its axes turned to ({wanted}): "
                f"np.transpose({name}, {order})"
            )
    return ""


def where_in(axes: str, index: Sequence[Any], skip: str = "") -> str:
    """Describe an index: 'draw 0, row 3, class 1'; axes of space form a position."""
    named = [
        f"{AXES[axis]} {int(i)}"
        for axis, i in zip(axes, index, strict=False)
        if axis not in skip
    ]
    rest = tuple(int(i) for i in index[len(axes) :])
    return ", ".join([*named, *([f"position {rest}"] if rest else [])])


@dataclass(frozen=True, slots=True)
class RawArray:
    """An array before its values are checked, with its field, axes and all sizes."""

    name: str
    array: NDArray[Any]
    field: Field
    axes: str
    sizes: Mapping[str, int]


def normal_values(raw: RawArray) -> NDArray[Any]:
    """Check the values of an array and convert them to the dtype of its kind."""
    with np.errstate(all="ignore"):
        values = _KINDS[raw.field.kind](raw)
    return np.ascontiguousarray(values) if values.ndim else values


class Span(NamedTuple):
    """The smallest and the largest value of an array, exact for integers too."""

    low: float
    high: float


def finite_span(name: str, array: NDArray[Any], axes: str) -> Span:
    """Return the range of `array`; raise on nan and infinity."""
    span = Span(array.min().item(), array.max().item())
    if np.isfinite(span.low) and np.isfinite(span.high):
        return span
    where = tuple(np.argwhere(~np.isfinite(array))[0])
    raise PredictionsError(
        f"array '{name}' must be finite, {where_in(axes, where)} is {array[where]}; "
        "correct the value or leave the item out"
    )


def as_numbers(name: str, array: NDArray[Any], hint: str = "") -> NDArray[Any]:
    """Return `array`; raise unless its dtype is one of numbers or booleans."""
    if array.dtype.kind in "fiub":
        return array
    kind = f"{array.dtype}"
    if array.dtype.kind in "US" and array.size:
        kind = f"text such as {array.flat[0].item()!r:.60}"
    raise PredictionsError(
        f"array '{name}' must be numbers, got {kind}; {hint or 'convert it'}"
    )


def refuse_fractions(name: str, array: NDArray[Any], axes: str) -> None:
    """Raise unless all numbers are whole."""
    if array.dtype.kind != "f":
        return
    wrong = array != np.floor(array)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must be whole numbers, {where_in(axes, where)} is "
            f"{float(array[where]):.6g}; correct it"
        )


def to_bytes(name: str, array: NDArray[Any], axes: str) -> NDArray[Any]:
    """Return `array` as uint8; raise unless it holds whole numbers in 0..255."""
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
            f"array '{name}' must lie in 0..255, {where_in(axes, where)} is "
            f"{array[where]}; correct it"
        )
    return array.astype(np.uint8)


def _real(raw: RawArray) -> NDArray[Any]:
    name, field, axes = raw.name, raw.field, raw.axes
    numbers = as_numbers(name, raw.array)
    span = finite_span(name, numbers, axes)
    if field.probability:
        numbers = _with_decimals(numbers)
    single = field.single and numbers.dtype in (np.float16, np.float32)
    values = numbers.astype(np.float32 if single else field.dtype, copy=False)
    if values is not numbers:
        span = finite_span(name, values, axes)
    if span.low < field.low:
        where = tuple(np.argwhere(values < field.low)[0])
        raise PredictionsError(
            f"array '{name}' must be at least {field.low:g}, {where_in(axes, where)} "
            f"is {float(values[where]):.6g}; {_remedy_below(name, values)}"
        )
    return values


def _remedy_below(name: str, values: NDArray[Any]) -> str:
    """Return a remedy for numbers below 0."""
    if name == "var" and np.mean(values < 0.0) > _MANY:
        return "if these are logarithms of the variance, store np.exp(var)"
    return "correct the value or leave the item out"


def _with_decimals(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of few decimals in float64, if they were stored in fewer bits.

    In float32, 0.1 is 0.10000000149. Without this, means that are equal in exact
    arithmetic would not be tied, and would miss the edges of bins.
    """
    for digits in range(1, _DECIMALS.get(array.dtype, 0) + 1):
        flat = array.reshape(-1)
        sample = flat[:: max(1, len(flat) // 256)]
        blocks = (flat[i : i + _BLOCK] for i in range(0, len(flat), _BLOCK))
        parts = chain([sample], blocks)
        if all(_has_decimals(part, digits) for part in parts):
            exact = np.round(array.astype(np.float64), digits)
            return array if np.array_equal(exact, array) else exact
    return array


def _has_decimals(array: NDArray[Any], digits: int) -> bool:
    rounded = np.round(array.astype(np.float64), digits)
    return bool((rounded.astype(array.dtype) == array).all())


def _class(raw: RawArray) -> NDArray[Any]:
    name, field, axes = raw.name, raw.field, raw.axes
    labels = as_numbers(name, raw.array, "encode the classes as whole numbers 0..C-1")
    low, high = finite_span(name, labels, axes)
    refuse_fractions(name, labels, axes)
    classes = raw.sizes.get("C")
    limit = 2**63 if classes is None else classes
    least = -1 if field.unknown else 0
    if low >= least and high < limit:
        return labels.astype(np.int64, copy=False)
    where = tuple(np.argwhere((labels < least) | (labels >= limit))[0])
    wanted = "0 or more" if classes is None else f"0..{limit - 1} for {limit} classes"
    raise PredictionsError(
        f"array '{name}' must lie in {wanted}, {where_in(axes, where)} is "
        f"{labels[where]:g}; {field.hint}"
    )


def _flag(raw: RawArray) -> NDArray[Any]:
    name = raw.name
    if raw.array.dtype.kind == "b":
        return raw.array
    numbers = as_numbers(name, raw.array, "write true or false, as 1 or 0")
    wrong = (numbers != 0) & (numbers != 1)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must be true or false (1 or 0), "
            f"{where_in(raw.axes, where)} is {numbers[where]:g}; correct it"
        )
    return numbers.astype(np.bool_)


def _item(raw: RawArray) -> NDArray[Any]:
    names = _name(raw).astype(np.str_)
    values = names.tolist()
    if len(set(values)) == len(values):
        return names
    rows: dict[str, int] = {}
    for row, value in enumerate(values):
        if rows.setdefault(value, row) != row:
            raise PredictionsError(
                f"array '{raw.name}' must hold a different name in every row, rows "
                f"{rows[value]} and {row} are both {value!r:.60}; rename one, or use "
                "'cluster' for what several items share"
            )
    raise AssertionError("a smaller set has a repeated value")


def _name(raw: RawArray) -> NDArray[Any]:
    if raw.array.dtype.kind in "US":
        return _filled(raw.name, _text(raw))
    numbers = as_numbers(raw.name, raw.array, "give text or whole numbers")
    low, high = finite_span(raw.name, numbers, raw.axes)
    refuse_fractions(raw.name, numbers, raw.axes)
    if low < -(2.0**63) or high >= 2.0**63:
        raise PredictionsError(
            f"array '{raw.name}' must hold text or whole numbers below 2**63, got up "
            f"to {high:g}; write such names as text"
        )
    return numbers.astype(np.int64)


def _filled(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return `array`; raise if it is that of clusters and one of them has no name."""
    if name == "cluster":
        for row in np.flatnonzero(np.isin(array.astype("U1"), ("", " ", "\t"))):
            if not array[row].strip():
                raise PredictionsError(
                    f"array 'cluster' must name the cluster of every item, row {row} is"
                    " empty, and items without a name would form one cluster; name each"
                    " of them by itself, or leave the row out"
                )
    return array


def _refuse_nul(name: str, array: NDArray[Any]) -> None:
    """Raise if a text has a NUL between its characters; those behind it are padding."""
    width = array.dtype.itemsize // 4
    for start in range(0, array.size if width else 0, _BLOCK):
        block = np.ascontiguousarray(array.reshape(-1)[start : start + _BLOCK])
        nul = block.view(np.uint32).reshape(-1, width) == 0
        if (nul[:, :-1] & ~nul[:, 1:]).any():
            row = start + int(np.argmax((nul[:, :-1] & ~nul[:, 1:]).any(axis=1)))
            raise PredictionsError(_NUL.format(name, row))


def _text(raw: RawArray) -> NDArray[Any]:
    if raw.array.dtype.kind == "U":
        _refuse_nul(raw.name, raw.array)
        return raw.array
    try:
        return np.char.decode(raw.array, "utf-8")
    except UnicodeDecodeError as error:
        raise PredictionsError(
            f"array '{raw.name}' must be text in UTF-8 ({error}); encode it so"
        ) from error


def _byte(raw: RawArray) -> NDArray[Any]:
    return to_bytes(raw.name, raw.array, raw.axes)


def _any(raw: RawArray) -> NDArray[Any]:
    """Return numbers, flags, or one text per row, unchanged."""
    kind = raw.array.dtype.kind
    if kind in "fiub":
        return raw.array.astype(raw.array.dtype.newbyteorder("="), copy=False)
    if kind in "US" and raw.array.ndim == 1:
        return _text(raw)
    raise PredictionsError(
        f"array '{raw.name}' must be numbers, true and false, or one text per row, "
        f"got {raw.array.dtype} of shape {raw.array.shape}; convert it"
    )


_KINDS: dict[Kind, Callable[[RawArray], NDArray[Any]]] = {
    "real": _real,
    "class": _class,
    "flag": _flag,
    "item": _item,
    "name": _name,
    "byte": _byte,
    "any": _any,
}


def text_array(name: str, values: Sequence[str]) -> NDArray[np.str_]:
    """Return texts as an array; raise if one of them would make it far too wide."""
    lengths = list(map(len, values))
    row = next((row for row, value in enumerate(values) if "\0" in value), None)
    if row is not None:
        raise PredictionsError(_NUL.format(name, row))
    refuse_wide_text(
        name,
        rows=len(values),
        longest=max(lengths, default=0),
        characters=sum(lengths),
    )
    return np.array(values, dtype=np.str_)
