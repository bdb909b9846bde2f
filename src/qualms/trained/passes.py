"""One pass of a trained network over all items: arrays, or label maps in a folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.predictions import Header, Maps, SegmentationWriter
from qualms.spec import Task
from qualms.trained.batches import GivenBatch, GivenItems, target_of
from qualms.trained.suitable import Suited
from qualms.training.predict import check_returned, item_axis

_WRITERS = 2
"""Threads that write label maps while the next ones are predicted."""
Arrays = dict[str, NDArray[Any]]


class _Predicted(NamedTuple):
    given: GivenBatch
    arrays: Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedPasses:
    """A fitted method on a trained network, and the items that it predicts."""

    suited: Suited
    task: Task
    items: GivenItems
    one_draw: bool = False
    """Whether the file that is asked for holds one draw only."""

    def arrays(self) -> Arrays:
        """Predictions of all items, as the predictions schema names them."""
        parts: dict[str, list[NDArray[Any]]] = {}
        axes: dict[str, int] = {}
        for given, found in self._batches():
            axes = {name: item_axis(self.task, name, a) for name, a in found.items()}
            if self.one_draw:
                _check_draws(found, axes)
            if given.target is not None:
                target = target_of(given, self.task, self.items.name)
                found["target"] = target.cpu().numpy()
            for name, part in (found | given.about).items():
                parts.setdefault(name, []).append(part)
        return {
            name: np.concatenate(held, axes.get(name, 0))
            for name, held in parts.items()
        }

    def write_maps(self, folder: str | PathLike[str], header: Header) -> None:
        """Predict and write one label map after another."""
        row = 0
        with SegmentationWriter(folder, header=header, threads=_WRITERS) as writer:
            for given, found in self._batches():
                raters = self._raters(given)
                for i in range(len(given.x)):
                    about = {name: values[i] for name, values in given.about.items()}
                    item = str(about.pop("item", f"{row:06d}"))
                    maps = Maps(
                        mean_probs=found["mean_probs"][i],
                        expected_entropy=found["expected_entropy"][i],
                        draw_labels=found["draw_labels"][:, i],
                        raters=raters[i],
                    )
                    writer.add(item, maps, **about)
                    row += 1

    def _raters(self, given: GivenBatch) -> NDArray[Any]:
        """(B, R, *space) label maps."""
        if given.target is None:
            raise ValueError(
                "segmentation predictions hold the true label maps; give batches"
                " (x, target)"
            )
        return target_of(given, self.task, self.items.name).cpu().numpy()

    @torch.no_grad()
    def _batches(self) -> Iterator[_Predicted]:
        method, network = self.suited.method, self.suited.network
        for given in self.items:
            found = method.predict(network.eval(), given.x, self.task)
            check_returned(found, self.task)
            yield _Predicted(given, {n: _host(n, part) for n, part in found.items()})


def _check_draws(arrays: Arrays, axes: Mapping[str, int]) -> None:
    """Refuse several draws for a table, with the first batch rather than at the end."""
    draws = max(len(arrays[name]) if axis else 1 for name, axis in axes.items())
    if draws > 1:
        raise ValueError(
            f"there are {draws} draws for each item, and a table holds one; say out="
            "FILE.npz or FILE.safetensors"
        )


def _host(name: str, whole: Tensor) -> NDArray[Any]:
    if whole.is_floating_point() and whole.dtype != torch.float64:
        whole = whole.float()
    array = whole.detach().cpu().numpy()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        count = int((~np.isfinite(array)).sum())
        raise ValueError(
            f"predictions must be finite, {count} numbers of {name!r} are not; look at"
            " the outputs of the model for these items"
        )
    return array
