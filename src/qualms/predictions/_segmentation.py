"""Segmentation predictions: arrays per item, and maps read one item at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._header import check_shapes, parse_header, version_of
from qualms.predictions._normal import RawArrays, ReadOptions, check_names, in_order
from qualms.predictions._probabilities import checked_probs
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._schema import listed
from qualms.predictions._values import (
    as_numbers,
    check_axes,
    finite_span,
    normal_values,
    to_bytes,
    where_in,
)

ARRAYS = ("mean_probs", "expected_entropy", "draw_labels", "raters")
_LEADING = {
    "mean_probs": "C",
    "expected_entropy": "",
    "draw_labels": "M",
    "raters": "R",
}
_CALLED = {"C": "class", "M": "draw", "R": "rater"}
_REMEDY = "store probabilities averaged over draws, not logits"


class Counts(NamedTuple):
    """What all items of a file share: classes and draws, and the label to ignore."""

    classes: int | None = None
    draws: int | None = None
    ignore: int | None = None


def check_maps(maps: Maps, counts: Counts) -> Maps:
    """`maps` in the normal dtypes, probabilities renormalised."""
    arrays = {name: to_array(name, getattr(maps, name)) for name in ARRAYS}
    _check_shapes(arrays)
    _check_counts(arrays, counts)
    classes = arrays["mean_probs"].shape[0]
    with np.errstate(all="ignore"):
        return Maps(
            mean_probs=_mean_probs(arrays["mean_probs"]),
            expected_entropy=_entropy(arrays["expected_entropy"], classes),
            draw_labels=_labels("draw_labels", arrays, classes, counts.ignore),
            raters=_labels("raters", arrays, classes, counts.ignore),
        )


def counts_of(maps: Maps, ignore: int | None) -> Counts:
    """The counts of checked `maps`, which every further item must have as well."""
    return Counts(
        classes=maps.mean_probs.shape[0],
        draws=maps.draw_labels.shape[0],
        ignore=ignore,
    )


def held_in_memory(maps: Sequence[Maps], counts: Counts) -> LazyMaps:
    """`maps` of any kind, each checked when asked for."""
    return LazyMaps(partial(_check_row, maps, counts), range(len(maps)))


def complete(arrays: Mapping[str, Any], unread: tuple[str, ...]) -> Maps:
    """The four arrays of an item as a record, none of them missing."""
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise PredictionsError(
            f"a segmented item needs {listed(ARRAYS)}, found only "
            f"{listed((*arrays, *unread))}; add {listed(missing)}"
        )
    return Maps(**{name: arrays[name] for name in ARRAYS})


def _check_row(maps: Sequence[Maps], counts: Counts, row: int) -> Maps:
    with naming(f"maps[{row}]"):
        given = maps[row]
        if not isinstance(given, Maps):
            raise PredictionsError(
                f"must be a Maps record, got {type(given).__name__}; build it with "
                "qualms.predictions.Maps(mean_probs=..., ...)"
            )
        return check_maps(given, counts)


def _check_shapes(arrays: Mapping[str, NDArray[Any]]) -> None:
    space = arrays["expected_entropy"].shape
    if not space or 0 in space:
        raise PredictionsError(
            f"array 'expected_entropy' must have the shape of the image, got {space}"
        )
    for name, array in arrays.items():
        lead = _LEADING[name]
        if array.shape[len(lead) :] != space or array.ndim != len(space) + len(lead):
            wanted = ", ".join([*lead, *map(str, space)])
            raise PredictionsError(
                f"array '{name}' must have shape ({wanted}) to fit 'expected_entropy', "
                f"got {array.shape}; put the {_CALLED[lead]} axis first, then space"
            )
        if array.shape[0] == 0:
            raise PredictionsError(
                f"array '{name}' has no {_CALLED[lead]} (shape {array.shape}); there "
                "must be at least one"
            )


def _check_counts(arrays: Mapping[str, NDArray[Any]], counts: Counts) -> None:
    classes = arrays["mean_probs"].shape[0]
    if classes < 2:
        raise PredictionsError(
            "array 'mean_probs' must have at least two classes on its first axis, got "
            f"shape {arrays['mean_probs'].shape}; for P(y=1) stack 1 - p and p"
        )
    for name, axis, wanted in (
        ("mean_probs", "classes", counts.classes),
        ("draw_labels", "draws", counts.draws),
    ):
        got = arrays[name].shape[0]
        if wanted is not None and got != wanted:
            raise PredictionsError(
                f"array '{name}' has {got} {axis}, the first item has {wanted}; all "
                "items of one file must agree"
            )


def _mean_probs(array: NDArray[Any]) -> NDArray[Any]:
    given = as_numbers("mean_probs", array)
    finite_span("mean_probs", given, "C")
    made = given.astype(np.float32, copy=False)
    return np.ascontiguousarray(
        checked_probs("mean_probs", made, "C", remedy=_REMEDY).probs
    )


def _entropy(array: NDArray[Any], classes: int) -> NDArray[Any]:
    name = "expected_entropy"
    given = as_numbers(name, array)
    low, high = finite_span(name, given, "")
    # Half precision rounds; an entropy in bits misses by far more than this.
    limit, slack = log(classes), 2e-3 * (1.0 + log(classes))
    if low < -slack or high > limit + slack:
        wrong = (given < -slack) | (given > limit + slack)
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in [0, {limit:.4g}] (log C, in nats), "
            f"{where_in('', where)} is {float(given[where]):.6g}; use natural "
            "logarithms"
        )
    return np.ascontiguousarray(np.maximum(given.astype(np.float32, copy=False), 0))


def _labels(
    name: str, arrays: Mapping[str, NDArray[Any]], classes: int, ignore: int | None
) -> NDArray[Any]:
    axes = _LEADING[name]
    labels = np.ascontiguousarray(to_bytes(name, arrays[name], axes))
    if labels.max() < classes:
        return labels
    wrong = labels >= classes
    if ignore is not None:
        wrong &= labels != ignore
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in 0..{classes - 1} or be the header's 'ignore' "
            f"({ignore}), {where_in(axes, where)} is {labels[where]}; correct it, or "
            "state 'ignore' in the header"
        )
    return labels


# Gives the maps of a source, each to be checked against the counts when read.
Open = Callable[[Counts], Sequence[Maps]]


def segmentation(
    raw: RawArrays, open_maps: Open, asked: ReadOptions, source: str
) -> Predictions:
    """Segmentation predictions of the items in `raw`; the first item is read."""
    with naming(source):
        assembled = FORMATS[version_of(raw.header)](raw, open_maps, asked, source)
    # Outside the naming, for an item's complaint names its own file.
    maps = open_maps(Counts(ignore=assembled.header.ignore))
    counts = counts_of(maps[0], assembled.header.ignore)
    return replace(
        assembled,
        maps=open_maps(counts),
        draws=counts.draws or 1,
        classes=counts.classes,
    )


def _format_1(
    raw: RawArrays, open_maps: Open, asked: ReadOptions, source: str
) -> Predictions:
    stated = parse_header(raw.header)
    _refuse_other(stated.header.task, asked)
    notes = check_names("segmentation", (*raw.arrays, *raw.unread))
    n = len(open_maps(Counts()))
    if n == 0:
        raise PredictionsError("has no items; there must be at least one")
    check_shapes(stated.shapes, {name: a.shape for name, a in raw.arrays.items()})
    fields = in_order("segmentation", raw.arrays)
    axes, sizes = check_axes(fields, raw.arrays, maps=n)
    return Predictions(
        task="segmentation",
        header=replace(stated.header, task="segmentation"),
        arrays={
            name: normal_values(field, name, raw.arrays[name], axes[name], sizes)
            for name, field in fields.items()
        },
        source=source,
        notes=(*stated.notes, *notes),
        n=n,
    )


_Reader = Callable[[RawArrays, Open, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


def _refuse_other(stated: str | None, asked: ReadOptions) -> None:
    for task in (asked.task, stated):
        if task not in (None, "segmentation"):
            raise PredictionsError(
                f"holds maps of segmented items, but the task is said to be '{task}'; "
                "leave the task out"
            )
    if asked.logits:
        raise PredictionsError(
            "logits are for classification only, these are segmentation predictions; "
            "leave out --logits (logits=True)"
        )
