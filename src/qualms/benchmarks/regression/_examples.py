"""Figure 1: items of each dataset, as in training and as in the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks.regression._points import REAL, SYNTHETIC, Source
from qualms.benchmarks.regression._rows import COMMON
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
    """One figure of all datasets that were judged and whose items are there."""
    rows: list[tuple[Panel, ...]] = []
    sides: list[str] = []
    for variant in source.judged(SYNTHETIC + REAL, COMMON):
        for split in ("train", "test"):
            found = _items(variant, split, data)
            if found is not None:
                rows.append(_row(found))
                sides.append(f"{_short(variant.label)}\n{split}")
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
        found = simulated_items(variant, split, 2 * _COLUMNS)
        return _chosen(found, split)
    dataset = prepared_dataset(variant, data)
    if dataset is None:
        return None
    name = variant.test if split == "test" else split
    whole = dataset.split(name)
    few = slice(0, 2 * _COLUMNS)
    extra = {key: np.asarray(array[few]) for key, array in whole.extra.items()}
    image = as_pictures(np.asarray(whole.image[few]))
    return _chosen(ShownItems(image, np.asarray(whole.target[few]), extra), split)


def _chosen(items: ShownItems, split: str) -> ShownItems:
    """Some items; of a test those that are shifted, where they are marked."""
    shifted = items.extra.get("shifted")
    rows = np.arange(len(items.target))
    if split == "test" and shifted is not None and np.any(shifted):
        rows = np.flatnonzero(shifted)
    rows = rows[:_COLUMNS]
    return ShownItems(items.image[rows], items.target[rows], {})


def _row(items: ShownItems) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            marks=(PictureMark(pixels=_scaled(image)),),
            title=f"y = {float(target):.4g}",
            bare=True,
        )
        for image, target in zip(items.image, items.target, strict=True)
    )


def _scaled(image: NDArray[Any]) -> NDArray[Any]:
    """Pixels between 0 and 1 where they are not bytes."""
    if image.dtype == np.uint8:
        return image
    low, high = float(image.min()), float(image.max())
    scaled: NDArray[Any] = (image - low) / ((high - low) or 1.0)
    return scaled


def _short(label: str) -> str:
    """A label in lines that are short enough to stand beside a picture."""
    return (
        label.replace("-", "-\n")
        if "-" in label
        else label.replace("Pixels", "\nPixels")
    )
