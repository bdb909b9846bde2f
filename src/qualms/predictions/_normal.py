"""From arrays as found to predictions in normal form; a function per format version."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError
from qualms.predictions._header import Header, check_shapes, parse, version_of
from qualms.predictions._names import check_names, settle_task
from qualms.predictions._probs import (
    Renormalised,
    probabilities,
    softmax,
    two_class_softmax,
    unit_interval,
)
from qualms.predictions._record import Predictions
from qualms.predictions._schema import TASKS, Field
from qualms.predictions._shapes import check_axes
from qualms.predictions._values import normal_values
from qualms.shelf import suggest


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """What a carrier holds: arrays of names the schema knows, and the header.

    `unread` names the arrays left on disk because no task has them; `header_at` says
    where this carrier keeps a header, for sentences.
    """

    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]
    header_at: str
    unread: tuple[str, ...] = ()


class Asked(NamedTuple):
    """What the user said about the predictions beyond what they hold."""

    task: str | None = None
    logits: bool = False


def normal_form(raw: Raw, asked: Asked, source: str) -> Predictions:
    """`raw` checked in full and in normal form."""
    return FORMATS[version_of(raw.header)](raw, asked, source)


def _format_1(raw: Raw, asked: Asked, source: str) -> Predictions:
    stated = parse(raw.header)
    check_shapes(stated.shapes, {name: a.shape for name, a in raw.arrays.items()})
    names = (*raw.arrays, *raw.unread)
    task = settle_task(names, stated.header.task, asked.task)
    _refuse_unfit(task, asked)
    notes = [*stated.notes, *check_names(task, names)]
    fields = in_order(task, raw.arrays)
    axes, sizes = check_axes(fields, raw.arrays)
    arrays = {}
    for name, field in fields.items():
        given = normal_values(field, name, raw.arrays[name], axes[name], sizes)
        made = _with_draws(field, name, given, axes[name], asked)
        arrays["probs" if name == "prob" else name] = made.probs
        notes += made.notes
    return Predictions(
        task=task,
        header=_settled(replace(stated.header, task=task), arrays, raw.header_at),
        arrays=arrays,
        source=source,
        notes=tuple(notes),
        n=sizes["N"],
        draws=sizes.get("M", 1),
        classes=sizes.get("C"),
    )


_Reader = Callable[[Raw, Asked, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


def _refuse_unfit(task: str, asked: Asked) -> None:
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


def in_order(task: str, arrays: Mapping[str, Any]) -> dict[str, Field]:
    """The field of every array that `task` has, in the order of the schema."""
    return {
        name: field
        for field in TASKS[task].fields
        for name in arrays
        if field.covers(name)
    }


def _with_draws(
    field: Field, name: str, array: NDArray[Any], axes: str, asked: Asked
) -> Renormalised:
    made = Renormalised(array, ())
    if field.probability:
        with np.errstate(all="ignore"):
            made = _probabilities(field, name, array, axes, asked)
    if field.draws and "M" not in axes:
        return Renormalised(made.probs[np.newaxis], made.notes)
    return made


def _probabilities(
    field: Field, name: str, array: NDArray[Any], axes: str, asked: Asked
) -> Renormalised:
    if "C" not in axes:
        if asked.logits:
            return Renormalised(two_class_softmax(name, array, axes), ())
        prob = unit_interval(name, array, axes)
        return Renormalised(np.stack([1.0 - prob, prob], axis=-1), ())
    # The true label distribution is never a network's output, so never logits.
    if field.draws and asked.logits:
        return Renormalised(softmax(name, array, axes), ())
    return probabilities(name, array, axes)


def _settled(header: Header, arrays: Mapping[str, Any], header_at: str) -> Header:
    if "lower" in arrays and header.alpha is None:
        raise PredictionsError(
            "arrays 'lower' and 'upper' need the header's 'alpha', 0.1 for 90 % "
            f"intervals; state it in {header_at}"
        )
    rules = {name[7:]: "mean" for name in arrays if name.startswith("select/")}
    for name in header.select:
        if name not in rules:
            raise PredictionsError(
                f"header 'select' has a rule for '{name}', but there is no array "
                f"'select/{name}'.{suggest(name, rules)} Correct the header in "
                f"{header_at}"
            )
    return replace(header, select=rules | dict(header.select))
