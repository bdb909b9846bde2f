"""Pictures of items for figures: from prepared datasets, and from simulators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Variant
from qualms.datasets import Dataset, DatasetError, Recipe, cache_folder, open_dataset
from qualms.shelf import find


class ShownItems(NamedTuple):
    """Some items of a split."""

    image: NDArray[Any]
    """(k, H, W) or (k, H, W, 3), as a picture is drawn."""
    target: NDArray[Any]
    extra: Mapping[str, NDArray[Any]]


def prepared_dataset(
    variant: Variant, data: Path | None, **options: Any
) -> Dataset | None:
    """The prepared dataset of a variant; None where it is not there.

    Args:
        variant: Whose dataset.
        data: Folder of prepared datasets.
        **options: Options of the dataset besides those of the variant.
    """
    if data is None:
        return None
    try:
        return open_dataset(cache_folder(data, _recipe(variant, options)))
    except (DatasetError, OSError, ValueError):
        return None


def simulated_items(
    variant: Variant, split: str, count: int, **options: Any
) -> ShownItems:
    """The first items of a split of a simulator, made anew."""
    sizes = dict.fromkeys(("train", "val", "test"), count)
    recipe = _recipe(variant, {"sizes": sizes, **options})
    unit = next(unit for unit in recipe.units if unit.split == split)
    made = recipe.load(unit)
    return ShownItems(as_pictures(np.asarray(made.image)), made.target, made.extra)


def as_pictures(image: NDArray[Any]) -> NDArray[Any]:
    """Images as they are drawn: one channel as grey, more than three as the first."""
    if image.ndim == 4 and image.shape[-1] != 3:
        return image[..., 0]
    return image


def _recipe(variant: Variant, options: Mapping[str, Any]) -> Recipe:
    part = variant.dataset
    made: Recipe = find("datasets", part.name)(**{**part.options, **options})
    return made
