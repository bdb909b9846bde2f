"""Pictures of items for figures: from prepared datasets, and from simulators."""

import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Variant
from qualms.datasets import Dataset, DatasetError, Recipe, open_dataset
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
    part = variant.dataset
    signature = inspect.signature(find("datasets", part.name))
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not None
    }
    asked = {**defaults, **part.options, **options}
    for file in sorted(data.glob(f"{part.name}-*/meta.json")) if data else ():
        with suppress(DatasetError, OSError, ValueError):
            found = open_dataset(file.parent)
            if all(_agrees(v, found.options.get(name)) for name, v in asked.items()):
                return found
    return None


def simulated_items(
    variant: Variant, split: str, count: int, **options: Any
) -> ShownItems:
    """The first items of a split of a simulator, made anew."""
    part = variant.dataset
    sizes = dict.fromkeys(("train", "val", "test"), count)
    asked = {**part.options, "sizes": sizes, **options}
    recipe: Recipe = find("datasets", part.name)(**asked)
    unit = next(unit for unit in recipe.units if unit.split == split)
    made = recipe.load(unit)
    return ShownItems(as_pictures(np.asarray(made.image)), made.target, made.extra)


def as_pictures(image: NDArray[Any]) -> NDArray[Any]:
    """Images as they are drawn: one channel as grey, more than three as the first."""
    if image.ndim == 4 and image.shape[-1] != 3:
        return image[..., 0]
    return image


def _agrees(asked: Any, recorded: Any) -> bool:
    """Whether an option is recorded as asked for; of a mapping, what it names."""
    asked = json.loads(json.dumps(asked))
    if isinstance(asked, dict) and isinstance(recorded, dict):
        return all(recorded.get(name) == value for name, value in asked.items())
    return bool(asked == recorded)
