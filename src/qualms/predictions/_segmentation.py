"""Segmentation predictions: arrays per item, and maps read one item at a time."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from qualms.predictions._error import PredictionsError, naming
from qualms.predictions._header import check_shapes, parse, version_of
from qualms.predictions._maps import Counts, counted
from qualms.predictions._names import check_names
from qualms.predictions._normal import Asked, Raw, in_order
from qualms.predictions._record import Maps, Predictions
from qualms.predictions._shapes import check_axes
from qualms.predictions._values import normal_values

# Gives the maps of a source, each to be checked against the counts when read.
Open = Callable[[Counts], Sequence[Maps]]


def segmentation(raw: Raw, open_maps: Open, asked: Asked, source: str) -> Predictions:
    """Segmentation predictions of the items in `raw`; the first item is read."""
    with naming(source):
        assembled = FORMATS[version_of(raw.header)](raw, open_maps, asked, source)
    # Outside the naming, for an item's complaint names its own file.
    maps = open_maps(Counts(ignore=assembled.header.ignore))
    counts = counted(maps[0], assembled.header.ignore)
    return replace(
        assembled,
        maps=open_maps(counts),
        draws=counts.draws or 1,
        classes=counts.classes,
    )


def _format_1(raw: Raw, open_maps: Open, asked: Asked, source: str) -> Predictions:
    stated = parse(raw.header)
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


_Reader = Callable[[Raw, Open, Asked, str], Predictions]
# A released version keeps its reader here for good.
FORMATS: dict[int, _Reader] = {1: _format_1}


def _refuse_other(stated: str | None, asked: Asked) -> None:
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
