"""Segmentation predictions: arrays over items, and maps read one item at a time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._class_names import check_class_names
from qualms.predictions._errors import PredictionsError, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._header import Header, check_shapes, parse_header, version_of
from qualms.predictions._item_maps import ItemForm, check_maps, form_of
from qualms.predictions._names import check_names
from qualms.predictions._normal import (
    RawArrays,
    ReadOptions,
    bounded_notes,
    in_order,
)
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._stated import check_background
from qualms.predictions._values import RawArray, check_axes, normal_values
from qualms.predictions.schema import folder_task

# Rounding to half precision may raise a mean entropy this far above its bound.
_SLACK = 0.01


class ItemMaps(NamedTuple):
    """Access to the maps of all items, and to their number of draws."""

    open: Callable[[ItemForm], Sequence[Maps]]
    """Opens the maps, each of which is checked against the form on access."""
    most_draws: Callable[[], int]
    """Returns the most draws of an item, without reading the maps."""


def maps_in_memory(maps: Sequence[Maps]) -> ItemMaps:
    """Return maps in memory as a source that checks them on access."""
    return ItemMaps(partial(_checked_maps, maps), partial(_most_draws, maps))


def _checked_maps(maps: Sequence[Maps], form: ItemForm) -> LazyMaps:
    return LazyMaps(partial(_check_row, maps, form), range(len(maps)))


def _check_row(maps: Sequence[Maps], form: ItemForm, row: int) -> Maps:
    with naming(f"maps[{row}]"):
        return check_maps(maps[row], form)


def _most_draws(maps: Sequence[Maps]) -> int:
    labels = (each.draw_labels for each in maps if isinstance(each, Maps))
    shapes = (to_array("draw_labels", each).shape for each in labels)
    return max((shape[0] for shape in shapes if shape), default=1)


def form_of_header(header: Header) -> ItemForm:
    """Return the form of all items, as far as the header states it."""
    return ItemForm(ignore=header.ignore, regions=tuple(header.regions))


def entropy_excess(maps: Maps, *, regions: bool = False) -> float:
    """Return the largest excess of the draws' mean entropy over that of their mean."""
    return float((maps.expected_entropy - _entropy_of_mean(maps, regions)).max())


def _entropy_of_mean(maps: Maps, regions: bool) -> NDArray[np.floating]:
    probs = maps.mean_probs
    if regions:
        probs = np.concatenate([probs, 1.0 - probs])
    logs = np.log(probs, where=probs > 0, out=np.zeros_like(probs))
    return np.asarray(-(probs * logs).sum(axis=0))


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


def segmentation_form(
    raw: RawArrays, maps: ItemMaps, options: ReadOptions, source: str
) -> Predictions:
    """Return segmentation predictions of the items in `raw`; the first is read."""
    with naming(source):
        predictions = FORMATS[version_of(raw.header)](raw, maps, options, source)
    # Outside `naming`, because an error in an item already names its own file.
    form = form_of_header(predictions.header)
    first = maps.open(form)[0]
    form = form_of(first, form)
    with naming(source):
        check_class_names(predictions.header, None if form.regions else form.classes)
        if form.classes is not None and not form.regions:
            check_background(predictions.header, form.classes)
    # Files with one draw for every item have other measures than all others.
    draws = len(first.draw_labels)
    return replace(
        predictions,
        maps=maps.open(form),
        draws=draws if draws > 1 else maps.most_draws(),
        classes=None if form.regions else form.classes,
        pixels=first.expected_entropy.size,
        own_maps=tuple(first.uncertainty),
    )


def _format_1(
    raw: RawArrays, maps: ItemMaps, options: ReadOptions, source: str
) -> Predictions:
    parsed = parse_header(raw.header, strict=options.strict)
    _check_options(parsed.header.task, options)
    names = (*raw.shapes, *raw.unread)
    notes = check_names(folder_task(), names, strict=options.strict)
    n = len(maps.open(form_of_header(parsed.header)))
    if n == 0:
        raise PredictionsError("has no items; there must be at least one")
    check_shapes(parsed.shapes, raw.shapes, frozenset(raw.unread))
    fields = in_order(folder_task(), raw.shapes)
    axes, sizes = check_axes(fields, raw.shapes, maps=n)
    return Predictions(
        task=folder_task(),
        header=replace(parsed.header, task=folder_task()),
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


_FormReader = Callable[[RawArrays, ItemMaps, ReadOptions, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _FormReader] = {1: _format_1}


def _check_options(in_header: str | None, options: ReadOptions) -> None:
    for task in (options.task, in_header):
        if task not in (None, folder_task()):
            raise PredictionsError(
                f"holds maps of segmented items, but the task is said to be '{task}'; "
                "leave the task out"
            )
    if options.logits:
        raise PredictionsError(
            "logits are for classification only, these are segmentation predictions; "
            "leave out --logits (logits=True)"
        )
