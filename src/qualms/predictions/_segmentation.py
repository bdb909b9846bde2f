"""Segmentation predictions: arrays over items, and maps read one item at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, listed, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._header import check_shapes, parse_header, version_of
from qualms.predictions._names import check_names
from qualms.predictions._normal import (
    RawArrays,
    ReadOptions,
    bounded_notes,
    in_order,
)
from qualms.predictions._probabilities import checked_probs
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._values import (
    RawArray,
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


# Rounding to half precision may raise a mean entropy this far above its bound.
_SLACK = 0.01


class Counts(NamedTuple):
    """Numbers of classes and draws, and the ignored label, of all items of a file."""

    classes: int | None = None
    draws: int | None = None
    ignore: int | None = None


def check_maps(maps: Maps, counts: Counts) -> Maps:
    """Return `maps` in the normal dtypes, with probabilities renormalised."""
    if not isinstance(maps, Maps):
        raise PredictionsError(
            f"must be a Maps record, got {type(maps).__name__}; build it with "
            "qualms.predictions.Maps(mean_probs=..., ...)"
        )
    arrays = {name: to_array(name, getattr(maps, name)) for name in ARRAYS}
    shapes = {name: array.shape for name, array in arrays.items()}
    return load_maps(shapes, arrays.__getitem__, counts)


def load_maps(
    shapes: Mapping[str, tuple[int, ...]],
    load: Callable[[str], NDArray[Any]],
    counts: Counts,
) -> Maps:
    """Load and check the maps of one item; shapes are compared before loading."""
    missing = [name for name in ARRAYS if name not in shapes]
    if missing:
        raise PredictionsError(
            f"a segmented item needs {listed(ARRAYS)}, found only {listed(shapes)}; "
            f"add {listed(missing)}"
        )
    _check_shapes({name: shapes[name] for name in ARRAYS})
    _check_counts(shapes, counts)
    classes = shapes["mean_probs"][0]
    with np.errstate(all="ignore"):
        return Maps(
            mean_probs=_mean_probs(load("mean_probs")),
            expected_entropy=_entropy(load("expected_entropy"), classes),
            draw_labels=_labels("draw_labels", load("draw_labels"), classes, None),
            raters=_labels("raters", load("raters"), classes, counts.ignore),
        )


def counts_of(maps: Maps, ignore: int | None) -> Counts:
    """Return the counts of checked `maps`, which all other items must share."""
    return Counts(
        classes=maps.mean_probs.shape[0],
        draws=maps.draw_labels.shape[0],
        ignore=ignore,
    )


def maps_in_memory(maps: Sequence[Maps], counts: Counts) -> LazyMaps:
    """Return maps in memory as a sequence that checks them on access."""
    return LazyMaps(partial(_check_row, maps, counts), range(len(maps)))


def _check_row(maps: Sequence[Maps], counts: Counts, row: int) -> Maps:
    with naming(f"maps[{row}]"):
        return check_maps(maps[row], counts)


def _check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    space = shapes["expected_entropy"]
    if not space or 0 in space:
        raise PredictionsError(
            f"array 'expected_entropy' must have the shape of the image, got {space}"
        )
    for name, shape in shapes.items():
        lead = _LEADING[name]
        if shape[len(lead) :] != space or len(shape) != len(space) + len(lead):
            wanted = ", ".join([*lead, *map(str, space)])
            last = len(shape) == len(space) + 1 and shape[:-1] == space
            move = f": np.moveaxis({name}, -1, 0)" if last else ", then space"
            raise PredictionsError(
                f"array '{name}' must have shape ({wanted}) to fit 'expected_entropy', "
                f"got {shape}; put the {_CALLED[lead]} axis first{move}"
            )
        if shape[0] == 0:
            raise PredictionsError(
                f"array '{name}' has no {_CALLED[lead]} (shape {shape}); there must be "
                "at least one"
            )


def _check_counts(shapes: Mapping[str, tuple[int, ...]], counts: Counts) -> None:
    if shapes["mean_probs"][0] < 2:
        raise PredictionsError(
            "array 'mean_probs' must have at least two classes on its first axis, got "
            f"shape {shapes['mean_probs']}; for P(y=1) stack 1 - p and p"
        )
    for name, axis, wanted in (
        ("mean_probs", "classes", counts.classes),
        ("draw_labels", "draws", counts.draws),
    ):
        size = shapes[name][0]
        if wanted is not None and size != wanted:
            raise PredictionsError(
                f"array '{name}' has {size} {axis}, the first item has {wanted}; all "
                "items of one file must agree"
            )


def _mean_probs(array: NDArray[Any]) -> NDArray[Any]:
    numbers = as_numbers("mean_probs", array)
    finite_span("mean_probs", numbers, "C")
    probs = numbers.astype(np.float32, copy=False)
    return np.ascontiguousarray(
        checked_probs("mean_probs", probs, "C", remedy=_REMEDY, dtype=np.float32).array
    )


def _entropy(array: NDArray[Any], classes: int) -> NDArray[Any]:
    name = "expected_entropy"
    entropy = as_numbers(name, array)
    low, high = finite_span(name, entropy, "")
    # Half precision rounds. An entropy in bits exceeds the limit by far more.
    limit, slack = log(classes), 2e-3 * (1.0 + log(classes))
    if low < -slack or high > limit + slack:
        wrong = (entropy < -slack) | (entropy > limit + slack)
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in [0, {limit:.4g}] (log C, in nats), "
            f"{where_in('', where)} is {float(entropy[where]):.6g}; use natural "
            "logarithms"
        )
    return np.ascontiguousarray(np.maximum(entropy.astype(np.float32, copy=False), 0))


def _labels(
    name: str, array: NDArray[Any], classes: int, ignore: int | None
) -> NDArray[Any]:
    axes = _LEADING[name]
    labels = np.ascontiguousarray(to_bytes(name, array, axes))
    if labels.max() < classes:
        return labels
    wrong = labels >= classes
    if ignore is not None:
        wrong &= labels != ignore
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        rule = f"lie in 0..{classes - 1}"
        remedy = "store a class for every pixel; 'ignore' is for raters alone"
        if name == "raters":
            rule += f" or be the header's 'ignore' ({ignore})"
            remedy = "correct it, or state 'ignore' in the header"
        raise PredictionsError(
            f"array '{name}' must {rule}, {where_in(axes, where)} is {labels[where]}; "
            f"{remedy}"
        )
    return labels


def entropy_excess(maps: Maps) -> float:
    """Return how far the mean entropy of draws exceeds that of their mean, at most."""
    probs = maps.mean_probs
    logs = np.log(probs, where=probs > 0, out=np.zeros_like(probs))
    return float((maps.expected_entropy + (probs * logs).sum(axis=0)).max())


def check_entropies(predictions: Predictions, excess: NDArray[np.float64]) -> None:
    """Raise if the `entropy_excess` (N,) of an item is more than rounding."""
    row = int(excess.argmax())
    if excess[row] > _SLACK:
        names = predictions.get("item")
        raise PredictionsError(
            f"item {row if names is None else names[row]} of {predictions.source} must"
            " have an 'expected_entropy' of at most the entropy of its 'mean_probs' at"
            f" every pixel, and it is above by up to {excess[row]:.2g} nats; take both"
            " from the same draws, with natural logarithms"
        )


# Opens the maps of a source, each of which is checked against the counts on access.
Open = Callable[[Counts], Sequence[Maps]]


def segmentation_form(
    raw: RawArrays, open_maps: Open, options: ReadOptions, source: str
) -> Predictions:
    """Return segmentation predictions of the items in `raw`; the first is read."""
    with naming(source):
        predictions = FORMATS[version_of(raw.header)](raw, open_maps, options, source)
    # Outside `naming`, because an error in an item already names its own file.
    ignore = predictions.header.ignore
    first = open_maps(Counts(ignore=ignore))[0]
    counts = counts_of(first, ignore)
    return replace(
        predictions,
        maps=open_maps(counts),
        draws=counts.draws or 1,
        classes=counts.classes,
        pixels=first.expected_entropy.size,
    )


def _format_1(
    raw: RawArrays, open_maps: Open, options: ReadOptions, source: str
) -> Predictions:
    parsed = parse_header(raw.header, strict=options.strict)
    _check_options(parsed.header.task, options)
    names = (*raw.shapes, *raw.unread)
    notes = check_names("segmentation", names, strict=options.strict)
    n = len(open_maps(Counts()))
    if n == 0:
        raise PredictionsError("has no items; there must be at least one")
    check_shapes(parsed.shapes, raw.shapes, frozenset(raw.unread))
    fields = in_order("segmentation", raw.shapes)
    axes, sizes = check_axes(fields, raw.shapes, maps=n)
    return Predictions(
        task="segmentation",
        header=replace(parsed.header, task="segmentation"),
        arrays={
            name: normal_values(
                RawArray(name, raw.array(name), field, axes[name], sizes)
            )
            for name, field in fields.items()
        },
        source=source,
        notes=bounded_notes([*parsed.notes, *notes]),
        n=n,
    )


_Reader = Callable[[RawArrays, Open, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


def _check_options(in_header: str | None, options: ReadOptions) -> None:
    for task in (options.task, in_header):
        if task not in (None, "segmentation"):
            raise PredictionsError(
                f"holds maps of segmented items, but the task is said to be '{task}'; "
                "leave the task out"
            )
    if options.logits:
        raise PredictionsError(
            "logits are for classification only, these are segmentation predictions; "
            "leave out --logits (logits=True)"
        )
