"""Predictions of a trained network on one split, and the file that holds them."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from qualms.datasets import Split
from qualms.methods import Method, Windows, through_windows
from qualms.predictions import Header, Maps, SegmentationWriter, array_field
from qualms.predictions import write as write_predictions
from qualms.runs import PACE, split_stem
from qualms.spec import Task, parse_split
from qualms.training._error import TrainingError
from qualms.training.crops import centre_crops, crop_shares
from qualms.training.data import LoadedSplit, Splits
from qualms.training.inputs import Inputs, check_readable

Arrays = dict[str, NDArray[Any]]
Pace = Mapping[str, float]
"""Seconds to predict an item and its crop, by the names of `qualms.runs.PACE`."""
_CARRIED = ("group", "cluster", "shifted", "target_probs", "votes", "upstream")
"""Arrays of a split that its predictions keep."""
_KEPT_AS_EXTRA = ("ambiguity",)
"""Arrays of simulated items that the schema does not name."""
_NEEDED = {
    "classification": (("probs", "prob"),),
    "regression": (("mean", "lower"),),
    "embedding": (("embedding",),),
    "segmentation": (("mean_probs",), ("expected_entropy",), ("draw_labels",)),
}
"""Arrays that `predict` must return, by task; of alternatives one is enough."""
_TIMED = 64
"""Items whose prediction is timed."""
_WRITERS = 4
"""Threads that write label maps while the next ones are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """A trained network and how predictions are made with it."""

    network: nn.Module
    method: Method
    task: Task
    inputs: Inputs
    batch: int
    say: Callable[[str], None]
    crops: bool = False
    """Whether the uncertainty of each image's centre is predicted too."""
    windows: Windows | None = None
    """Through which large images are seen; None to see them whole."""

    def __call__(self, items: LoadedSplit) -> Arrays:
        """Predictions of all `items` as the predictions schema names them."""
        return {name: _host(name, part) for name, part in self.tensors(items).items()}

    def tensors(self, items: LoadedSplit) -> dict[str, Tensor]:
        """The same, as tensors on the device."""
        parts: dict[str, list[Tensor]] = {}
        for found in self.chunks(items):
            for name, part in found.items():
                parts.setdefault(name, []).append(part)
        return {
            name: torch.cat(held, dim=item_axis(self.task, name, held[0]))
            for name, held in parts.items()
        }

    @torch.no_grad()
    def chunks(self, items: LoadedSplit) -> Iterator[Mapping[str, Tensor]]:
        """Predictions of `batch` items at a time; fewer where memory is short.

        Items of any shape, and large ones, come one by one.
        """
        self.network.eval()
        if items.apart:
            yield from self._each(items)
            return
        size, done = self.batch, 0
        while done < len(items):
            rows = torch.arange(done, len(items))
            try:
                for raw in items.batches(rows, size):
                    names = items.split.item[done : done + len(raw.target)]
                    yield self._predicted(self.inputs.plain(raw).x, names)
                    done += len(raw.target)
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                size //= 2
                torch.cuda.empty_cache()
                self.say(f"the device is out of memory; predicting {size} at a time")

    def _each(self, items: LoadedSplit) -> Iterator[Mapping[str, Tensor]]:
        windows, row = self.windows, 0
        while row < len(items):
            try:
                found = self._through(windows, items, row)
            except torch.OutOfMemoryError:
                windows = self._smaller(windows, items.device)
                continue
            yield found
            row += 1

    def _through(
        self, windows: Windows | None, items: LoadedSplit, row: int
    ) -> Mapping[str, Tensor]:
        x = self.inputs.plain(items.whole(row)).x
        if windows is not None and windows.sides == x.shape[2:]:
            windows = None
        if windows is not None and windows.device is not None:
            x = x.cpu()
        with through_windows(self.network, windows):
            return self._predicted(x, items.split.item[row : row + 1])

    def _smaller(self, windows: Windows | None, device: torch.device) -> Windows:
        """Fewer windows in a pass, then images on the host."""
        torch.cuda.empty_cache()
        if windows is not None and windows.together > 1:
            return replace(windows, together=windows.together // 2)
        if windows is not None and windows.device is None:
            self.say("the device is out of memory; keeping whole images on the host")
            return replace(windows, device=device)
        raise torch.OutOfMemoryError("even for one window")

    def _predicted(self, x: Tensor, names: NDArray[Any]) -> Mapping[str, Tensor]:
        found = self.method.predict(self.network, x, self.task)
        check_returned(found, self.task)
        found = self.inputs.unit.stated(found)
        if not self.crops:
            return found
        cropped = centre_crops(x, crop_shares(names))
        again = self.method.predict(self.network, cropped, self.task)
        return {
            **found,
            **{
                name.replace("uncertainty/", "uncertainty_cropped/"): values
                for name, values in again.items()
                if name.startswith("uncertainty/")
            },
        }


def check_predictable(split: str, splits: Splits, inputs: Inputs) -> None:
    """Refuse a split that is not there, or that the network cannot predict."""
    task, dataset = splits.dataset.task, splits.dataset_of(split)
    name = parse_split(split)[1]
    dataset.rows(name)  # raises where there is no such split
    of = name if name in dataset.splits else dataset.subsets[name].of
    whole = dataset.splits[of]
    check_readable(inputs, whole, split)
    kinds = {task.name}
    if task.name == "embedding":  # of any images, whatever their classes are
        kinds.add("classification")
    elif dataset.task.classes != task.classes:
        raise TrainingError(
            f"the network tells {task.classes} classes apart, and {split!r} has"
            f" {dataset.task.classes}; leave that split out"
        )
    if dataset.task.name not in kinds:
        raise TrainingError(
            f"the network is trained for {task.name}, and {split!r} is for"
            f" {dataset.task.name}; leave that split out"
        )


def split_path(folder: Path, split: str, task: Task) -> Path:
    """Where the predictions of `split` lie: a file, or a folder for segmentation."""
    ending = "" if task.name == "segmentation" else ".safetensors"
    stem = split_stem(folder, split)
    return stem.with_name(stem.name + ending)


def write_split(
    path: Path, predictor: Predictor, items: LoadedSplit, header: Header
) -> Pace:
    """Predict `items` and write the predictions to `path`; return the pace of it.

    Only embeddings are timed. The pace differs between equal runs, so that it does not
    stand in the file.
    """
    path.parent.mkdir(exist_ok=True)
    if predictor.task.name == "segmentation":
        _write_maps(path, predictor, items, header)
        return {}
    arrays = predictor(items) | _of_the_split(items.split, predictor.task)
    write_predictions(path, arrays, header=header)
    return _pace(predictor, items) if predictor.task.name == "embedding" else {}


@torch.no_grad()
def _pace(predictor: Predictor, items: LoadedSplit) -> Pace:
    """Return the seconds to predict an item of a batch, and those of its crop apart."""
    rows = torch.arange(min(len(items), predictor.batch, _TIMED))
    raw = next(iter(items.batches(rows, len(rows))))
    x = predictor.inputs.plain(raw).x

    def seconds(pixels: Callable[[], Tensor]) -> float:
        _wait(x)
        started = time.perf_counter()
        predictor.method.predict(predictor.network, pixels(), predictor.task)
        _wait(x)
        return (time.perf_counter() - started) / len(x)

    item, crop = PACE
    pace = {item: seconds(lambda: x)}
    if predictor.crops:
        shares = crop_shares(items.split.item[: len(x)])
        pace[crop] = seconds(lambda: centre_crops(x, shares))
    return pace


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def _of_the_split(split: Split, task: Task) -> Arrays:
    carried = {
        name: np.asarray(split.extra[name])
        for name in _CARRIED
        if name in split.extra and array_field(task.name, name) is not None
    }
    extra = {
        f"extra/{name}": np.asarray(split.extra[name])
        for name in _KEPT_AS_EXTRA
        if name in split.extra and array_field(task.name, f"extra/{name}") is not None
    }
    return {
        "target": np.asarray(split.target),
        "item": np.asarray(split.item),
        **carried,
        **extra,
    }


def check_returned(found: Mapping[str, Any], task: Task) -> None:
    """Refuse what `predict` of a method returned if arrays of the task are missing."""
    needed = _NEEDED[task.name]
    arrays = found if isinstance(found, Mapping) else {}
    if all(any(name in arrays for name in names) for names in needed):
        return
    # Own methods are written by users, so `found` may be anything.
    got = ", ".join(map(repr, arrays)) or f"a {type(found).__name__}"
    wanted = [" or ".join(map(repr, names)) for names in needed]
    *first, last = wanted
    use = "summarise_embeddings" if task.name == "embedding" else "summarise"
    raise TrainingError(
        f"predict of a method must return {', '.join(first)}{' and ' * bool(first)}"
        f"{last} for {task.name}, got {got}; use {use}(draws, task)"
    )


def item_axis(task: Task, name: str, part: Tensor | NDArray[Any]) -> int:
    """Which axis of an array counts items."""
    about = array_field(task.name, name)
    if about is None:
        raise TrainingError(
            f"predict gave an array {name!r}, which {task.name} predictions do not have"
        )
    for axes in about.axes:
        if len(axes) == part.ndim:
            return axes.index("N")
    raise TrainingError(
        f"predict gave {name!r} with shape {tuple(part.shape)}; the axes must be"
        f" {' or '.join(about.axes)}"
    )


def _host(name: str, whole: Tensor) -> NDArray[Any]:
    kept = (
        whole.dtype if whole.dtype in (torch.float32, torch.float64) else torch.float32
    )
    array = whole.to(kept if whole.is_floating_point() else whole.dtype).cpu().numpy()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        count = int((~np.isfinite(array)).sum())
        raise TrainingError(
            f"predictions must be finite, {count} numbers of {name!r} are not; train"
            " with a smaller learning rate or in higher precision"
        )
    return array


def _write_maps(
    folder: Path, predictor: Predictor, items: LoadedSplit, header: Header
) -> None:
    split, draw, row = items.split, items.draw, 0
    assert draw is not None
    threads = 1 if items.apart else _WRITERS  # each holds two items
    with SegmentationWriter(folder, header=header, threads=threads) as writer:
        for found in predictor.chunks(items):
            held = {name: _host(name, part) for name, part in found.items()}
            for i in range(len(held["mean_probs"])):
                name = str(split.item[row])
                maps = Maps(
                    mean_probs=held["mean_probs"][i],
                    expected_entropy=held["expected_entropy"][i],
                    draw_labels=held["draw_labels"][:, i],
                    raters=draw.references(np.asarray(split.target[row]), name),
                )
                writer.add(name, maps, **_about(split, row))
                row += 1


def _about(split: Split, row: int) -> dict[str, Any]:
    names = ("group", "cluster", "shifted")
    return {n: split.extra[n][row].item() for n in names if n in split.extra}
