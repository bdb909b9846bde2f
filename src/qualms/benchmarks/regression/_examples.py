"""Figure 1: items of each dataset, as in training and as in the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.regression._points import Source
from qualms.benchmarks.regression._rows import COMMON, REAL, SYNTHETIC
from qualms.report.figures import Drawing, Panel, PictureMark
from qualms.report.pictures import (
    ShownItems,
    as_pictures,
    prepared_dataset,
    simulated_items,
)
from qualms.study import Variant

_COLUMNS = 6
_CAPTION = (
    "The first items of each dataset, in pairs of rows: as in training above, as in "
    "the test below, with the target y that is to be predicted. Shifted datasets "
    "have test items unlike those of training."
)


def example_drawings(source: Source, data: Path | None) -> Iterator[Drawing]:
    """Yield one figure of all judged datasets whose items are on this machine."""
    rows: list[tuple[Panel, ...]] = []
    sides: list[str] = []
    for variant in source.judged(SYNTHETIC + REAL, COMMON):
        for split in ("train", "test"):
            items = _items(variant, split, data)
            if items is not None:
                rows.append(_row(items))
                sides.append(f"{_break_label(variant.label)}\n{split}")
    if rows:
        yield Drawing(
            name=f"figure_1{source.suffix}",
            title="Figure 1: items of each dataset",
            caption=f"{_CAPTION} {source.remark}",
            rows=tuple(rows),
            sides=tuple(sides),
            simulated=source.simulated,
            size=(0.85, 0.95),
        )


def _items(variant: Variant, split: str, data: Path | None) -> ShownItems | None:
    if variant.simulated:
        items = simulated_items(variant, split, 2 * _COLUMNS)
        return _choose_items(items, split)
    dataset = prepared_dataset(variant, data)
    if dataset is None:
        return None
    name = variant.test if split == "test" else split
    part = dataset.split(name)
    few = slice(0, 2 * _COLUMNS)
    extra = {key: np.asarray(array[few]) for key, array in part.extra.items()}
    image = as_pictures(np.asarray(part.image[few]))
    return _choose_items(ShownItems(image, np.asarray(part.target[few]), extra), split)


def _choose_items(items: ShownItems, split: str) -> ShownItems:
    """Choose a few items; of a test split shifted ones, where these are marked."""
    shifted = items.extra.get("shifted")
    rows = np.arange(len(items.target))
    if split == "test" and shifted is not None and np.any(shifted):
        rows = np.flatnonzero(shifted)
    rows = rows[:_COLUMNS]
    return ShownItems(items.image[rows], items.target[rows], {})


def _row(items: ShownItems) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            marks=(PictureMark(pixels=_scale_pixels(image)),),
            title=f"y = {float(target):.4g}",
            bare=True,
        )
        for image, target in zip(items.image, items.target, strict=True)
    )


def _scale_pixels(image: NDArray[Any]) -> NDArray[Any]:
    """Scale pixels that are not bytes to between 0 and 1."""
    if image.dtype == np.uint8:
        return image
    low, high = float(image.min()), float(image.max())
    scaled: NDArray[Any] = (image - low) / ((high - low) or 1.0)
    return scaled


def _break_label(label: str) -> str:
    """Break a label into lines that are short enough to stand beside a picture."""
    return (
        label.replace("-", "-\n")
        if "-" in label
        else label.replace("Pixels", "\nPixels")
    )
