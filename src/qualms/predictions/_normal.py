"""From the arrays of a file to predictions in normal form, by format version.

Declared shapes are compared before any array is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as field_of_record
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._class_names import (
    check_class_names,
    named_classes,
    numbered_classes,
)
from qualms.predictions._errors import PredictionsError, shortened
from qualms.predictions._header import Header, check_shapes, parse_header, version_of
from qualms.predictions._limits import refuse_unpacking
from qualms.predictions._names import SEVERAL_FINDINGS, check_names, settle_task
from qualms.predictions._probabilities import (
    Converted,
    checked_probs,
    softmax,
    two_class_softmax,
    unit_interval,
)
from qualms.predictions._record import Predictions
from qualms.predictions._values import RawArray, check_axes, normal_values, where_in
from qualms.predictions.schema import Field, schemas
from qualms.shelf import tasks_with
from qualms.wording import suggest

# Most notes on one file, because a hostile header could fill the screen.
_NOTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RawArrays:
    """The arrays of a file that the schema knows, and its header.

    `shapes` are the declared shapes, and `load` returns an array by name. `unread` are
    the names of arrays that no task has. `header_at` names, in messages, the place of
    the header in this kind of file. `packed` is the size of the file in bytes, and
    `stored` holds the dtypes in it.
    """

    shapes: Mapping[str, tuple[int, ...]]
    load: Callable[[str], NDArray[Any]]
    header: Mapping[str, Any]
    header_at: str
    unread: tuple[str, ...] = ()
    stored: Mapping[str, np.dtype[Any]] = field_of_record(default_factory=dict)
    packed: int | None = None

    def array(self, name: str) -> NDArray[Any]:
        """Load an array; raise unless it has the declared shape."""
        array = self.load(name)
        if array.shape != self.shapes[name]:
            raise PredictionsError(
                f"array '{name}' has shape {array.shape}, but the file declares "
                f"{self.shapes[name]}; the file is damaged: write it again"
            )
        return array


FEW = 10
"""With fewer items, all targets may be -1 or 1 by chance."""

_HALF, _ENOUGH, _NEGATIVE = 0.5, 20, 0.2
"""From so many items on, of which this share is of class 0, P(y=1) is sometimes below
one half."""
_OTHERS = 0.1
"""Least share of items of further classes that is no slip of the pen."""


class ReadOptions(NamedTuple):
    """Options of the user for reading, building and writing predictions.

    With `strict`, arrays that would be left out and misspelt fields of the header are
    errors.
    """

    task: str | None = None
    logits: bool = False
    renormalise: bool = False
    strict: bool = False
    alpha: float | None = None
    """Miscoverage of the intervals if the header states no `alpha`."""


def normal_form(raw: RawArrays, options: ReadOptions, source: str) -> Predictions:
    """Check `raw` in full and return it in normal form."""
    return FORMATS[version_of(raw.header)](raw, options, source)


def _format_1(raw: RawArrays, options: ReadOptions, source: str) -> Predictions:
    parsed = parse_header(raw.header, strict=options.strict)
    check_shapes(parsed.shapes, raw.shapes, frozenset(raw.unread))
    names = (*raw.shapes, *raw.unread)
    task = settle_task(names, parsed.header.task, options.task)
    _check_options(task, options)
    notes = [*parsed.notes, *check_names(task, names, strict=options.strict)]
    fields = in_order(task, _as_written(raw.shapes, parsed.shapes))
    header = replace(parsed.header, task=task)
    if "lower" in fields and header.alpha is None and options.alpha is not None:
        header = replace(header, alpha=options.alpha)
    header = _with_rules(header, fields, raw.header_at)
    _refuse_several_classes(raw, fields)
    axes, sizes = check_axes(fields, raw.shapes)
    _refuse_large(raw, fields)
    if schemas()[task].open_classes:
        header = _with_classes(header, raw, fields)
    arrays: dict[str, NDArray[Any]] = {}
    for name, field in fields.items():
        known = "known" in fields
        array = numbered_classes(name, raw.array(name), field, header, known=known)
        raw_array = RawArray(name, array, field, axes[name], sizes)
        if name == "target" and field.unknown and "known" in fields:
            raw_array = _mark_unknown(raw_array, raw.array("known"))
        converted = _converted(raw_array, normal_values(raw_array), options)
        arrays[field.becomes or name] = converted.array
        notes += converted.notes
    check_class_names(header, sizes.get("C"))
    _refuse_signs(arrays, sizes.get("C", 2))
    notes += filter(None, [_above(arrays), _of_predicted(arrays, fields)])
    notes += _add_uncertainty(task, arrays)
    return Predictions(
        task=task,
        header=header,
        arrays=_with_known(task, arrays),
        source=source,
        notes=bounded_notes(notes),
        n=sizes["N"],
        draws=sizes.get("M", 1),
        classes=sizes.get("C"),
    )


def _refuse_several_classes(raw: RawArrays, fields: Mapping[str, Field]) -> None:
    """Raise if items have several findings, or 'prob' is for more than two classes."""
    field, shape = fields.get("target"), raw.shapes.get("target", ())
    if field is None or field.kind != "class" or 0 in shape:
        return
    one = len(shape) == len(raw.shapes.get("prob", ())) == 1 and "known" not in fields
    if not one and len(shape) != 2:
        return
    target = raw.array("target")
    if target.dtype.kind not in "fiub" or not np.isfinite(target).all():
        return  # the check of its values raises
    if one and np.mean(target > 1) > _OTHERS and len(np.unique(target)) > 2:
        raise PredictionsError(
            f"array 'prob' is P(y=1) of two classes, and 'target' goes up to"
            f" {target.max():g}; store the probabilities of all classes as 'probs'"
            " (N, C), also if 'prob' is the probability of the predicted class"
        )
    if not one and np.isin(target, (0, 1)).all() and (target.sum(axis=1) != 1).any():
        raise PredictionsError(SEVERAL_FINDINGS.format("'target'", shape[1]))


def _of_predicted(arrays: Mapping[str, Any], fields: Mapping[str, Field]) -> str:
    """Return a note if 'prob' may be the probability of the predicted class."""
    target = arrays.get("target")
    if "prob" not in fields or target is None or len(target) < _ENOUGH:
        return ""
    lowest, negative = float(arrays["probs"][..., 1].min()), int((target == 0).sum())
    if lowest < _HALF or negative < _NEGATIVE * len(target):
        return ""
    return (
        f"no 'prob' is below 0.5, although {negative} of {len(target)} items are of"
        " class 0: it must be P(y=1) for every item, and not the probability of the"
        " predicted class"
    )


def _refuse_large(raw: RawArrays, fields: Mapping[str, Field]) -> None:
    """Raise if a small file holds arrays whose normal form is very large."""
    if raw.packed is not None:
        sizes = (
            prod(raw.shapes[name]) * _bytes_each(field, raw.stored.get(name))
            for name, field in fields.items()
        )
        refuse_unpacking(sum(sizes), raw.packed)


def _bytes_each(field: Field, stored: np.dtype[Any] | None) -> int:
    """Return the memory of one value in normal form."""
    stored = np.dtype(np.float64) if stored is None else stored
    if field.kind in ("flag", "byte"):
        return 1
    if field.kind == "any":
        return stored.itemsize
    if field.kind in ("item", "name") and stored.kind in "US":
        return stored.itemsize * (1 if stored.kind == "U" else 4)
    if field.kind == "item":
        return np.dtype("U21").itemsize  # a whole number as text
    if field.single and stored in (np.float16, np.float32):
        return np.dtype(np.float32).itemsize
    # P(y=1) becomes the probabilities of both classes.
    return np.dtype(field.dtype).itemsize * (2 if field.becomes == "probs" else 1)


_FormReader = Callable[[RawArrays, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _FormReader] = {1: _format_1}


def _as_written(
    shapes: Mapping[str, Any], in_header: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `shapes` in the order of the header: a file format may sort names."""
    written = {name: shapes[name] for name in in_header if name in shapes}
    return written | dict(shapes)


def in_order(task: str, names: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of the arrays of `task`, in the order of the schema."""
    return {
        name: field
        for field in schemas()[task].fields
        for name in names
        if field.covers(name)
    }


def bounded_notes(notes: list[str]) -> tuple[str, ...]:
    """Return the first notes, each of bounded length, and the number of others."""
    first = [shortened(note, 500) for note in notes[:_NOTES]]
    more = len(notes) - len(first)
    return (*first, *([f"and {more} more notes like these"] if more else []))


def _check_options(task: str, options: ReadOptions) -> None:
    if schemas()[task].folder:
        raise PredictionsError(
            f"{task} predictions are a folder with index.json and one file per "
            "item; write it with qualms.predictions.SegmentationWriter"
        )
    if options.logits and options.renormalise:
        raise PredictionsError(
            "logits become probabilities by a softmax and need no other rule; leave out"
            " --renormalise (renormalise=True)"
        )
    of_classes = tasks_with("items probabilities")
    if options.renormalise and task not in of_classes:
        raise PredictionsError(
            f"class probabilities can be renormalised, these are {task} predictions;"
            " leave out --renormalise (renormalise=True)"
        )
    if options.logits and task not in of_classes:
        raise PredictionsError(
            f"logits are for {' and '.join(of_classes)} only, these are {task}"
            " predictions; leave out --logits (logits=True)"
        )


def _with_rules(header: Header, fields: Mapping[str, Any], header_at: str) -> Header:
    """Return the header with a rule for each `select/<name>`; raise if rules misfit."""
    if "lower" in fields and header.alpha is None:
        raise PredictionsError(
            "arrays 'lower' and 'upper' need the header's 'alpha', 0.1 for 90 % "
            f"intervals; state it in {header_at}, or to score them by --alpha "
            "(alpha=0.1)"
        )
    rules = {name[7:]: "mean" for name in fields if name.startswith("select/")}
    for name in header.select:
        if name not in rules:
            shown = shortened(name)
            raise PredictionsError(
                f"header 'select' has a rule for '{shown}', but there is no array "
                f"'select/{shown}'.{suggest(shown, rules)} Correct the header in "
                f"{header_at}"
            )
    return replace(header, select=rules | dict(header.select))


def _mark_unknown(target: RawArray, is_known: NDArray[Any]) -> RawArray:
    """Return `target` with -1 where `known` is false, whatever its class was."""
    if target.array.dtype.kind not in "fiub" or is_known.dtype.kind not in "fiub":
        return target  # the check of its values raises
    if target.array.dtype.kind in "ub":
        target = replace(target, array=target.array.astype(np.float64))
    wrong = (target.array == -1) & (is_known != 0)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"arrays 'target' and 'known' disagree, {where_in('N', where)} is -1 (no "
            "known class), but 'known' is true there; correct one of them"
        )
    return replace(target, array=np.where(is_known != 0, target.array, -1))


def _with_classes(
    header: Header, raw: RawArrays, fields: Mapping[str, Field]
) -> Header:
    """Return the header of embeddings, completed by the class names in their arrays."""
    arrays = {
        name: raw.array(name) for name, field in fields.items() if field.kind == "class"
    }
    return named_classes(header, arrays, known="known" in fields)


def _add_uncertainty(task: str, arrays: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Add the uncertainty of a task to arrays that hold none; return notes."""
    if any(name.startswith("uncertainty/") for name in arrays):
        return ()
    notes = schemas()[task].complete(arrays)
    for name in in_order(task, arrays):
        arrays[name] = arrays.pop(name)
    return notes


def _refuse_signs(arrays: Mapping[str, Any], classes: int) -> None:
    """Raise if the two classes seem to be -1 and 1: -1 is no class."""
    target = arrays.get("target")
    if target is None or target.dtype != np.int64 or "known" in arrays:
        return
    count = int((target == -1).sum())
    signs = classes == 2 and len(target) >= FEW and 0 < count < len(target)
    if signs and (np.abs(target) == 1).all():
        raise PredictionsError(
            "array 'target' holds -1 and 1 only, and -1 marks an item of no known "
            "class; number two classes 0 and 1. If no class is known of these "
            f"{count} of {len(target)} items, say so by an array 'known'"
        )


def _above(arrays: Mapping[str, Any]) -> str:
    """Return a note if most intervals are upside down; '' if they are not."""
    lower, upper = arrays.get("lower"), arrays.get("upper")
    if lower is None or upper is None:
        return ""
    count = int((lower > upper).sum())
    if 2 * count <= len(lower):
        return ""
    return (
        f"'lower' is above 'upper' in {count} of {len(lower)} items: are the two "
        "exchanged?"
    )


def _with_known(task: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return `arrays` with 'known' if any class is unknown, in the schema's order."""
    target = arrays.get("target")
    if "known" in arrays or target is None or target.dtype != np.int64:
        return dict(arrays)
    if target.min() >= 0:
        return dict(arrays)
    arrays = {**arrays, "known": target >= 0}
    return {name: arrays[name] for name in in_order(task, arrays)}


def _converted(
    raw_array: RawArray, array: NDArray[Any], options: ReadOptions
) -> Converted:
    """Convert checked values to probabilities or variances, and add the draws' axis."""
    converted = Converted(array, ())
    with np.errstate(all="ignore"):
        if raw_array.field.probability:
            converted = _probabilities(raw_array, array, options)
        elif raw_array.field.becomes == "var":
            converted = _squared(raw_array.name, array)
    if raw_array.field.draws and "M" not in raw_array.axes:
        return Converted(converted.array[np.newaxis], converted.notes)
    return converted


def _squared(name: str, array: NDArray[Any]) -> Converted:
    squared = array * array
    if not np.isfinite(squared.max()):
        raise PredictionsError(
            f"array '{name}' holds {array.max():g}, whose square is too large to be a "
            "variance; correct it"
        )
    note = f"array '{name}' was taken as a standard deviation: 'var' is its square"
    return Converted(squared, (note,))


def _probabilities(
    raw_array: RawArray, array: NDArray[Any], options: ReadOptions
) -> Converted:
    name, axes = raw_array.name, raw_array.axes
    if "C" not in axes:
        if options.logits:
            return Converted(two_class_softmax(name, array, axes), ())
        prob = unit_interval(name, array, axes)
        return Converted(np.stack([1.0 - prob, prob], axis=-1), ())
    # The true label distribution is no output of a network, and never logits.
    if raw_array.field.draws and options.logits:
        return Converted(softmax(name, array, axes), ())
    renormalise = raw_array.field.draws and options.renormalise
    return checked_probs(name, array, axes, renormalise=renormalise)
