"""From arrays as found to predictions in normal form; a function per format version.

What a file declares is compared before any of its arrays is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, shortened
from qualms.predictions._header import Header, check_shapes, parse_header, version_of
from qualms.predictions._names import check_names, settle_task
from qualms.predictions._probabilities import (
    Renormalised,
    checked_probs,
    softmax,
    two_class_softmax,
    unit_interval,
)
from qualms.predictions._record import Predictions
from qualms.predictions._schema import TASKS, Field
from qualms.predictions._values import GivenArray, check_axes, normal_values, where_in
from qualms.wording import suggest

# Notes that are kept of one file; a hostile header could fill the screen.
_NOTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RawArrays:
    """What a file holds: arrays of names the schema knows, and the header.

    `shapes` is what the file declares and `load` gives one of these arrays. `unread`
    names the arrays that no task has; `header_at` says where this kind of file keeps
    its header, for sentences.
    """

    shapes: Mapping[str, tuple[int, ...]]
    load: Callable[[str], NDArray[Any]]
    header: Mapping[str, Any]
    header_at: str
    unread: tuple[str, ...] = ()

    def array(self, name: str) -> NDArray[Any]:
        """One of the arrays, of the shape that was declared."""
        found = self.load(name)
        if found.shape != self.shapes[name]:
            raise PredictionsError(
                f"array '{name}' has shape {found.shape}, but the file declares "
                f"{self.shapes[name]}; the file is damaged: write it again"
            )
        return found


class ReadOptions(NamedTuple):
    """What the user said about the predictions beyond what they hold.

    `strict` refuses arrays that would be left out, and misspelt fields of the header.
    """

    task: str | None = None
    logits: bool = False
    strict: bool = False


def normal_form(raw: RawArrays, asked: ReadOptions, source: str) -> Predictions:
    """`raw` checked in full and in normal form."""
    return FORMATS[version_of(raw.header)](raw, asked, source)


def _format_1(raw: RawArrays, asked: ReadOptions, source: str) -> Predictions:
    stated = parse_header(raw.header, strict=asked.strict)
    check_shapes(stated.shapes, raw.shapes, frozenset(raw.unread))
    names = (*raw.shapes, *raw.unread)
    task = settle_task(names, stated.header.task, asked.task)
    _refuse_unfit(task, asked)
    notes = [*stated.notes, *check_names(task, names, strict=asked.strict)]
    fields = in_order(task, raw.shapes)
    header = _settled(replace(stated.header, task=task), fields, raw.header_at)
    axes, sizes = check_axes(fields, raw.shapes)
    arrays: dict[str, NDArray[Any]] = {}
    for name, field in fields.items():
        given = GivenArray(name, raw.array(name), field, axes[name], sizes)
        if name == "target" and field.unknown and "known" in fields:
            given = _without_unknown(given, raw.array("known"))
        made = _finished(given, normal_values(given), asked)
        arrays[field.becomes or name] = made.probs
        notes += made.notes
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


_Reader = Callable[[RawArrays, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


def in_order(task: str, names: Mapping[str, Any]) -> dict[str, Field]:
    """The field of every array that `task` has, in the order of the schema."""
    return {
        name: field
        for field in TASKS[task].fields
        for name in names
        if field.covers(name)
    }


def bounded_notes(notes: list[str]) -> tuple[str, ...]:
    """The first of many notes, each of bounded length."""
    kept = [shortened(note, 500) for note in notes[:_NOTES]]
    more = len(notes) - len(kept)
    return (*kept, *([f"and {more} more notes like these"] if more else []))


def _refuse_unfit(task: str, asked: ReadOptions) -> None:
    if task == "segmentation":
        raise PredictionsError(
            "segmentation predictions are a folder with index.json and one file per "
            "item; write it with qualms.predictions.SegmentationWriter"
        )
    if asked.logits and task != "classification":
        raise PredictionsError(
            f"logits are for classification only, these are {task} predictions; leave "
            "out --logits (logits=True)"
        )


def _settled(header: Header, fields: Mapping[str, Any], header_at: str) -> Header:
    if "lower" in fields and header.alpha is None:
        raise PredictionsError(
            "arrays 'lower' and 'upper' need the header's 'alpha', 0.1 for 90 % "
            f"intervals; state it in {header_at}"
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


def _without_unknown(target: GivenArray, known: NDArray[Any]) -> GivenArray:
    """`target` with -1 where `known` is false, whatever class was written there."""
    if target.array.dtype.kind not in "fiub" or known.dtype.kind not in "fiub":
        return target  # refused in its own words a little later
    if target.array.dtype.kind in "ub":
        target = replace(target, array=target.array.astype(np.float64))
    wrong = (target.array == -1) & (known != 0)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"arrays 'target' and 'known' disagree, {where_in('N', where)} is -1 (no "
            "known class), but 'known' is true there; correct one of them"
        )
    return replace(target, array=np.where(known != 0, target.array, -1))


def _with_known(task: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """`arrays` with 'known' wherever a class is unknown, in the order of the schema."""
    target = arrays.get("target")
    if "known" in arrays or target is None or target.dtype != np.int64:
        return dict(arrays)
    if target.min() >= 0:
        return dict(arrays)
    held = {**arrays, "known": target >= 0}
    return {name: held[name] for name in in_order(task, held)}


def _finished(
    given: GivenArray, array: NDArray[Any], asked: ReadOptions
) -> Renormalised:
    made = Renormalised(array, ())
    with np.errstate(all="ignore"):
        if given.field.probability:
            made = _probabilities(given, array, asked)
        elif given.field.becomes == "var":
            made = _squared(given.name, array)
    if given.field.draws and "M" not in given.axes:
        return Renormalised(made.probs[np.newaxis], made.notes)
    return made


def _squared(name: str, array: NDArray[Any]) -> Renormalised:
    squared = array * array
    if not np.isfinite(squared.max()):
        raise PredictionsError(
            f"array '{name}' holds {array.max():g}, whose square is too large to be a "
            "variance; correct it"
        )
    note = f"array '{name}' was taken as a standard deviation: 'var' is its square"
    return Renormalised(squared, (note,))


def _probabilities(
    given: GivenArray, array: NDArray[Any], asked: ReadOptions
) -> Renormalised:
    name, axes = given.name, given.axes
    if "C" not in axes:
        if asked.logits:
            return Renormalised(two_class_softmax(name, array, axes), ())
        prob = unit_interval(name, array, axes)
        return Renormalised(np.stack([1.0 - prob, prob], axis=-1), ())
    # The true label distribution is never a network's output, so never logits.
    if given.field.draws and asked.logits:
        return Renormalised(softmax(name, array, axes), ())
    return checked_probs(name, array, axes)
