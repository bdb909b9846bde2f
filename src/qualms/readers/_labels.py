"""Names of labels and regions, and the ignored label, from a `dataset.json`.

nnU-Net names the labels of a dataset in `dataset.json`; other folders of masks may have
such a file too. A label is a number, or a list of numbers for a region; `ignore` is the
label of pixels that are left out.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import PredictionsError, read_json

FILE = "dataset.json"
_IGNORE = "ignore"
_ORDER = "regions_class_order"


class LabelNames(NamedTuple):
    """The classes or regions that a network predicts, and their labels in masks."""

    names: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    """Labels in masks of each class or region."""
    regions: bool = False
    """True if each region has a sigmoid of its own."""
    ignore: int | None = None

    def header(self) -> dict[str, Any]:
        """Return the fields of the header that these names fill in."""
        named = {"regions" if self.regions else "classes": list(self.names)}
        return named if self.ignore is None else {**named, "ignore": self.ignore}

    def rated(self, labels: NDArray[np.uint8], where: str) -> NDArray[np.uint8]:
        """Return labels (*space) in a mask as classes, or as regions (K, *space).

        Raises:
            PredictionsError: If the mask has a label without a name.
        """
        known = {value for values in self.values for value in values}
        known |= {0} if self.regions else set()
        known |= set() if self.ignore is None else {self.ignore}
        unknown = sorted(set(np.unique(labels).tolist()) - known)
        if unknown:
            raise PredictionsError(
                f"{where} must hold labels that {FILE} names, {sorted(known)}, got"
                f" {unknown[0]}; name it there, or correct the mask"
            )
        inside = [np.isin(labels, values) for values in self.values]
        if self.regions:
            rated = np.stack(inside).astype(np.uint8)
            if self.ignore is not None:
                rated[:, labels == self.ignore] = self.ignore
            return rated
        rated = np.zeros(labels.shape, np.uint8)
        for number, part in enumerate(inside):
            rated[part] = number
        if self.ignore is not None:
            rated[labels == self.ignore] = self.ignore
        return rated


def read_label_names(path: Path) -> LabelNames:
    """Read the labels that the dataset.json at `path` names, as nnU-Net does.

    Raises:
        PredictionsError: If it states no labels, or contradictory ones.
    """
    dataset = read_json(path)
    labels = dataset.get("labels")
    if not isinstance(labels, dict) or not labels:
        raise PredictionsError(
            f"{path} must name the labels, as in"
            ' {"labels": {"background": 0, "tumour": 1}}, got'
            f" {labels!r:.60}; write it as nnU-Net v2 does"
        )
    values = {name: _values(path, name, value) for name, value in labels.items()}
    ignore = values.pop(_IGNORE, None)
    ignored = None if ignore is None else ignore[0]
    if any(len(each) > 1 for each in values.values()):
        inner = {name: each for name, each in values.items() if set(each) != {0}}
        order = class_order(path)
        if order and len(order) != len(inner):
            raise PredictionsError(
                f"{path} names {len(inner)} regions, and 'regions_class_order' has"
                f" {len(order)} entries; give one for each region"
            )
        return LabelNames(tuple(inner), tuple(inner.values()), True, ignored)
    # The outputs of a network are in the order of the labels' numbers.
    ordered = sorted(values.items(), key=lambda entry: entry[1])
    return LabelNames(
        tuple(name for name, _ in ordered),
        tuple(each for _, each in ordered),
        False,
        ignored,
    )


def class_order(path: Path) -> tuple[int, ...]:
    """Return the label of each region in a label map; () if none is stated."""
    order = read_json(path).get(_ORDER)
    return () if order is None else _values(path, _ORDER, order, several=True)


def unnamed_labels(count: int) -> LabelNames:
    """Return classes without names, whose labels are their numbers."""
    return LabelNames((), tuple((number,) for number in range(count)))


def _values(
    path: Path, name: str, value: Any, *, several: bool = False
) -> tuple[int, ...]:
    """Return one label or several of a region, which have no order unless `several`."""
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each <= 255:
            raise PredictionsError(
                f"{path}: label '{name}' must be a whole number from 0 to 255, or a"
                f" list of them for a region, got {value!r:.60}; correct it"
            )
    if not values:
        raise PredictionsError(f"{path}: label '{name}' must have a number, got none")
    return tuple(values) if several else tuple(sorted(set(values)))
