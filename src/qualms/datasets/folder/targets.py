"""Targets of a user's images: a class, a number, or a label for each pixel.

Masks hold the labels 0, 1, 2 ... Pixels of label 255 count nowhere, unless all labels
are 0 and 255, which then are the classes 0 and 1.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._options import check_choice
from qualms.datasets._recipe import DatasetError
from qualms.datasets.folder.files import (
    MaskFacts,
    PictureFacts,
    VoxelGrid,
    side_words,
)
from qualms.datasets.folder.listing import OwnItem
from qualms.spec import Task

OwnTaskName = Literal["classification", "regression", "segmentation"]
NAMES: tuple[OwnTaskName, ...] = ("classification", "regression", "segmentation")
FEW = 20
"""Largest number of different integers that count as classes."""
DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}")
IGNORED = 255
MOST_STRETCH = 0.01
"""Largest share by which the spacing of a mask may miss that of its image."""
MOST_SHIFT = 0.1
"""Largest difference between their origins, in sides of a voxel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTask:
    """Task of a user's images, and the target of each item."""

    name: OwnTaskName
    classes: tuple[str, ...] = ()
    targets: tuple[float, ...] = ()
    """Number of the class, or the number itself; 0 where masks are the targets."""
    values: tuple[float, ...] | None = None
    """The targets where they are numbers."""
    ignored: bool = False
    """True if pixels with label 255 are ignored."""
    doubled: bool = False
    """True if label 255 is class 1."""

    def declared(self, space: int) -> Task:
        """Return the task of images with `space` axes."""
        return Task(
            name=self.name,
            classes=len(self.classes) or None,
            ignore=IGNORED if self.ignored else None,
            space=space,
        )

    def labels(self, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the classes of the labels of a file."""
        return (stored == IGNORED).astype(np.uint8) if self.doubled else stored

    def without_targets(self) -> "OwnTask":
        """Return the record without what loading one item does not need."""
        return replace(self, targets=(), values=None)


def own_task(items: Sequence[OwnItem], requested: OwnTaskName | None) -> OwnTask:
    """Find the task of the items; masks are read later."""
    if requested is not None:
        check_choice("task", requested, NAMES)
    name = requested or _guess_task(items)
    if name == "segmentation":
        _check_raters(items)
        return OwnTask(name=name, targets=(0.0,) * len(items))
    for item in items:
        if not item.target:
            raise DatasetError(
                f"{item.where} must have a target, got none; add a column 'target'"
                " (or 'mask', for segmentation) and fill it"
            )
    if requested != "classification":
        _refuse_commas(items)
        _refuse_dates(items)
    if name == "regression":
        values = tuple(target_number(item) for item in items)
        if len(set(values)) < 2:
            raise DatasetError(
                f"targets must differ, got {values[0]:g} for each of {len(values)}"
                " items; there is nothing to learn"
            )
        return OwnTask(name=name, targets=values, values=values)
    return _classified(items)


def _classified(items: Sequence[OwnItem]) -> OwnTask:
    """Number the classes of the items."""
    classes = _sort_classes({item.target for item in items})
    if len(classes) == len(items):
        raise DatasetError(
            f"several items must be of one class, got a class for each of {len(items)}"
            f" items, such as {classes[0]!r}; give the class of an item as its target,"
            " and its name as its path"
        )
    numbers = {label: number for number, label in enumerate(classes)}
    targets = tuple(numbers[item.target] for item in items)
    return OwnTask(name="classification", classes=classes, targets=targets)


def check_trained(
    items: Sequence[OwnItem], split: Sequence[str], task: OwnTask
) -> None:
    """Raise if a class is tested and not trained on, or if there is one class only."""
    if task.name != "classification":
        return
    pairs = list(zip(items, split, strict=True))
    trained = {item.target for item, name in pairs if name == "train"}
    for item, name in pairs:
        if item.target not in trained:
            raise DatasetError(
                f"{item.where} is of the class {item.target!r} in the split {name}, and"
                f" no item of it is in train, whose classes are"
                f" {', '.join(_sort_classes(trained))}; add some there, or leave it out"
            )
    if len(trained) < 2:
        raise DatasetError(
            f"there must be at least two classes, got {', '.join(trained)}; if targets"
            " are numbers, state the task, regression (`qualms docs own_data`)"
        )


def masked_task(
    items: Sequence[OwnItem],
    pictures: Mapping[str, PictureFacts],
    masks: Mapping[str, MaskFacts],
    *,
    padded: bool,
) -> OwnTask:
    """Return the task of segmentation, with the classes that the masks hold."""
    for item in items:
        for path in item.masks:
            _check_size(item, path, pictures[item.path], masks[path])
    labels = {label for facts in masks.values() for label in facts.labels}
    doubled = labels <= {0, IGNORED} and IGNORED in labels
    most = 1 if doubled else max(labels - {IGNORED}, default=0)
    if most == 0:
        raise DatasetError(
            "masks must hold the labels 0, 1, 2 ..., got 0 alone; mark something in"
            " some of them"
        )
    if not doubled and len(labels - {IGNORED}) <= most // 2:
        odd = next(p for p, f in masks.items() if most in f.labels)
        first = ", ".join(map(str, sorted(labels)[:8]))
        raise DatasetError(
            f"masks must hold the labels 0, 1, 2 ... (and 255 for what counts nowhere),"
            f" got {first}, the largest {most} in {odd}; number them from 0 on"
        )
    return OwnTask(
        name="segmentation",
        classes=tuple(map(str, range(most + 1))),
        targets=(0.0,) * len(items),
        ignored=padded or (IGNORED in labels and not doubled),
        doubled=doubled,
    )


def _guess_task(items: Sequence[OwnItem]) -> OwnTaskName:
    if any(item.masks for item in items):
        return "segmentation"
    targets = {item.target for item in items}
    values = [float(target) for target in targets if _is_number(target)]
    if len(values) < len(targets):
        if len(values) > FEW:
            _refuse_mixture(items)
        return "classification"
    integers = all(value.is_integer() for value in values)
    return "classification" if integers and len(targets) <= FEW else "regression"


def _refuse_commas(items: Sequence[OwnItem]) -> None:
    """Raise if targets are numbers with a decimal comma, which would be classes."""
    odd = [item for item in items if re.fullmatch(r"[+-]?\d*,\d+", item.target)]
    if len(odd) > len(items) // 2:
        target, where = odd[0].target, odd[0].where
        raise DatasetError(
            f"numbers must have a decimal point, got {target!r} in {where}; write"
            f" {target.replace(',', '.')}, or state the task, classification, if these"
            " are names (`qualms docs own_data`)"
        )


def _refuse_dates(items: Sequence[OwnItem]) -> None:
    """Raise if targets are dates, each of which would be a class."""
    odd = [item for item in items if DATE.fullmatch(item.target)]
    if len(odd) > len(items) // 2:
        raise DatasetError(
            f"targets must be classes or numbers, got the date {odd[0].target!r} in"
            f" {odd[0].where}; write a number, such as days, or state the task,"
            " classification, if each date is a class (`qualms docs own_data`)"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_mixture(items: Sequence[OwnItem]) -> None:
    """Raise if a target is no number among many that are."""
    odd = next((i for i in items if i.target and not _is_number(i.target)), None)
    if odd is not None:
        raise DatasetError(
            f"the target in {odd.where} must be a number as those of other items are,"
            f" got {odd.target!r}; correct it, or state the task, classification"
            " (`qualms docs own_data`)"
        )


def _check_raters(items: Sequence[OwnItem]) -> None:
    first = items[0]
    for item in items:
        if not item.masks:
            raise DatasetError(
                f"{item.where} must have a mask, got none; add a column 'mask', or"
                " 'masks' for several raters"
            )
        if len(item.masks) != len(first.masks):
            raise DatasetError(
                "all items must have the same number of raters, got"
                f" {len(first.masks)} masks in {first.where} and {len(item.masks)} in"
                f" {item.where}; complete them"
            )


def target_number(item: OwnItem) -> float:
    """Return the target of an item, which must be a number."""
    value = float(item.target) if _is_number(item.target) else math.nan
    if not math.isfinite(value):
        raise DatasetError(
            f"the target in {item.where} must be a finite number, got {item.target!r};"
            " correct it, or state the task, classification (`qualms docs own_data`)"
        )
    return value


def _sort_classes(labels: set[str]) -> tuple[str, ...]:
    """Sort class names: numbers by value, text by the alphabet."""
    try:
        return tuple(sorted(labels, key=float))
    except ValueError:
        return tuple(sorted(labels))


def _check_size(
    item: OwnItem, path: str, picture: PictureFacts, mask: MaskFacts
) -> None:
    if picture.space != mask.space:
        image, labels = side_words(picture.space), side_words(mask.space)
        raise DatasetError(
            f"a mask must have the size of its image, got {labels} in {path!r} and"
            f" {image} in {item.path!r} ({item.where}); make them alike"
        )
    if picture.axes != mask.axes:
        raise DatasetError(
            "a mask must be turned as its image is, or it would not lie on it; got"
            f" {mask.axes or 'no axes'} in {path!r} and {picture.axes or 'none'} in"
            f" {item.path!r} ({item.where}); save it with the affine of the image"
        )
    if picture.place and mask.place and not _lies_on(mask.place, picture.place):
        raise DatasetError(
            "a mask must have the spacing and the origin of its image, or it would not"
            f" lie on it; got {_grid_words(mask.place)} in {path!r} and"
            f" {_grid_words(picture.place)} in {item.path!r} ({item.where}); save it"
            " with the affine of the image"
        )


def _lies_on(mask: VoxelGrid, picture: VoxelGrid) -> bool:
    """Return whether two volumes lie alike, up to rounding in their headers."""
    sides = zip(mask.spacing, picture.spacing, strict=True)
    starts = zip(mask.origin, picture.origin, strict=True)
    near = MOST_SHIFT * min(picture.spacing)
    return all(abs(a - b) <= MOST_STRETCH * b for a, b in sides) and all(
        abs(a - b) <= near for a, b in starts
    )


def _grid_words(place: VoxelGrid) -> str:
    spacing = " x ".join(f"{side:g}" for side in place.spacing)
    origin = ", ".join(f"{start:g}" for start in place.origin)
    return f"voxels of {spacing} mm from ({origin})"
