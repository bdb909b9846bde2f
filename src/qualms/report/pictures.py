"""Pictures of items for figures: from prepared datasets, and from simulators."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Dataset, DatasetError, Recipe, open_dataset
from qualms.shelf import find
from qualms.study import Variant


class ShownItems(NamedTuple):
    """Some items of a split."""

    image: NDArray[Any]
    """(k, H, W) or (k, H, W, 3), as a picture is drawn."""
    target: NDArray[Any]
    extra: Mapping[str, NDArray[Any]]


def prepared_dataset(
    variant: Variant, data: Path | None, **options: Any
) -> Dataset | None:
    """Return the prepared dataset of a variant, or None.

    Args:
        variant: The variant.
        data: Folder of prepared datasets.
        **options: Options of the dataset besides those of the variant.
    """
    part = variant.dataset
    if data is None:
        return None
    signature = inspect.signature(find("datasets", part.name))
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    wanted = {**defaults, **part.options, **options}
    for file in sorted(data.glob(f"{part.name}-*/meta.json")):
        with suppress(DatasetError, OSError, ValueError):
            dataset = open_dataset(file.parent)
            if dataset.has_options(wanted):
                return dataset
    return None


def simulated_items(
    variant: Variant, split: str, count: int, **options: Any
) -> ShownItems:
    """Simulate the first items of a split."""
    part = variant.dataset
    sizes = dict.fromkeys(("train", "val", "test"), count)
    options = {**part.options, "sizes": sizes, **options}
    recipe: Recipe = find("datasets", part.name)(**options)
    unit = next(unit for unit in recipe.units if unit.split == split)
    items = recipe.load(unit)
    return ShownItems(as_pictures(np.asarray(items.image)), items.target, items.extra)


def as_pictures(image: NDArray[Any]) -> NDArray[Any]:
    """Return images as they are drawn: unless they have three channels, the first."""
    if image.ndim == 4 and image.shape[-1] != 3:
        return image[..., 0]
    return image


def slice_picture(image: NDArray[Any], at: int | None) -> NDArray[Any]:
    """Return an item (*space, channels) as a picture, or slice `at` of a volume.

    Grey values are scaled to 0 to 1; bytes of three channels stay as they are.
    """
    picture = image if at is None else image[at]
    if picture.dtype == np.uint8 and picture.shape[-1] == 3:
        return np.asarray(picture)
    grey = np.asarray(picture[..., 0], np.float64)
    low, high = float(grey.min()), float(grey.max())
    return (grey - low) / ((high - low) or 1.0)


def label_picture(
    labels: NDArray[np.integer[Any]], *, background: bool = True
) -> NDArray[np.uint8]:
    """Return label maps (H, W) in colours; each label has one colour everywhere.

    Args:
        labels: Label maps; 255 is a pixel without a label, and white.
        background: Whether label 0 is background, and black.
    """
    numbers = np.arange(256)
    # Steps of 7/24 of the circle: neighbouring classes, and 24 of them, differ.
    hues = (7 * numbers / 24) % 1.0
    light = np.where(numbers % 2, 0.95, 0.7)
    # Three waves, a third of the circle apart, go through all hues.
    waves = [0.5 + 0.5 * np.cos(2 * np.pi * (hues - shift / 3)) for shift in range(3)]
    colours = (255 * light[:, None] * np.stack(waves, axis=1)).astype(np.uint8)
    colours[0], colours[255] = 0 if background else 90, 255
    return np.asarray(colours[labels])
