"""From arrays as found to predictions in normal form; a function per format version."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._header import Header, check_shapes, parse_header, version_of
from qualms.predictions._probabilities import (
    Renormalised,
    checked_probs,
    softmax,
    two_class_softmax,
    unit_interval,
)
from qualms.predictions._record import Predictions
from qualms.predictions._schema import (
    ELSEWHERE,
    TASKS,
    Field,
    array_field,
    is_array_name,
    listed,
)
from qualms.predictions._values import check_axes, normal_values
from qualms.shelf import suggest

# Names this alike are a slip of the keyboard, not another array.
CLOSE = 0.8
# One idea, two tasks: the array that plays the part of the other.
_COUNTERPART = {
    ("regression", "uncertainty/"): "select/",
    ("classification", "select/"): "uncertainty/",
    ("embedding", "select/"): "uncertainty/",
}


def settle_task(names: Collection[str], stated: str | None, asked: str | None) -> str:
    """The task asked for, else the one the header states, else what the names show."""
    for task in (asked, stated):
        if task is not None:
            return _known_task(task)
    fits = [task for task, about in TASKS.items() if set(about.marks) & set(names)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        shown = listed(sorted({m for t in fits for m in TASKS[t].marks} & set(names)))
        raise PredictionsError(
            f"the arrays {shown} fit more than one task ({', '.join(fits)}); say which "
            "with --task (task=...)"
        )
    raise PredictionsError(_no_task(names))


def check_names(task: str, names: Collection[str]) -> tuple[str, ...]:
    """Refuse misspelt and missing arrays; give a note for each one left out."""
    notes = tuple(
        _left_out(task, name) for name in names if array_field(task, name) is None
    )
    about = TASKS[task]
    for needed in about.needs:
        if not any(_has(need, names) for need in needed):
            raise PredictionsError(_missing(task, needed, names))
    for name, partner in about.given:
        if name in names and partner not in names:
            raise PredictionsError(
                f"array '{name}' needs '{partner}' beside it, found only "
                f"{listed(names)}; add '{partner}'"
            )
    for name, other in about.instead:
        if name in names and other in names:
            raise PredictionsError(
                f"arrays '{name}' and '{other}' say the same thing twice; keep one"
            )
    return notes


def _known_task(task: str) -> str:
    if task not in TASKS:
        raise PredictionsError(
            f"no task {task!r}.{suggest(str(task), TASKS)} Known: {', '.join(TASKS)}."
        )
    return task


def _no_task(names: Collection[str]) -> str:
    needs = "; ".join(
        f"{task}: {' and '.join(_either(needed) for needed in about.needs)}"
        for task, about in TASKS.items()
        if task != "segmentation"
    )
    everything = [f for about in TASKS.values() for f in about.fields]
    return (
        f"the arrays ({listed(names)}) fit no task.{_slip(names, everything)} "
        f"Needed for {needs}; segmentation is a folder with index.json"
    )


def _slip(names: Collection[str], fields: Collection[Field]) -> str:
    for name in names:
        if name in ELSEWHERE:
            return f" '{name}' is called '{ELSEWHERE[name]}' here."
        if hint := _alike(name, fields):
            return f" For '{name}':{hint}"
    return ""


def _alike(name: str, fields: Collection[Field]) -> str:
    for member in (f for f in fields if f.family and not is_array_name(name)):
        if name.rstrip("/") == member.name[:-1]:
            return f" Write it as '{member.name}<name>'."
        if (
            name.startswith(member.name[:-1])
            and not name[len(member.name) - 1].isalnum()
        ):
            return f" Write it as '{member.name}{name[len(member.name) :]}'."
    # Only the part before the slash can be misspelt; what follows is the user's own.
    head, slash, rest = name.partition("/")
    heads = [f.name.rstrip("/") for f in fields if f.family == bool(slash)]
    close = get_close_matches(head, heads, n=1, cutoff=CLOSE)
    if not close or close[0] == head:
        return ""
    return f" Did you mean '{close[0]}{slash}{rest}'?"


def _left_out(task: str, name: str) -> str:
    if hint := _alike(name, TASKS[task].fields):
        raise PredictionsError(
            f"array '{name}' is not part of {task} predictions.{hint} Rename it, or "
            "leave it out"
        )
    for (where, head), other in _COUNTERPART.items():
        if where == task and name.startswith(head):
            raise PredictionsError(
                f"array '{name}' is not part of {task} predictions; write it as "
                f"'{other}{name.removeprefix(head)}'"
            )
    return f"array '{name}' is not part of {task} predictions and was ignored"


def _missing(task: str, needed: tuple[str, ...], names: Collection[str]) -> str:
    called = [n for n in names if ELSEWHERE.get(n) in needed]
    hint = f"; is it '{called[0]}'? rename it" if called else "; add it"
    return (
        f"{task} predictions need {_either(needed)}, found only {listed(names)}{hint}"
    )


def _either(needed: tuple[str, ...]) -> str:
    return " or ".join(Field(name=need).shown for need in needed)


def _has(need: str, names: Collection[str]) -> bool:
    return any(Field(name=need).covers(name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawArrays:
    """What a carrier holds: arrays of names the schema knows, and the header.

    `unread` names the arrays left on disk because no task has them; `header_at` says
    where this carrier keeps a header, for sentences.
    """

    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]
    header_at: str
    unread: tuple[str, ...] = ()


class ReadOptions(NamedTuple):
    """What the user said about the predictions beyond what they hold."""

    task: str | None = None
    logits: bool = False


def normal_form(raw: RawArrays, asked: ReadOptions, source: str) -> Predictions:
    """`raw` checked in full and in normal form."""
    return FORMATS[version_of(raw.header)](raw, asked, source)


def _format_1(raw: RawArrays, asked: ReadOptions, source: str) -> Predictions:
    stated = parse_header(raw.header)
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


_Reader = Callable[[RawArrays, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


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


def in_order(task: str, arrays: Mapping[str, Any]) -> dict[str, Field]:
    """The field of every array that `task` has, in the order of the schema."""
    return {
        name: field
        for field in TASKS[task].fields
        for name in arrays
        if field.covers(name)
    }


def _with_draws(
    field: Field, name: str, array: NDArray[Any], axes: str, asked: ReadOptions
) -> Renormalised:
    made = Renormalised(array, ())
    if field.probability:
        with np.errstate(all="ignore"):
            made = _probabilities(field, name, array, axes, asked)
    if field.draws and "M" not in axes:
        return Renormalised(made.probs[np.newaxis], made.notes)
    return made


def _probabilities(
    field: Field, name: str, array: NDArray[Any], axes: str, asked: ReadOptions
) -> Renormalised:
    if "C" not in axes:
        if asked.logits:
            return Renormalised(two_class_softmax(name, array, axes), ())
        prob = unit_interval(name, array, axes)
        return Renormalised(np.stack([1.0 - prob, prob], axis=-1), ())
    # The true label distribution is never a network's output, so never logits.
    if field.draws and asked.logits:
        return Renormalised(softmax(name, array, axes), ())
    return checked_probs(name, array, axes)


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
