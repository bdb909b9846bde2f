"""Shapes: every array has the axes of its field, and sizes agree between arrays."""

from collections.abc import Mapping
from itertools import permutations
from typing import Any, NamedTuple

from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError
from qualms.predictions._schema import AXES, Field

_COUNTED = {"N": "items", "M": "draws", "C": "classes", "3": "channels"}


class Shaped(NamedTuple):
    """The axes each array was given with, and the size of every axis."""

    axes: dict[str, str]
    sizes: dict[str, int]


def check_axes(
    fields: Mapping[str, Field],
    arrays: Mapping[str, NDArray[Any]],
    *,
    maps: int | None = None,
) -> Shaped:
    """Refuse wrong numbers of axes, empty axes and sizes that disagree.

    `fields` is in the order of the schema, so that `target` says how many items there
    are; for segmentation it is the number of `maps`.
    """
    axes: dict[str, str] = {}
    sizes = {} if maps is None else {"N": maps}
    stated_by = {"N": "maps"} if sizes else {}
    for name, field in fields.items():
        shape = arrays[name].shape
        axes[name] = _axes(name, field, shape)
        _refuse_empty(name, axes[name], shape)
        for axis, size in zip(axes[name], shape, strict=True):
            if not _agrees(axis, size, sizes, name):
                known = (sizes.get(axis, 3), stated_by.get(axis, ""))
                raise PredictionsError(
                    _disagreement(name, axes[name], shape, axis, known)
                    + _transposed(name, axes[name], shape, sizes)
                )
        for axis, size in (*zip(axes[name], shape, strict=True), *field.implies):
            if not _stands_for_all(axis, size, name):
                sizes.setdefault(axis, size)
                stated_by.setdefault(axis, name)
    return Shaped(axes, sizes)


def _axes(name: str, field: Field, shape: tuple[int, ...]) -> str:
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


def _refuse_empty(name: str, axes: str, shape: tuple[int, ...]) -> None:
    if 0 in shape:
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
    name: str, axes: str, shape: tuple[int, ...], axis: str, known: tuple[int, str]
) -> str:
    counted = _COUNTED[axis]
    size, other = known
    got = f"array '{name}' has {shape[axes.index(axis)]} {counted} (shape {shape})"
    if not other:
        return f"{got}, there must be {size}"
    return f"{got}, but array '{other}' has {size}; they must agree"


def _transposed(
    name: str, axes: str, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> str:
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
