"""Predictions of a fitted method for all items: arrays, or label maps in a folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.predictions import Header, SegmentationWriter
from qualms.shelf import traits
from qualms.spec import Task
from qualms.trained._batches import ItemBatch, ItemLoader, target_of
from qualms.trained._embeddings import embedded_views
from qualms.trained._posthoc import PosthocMethod
from qualms.trained._regions import joined_regions
from qualms.training.predict import check_returned, item_axis, maps_at, numbers_at

_WRITERS = 2
"""Threads that write label maps while the next ones are predicted."""
Arrays = dict[str, NDArray[Any]]


class _PredictedBatch(NamedTuple):
    batch: ItemBatch
    arrays: Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedPasses:
    """A fitted method on a trained network, and the items that it predicts."""

    posthoc: PosthocMethod
    task: Task
    items: ItemLoader
    one_draw: bool = False
    """True if the predictions file holds one draw only."""
    views: bool = True
    """True to embed images mirrored and cropped as well."""

    def arrays(self) -> Arrays:
        """Predict all items; arrays are named as in the predictions schema."""
        parts: dict[str, list[NDArray[Any]]] = {}
        axes: dict[str, int] = {}
        for batch, arrays in self._batches():
            axes = {name: item_axis(self.task, name, a) for name, a in arrays.items()}
            if self.one_draw:
                _check_draws(arrays, axes)
            if batch.target is not None:
                target = target_of(batch, self.task, self.items.name)
                arrays["target"] = target.cpu().numpy()
            for name, part in (arrays | batch.about).items():
                parts.setdefault(name, []).append(part)
        return {
            name: np.concatenate(arrays, axes.get(name, 0))
            for name, arrays in parts.items()
        }

    def write_maps(self, folder: str | PathLike[str], header: Header) -> None:
        """Predict and write one label map after another."""
        row = 0
        with SegmentationWriter(folder, header=header, threads=_WRITERS) as writer:
            for batch, arrays in self._batches():
                if "thumbnail" in batch.about:
                    raise ValueError(
                        "segmented items have no thumbnails, since their images are"
                        " shown; leave 'thumbnail' out"
                    )
                raters = self._raters(batch)
                for i in range(len(batch.x)):
                    about = {name: values[i] for name, values in batch.about.items()}
                    item = str(about.pop("item", f"{row:06d}"))
                    maps = maps_at(arrays, i, None if raters is None else raters[i])
                    own = numbers_at(arrays, i)
                    writer.add(item, maps, uncertainty=own, **about)
                    row += 1

    def _raters(self, batch: ItemBatch) -> NDArray[Any] | None:
        """Return the label maps of all raters, (B, R, *space); None without labels.

        Of regions they are (B, R, K, *space).
        """
        if batch.target is None:
            return None
        target = target_of(
            batch, self.task, self.items.name, regions=self.items.regions
        )
        return target.cpu().numpy()

    @torch.no_grad()
    def _batches(self) -> Iterator[_PredictedBatch]:
        row = 0
        for batch in self.items:
            tensors = self._predicted(batch, row)
            row += len(batch.x)
            if self.items.regions:
                tensors = joined_regions(tensors, self.items.regions)
            arrays = {name: _to_numpy(name, part) for name, part in tensors.items()}
            yield _PredictedBatch(batch, arrays)

    def _predicted(self, batch: ItemBatch, row: int) -> Mapping[str, Tensor]:
        """Return what the method predicts of a batch whose first item is at `row`."""
        method, network = self.posthoc.method, self.posthoc.network.eval()

        def predict(x: Tensor) -> Mapping[str, Tensor]:
            tensors = method.predict(network, x, self.task)
            check_returned(tensors, self.task)
            return tensors

        if "vectors" not in traits(self.task.name):
            return predict(batch.x)
        rows = [f"{row + place:06d}" for place in range(len(batch.x))]
        items = [str(name) for name in batch.about.get("item", rows)]
        return embedded_views(predict, batch.x, items, views=self.views)


def _check_draws(arrays: Arrays, axes: Mapping[str, int]) -> None:
    """Raise at the first batch, not after the last, if a table gets several draws."""
    draws = max(len(arrays[name]) if axis else 1 for name, axis in axes.items())
    if draws > 1:
        raise ValueError(
            f"there are {draws} draws for each item, and a table holds one; say out="
            "FILE.npz or FILE.safetensors"
        )


def _to_numpy(name: str, values: Tensor) -> NDArray[Any]:
    if values.is_floating_point() and values.dtype != torch.float64:
        values = values.float()
    array = values.detach().cpu().numpy()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        count = int((~np.isfinite(array)).sum())
        raise ValueError(
            f"predictions must be finite, {count} numbers of {name!r} are not; look at"
            " the outputs of the model for these items"
        )
    return array
