"""Predictions of a trained network on one split, and the file that holds them.

The crop test of URL (Kirchhof et al., 2023) also predicts the centre of each image in
full size, to see whether an uncertainty notices what is lost. The share of an image
that is kept depends on the name of the item alone, so it is the same for all methods,
runs and orders. In the released code it is drawn once for each length of a dataset.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from qualms.datasets import Split
from qualms.methods import Method, Windows, learning_of, through_windows
from qualms.predictions import Grid, Header, Maps, SegmentationWriter, array_field
from qualms.predictions import write as write_predictions
from qualms.runs import PACE, split_stem
from qualms.shelf import tasks_with, traits
from qualms.spec import Task, parse_corrupted, parse_split
from qualms.training._error import TrainingError
from qualms.training._inputs import Inputs, check_readable
from qualms.training._splits import LoadedSplit, Splits

Arrays = dict[str, NDArray[Any]]
Pace = Mapping[str, float]
"""Seconds to predict an item and its crop, by the names of `qualms.runs.PACE`."""
_COPIED = ("group", "cluster", "shifted", "target_probs", "votes", "upstream")
"""Arrays of a split that are copied to its predictions."""
_COPIED_AS_EXTRA = ("ambiguity",)
"""Arrays of simulated items that the schema does not name."""
_OWN = "uncertainty/"
"""Prefix of the names of uncertainties."""
_STORED = (torch.float32, torch.float64)
_TIMED = 64
"""Items whose prediction is timed."""
_WRITERS = 4
"""Threads that write label maps while the next ones are predicted."""
_LEAST_CROP, _MOST_CROP = 0.1, 0.75
_HASH_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """A trained network with its method and options of prediction."""

    network: nn.Module
    method: Method
    task: Task
    inputs: Inputs
    batch: int
    message: Callable[[str], None]
    """Tells the user where memory was short."""
    crops: bool = False
    """True to predict the uncertainty of each image's centre as well."""
    crop_features: LoadedSplit | None = None
    """Features of these centres, for a network that sees features."""
    windows: Windows | None = None
    """Windows for large images; None to predict them at once."""

    def __call__(self, items: LoadedSplit) -> Arrays:
        """Return predictions of all `items` as the predictions schema names them."""
        return {name: _host(name, part) for name, part in self.tensors(items).items()}

    def tensors(self, items: LoadedSplit) -> dict[str, Tensor]:
        """Return the same as tensors on the device."""
        chunks: dict[str, list[Tensor]] = {}
        for arrays in self.chunks(items):
            for name, part in arrays.items():
                chunks.setdefault(name, []).append(part)
        return {
            name: torch.cat(parts, dim=item_axis(self.task, name, parts[0]))
            for name, parts in chunks.items()
        }

    @torch.no_grad()
    def chunks(self, items: LoadedSplit) -> Iterator[Mapping[str, Tensor]]:
        """Yield predictions of `batch` items at a time; fewer where memory is short.

        Large items, and items that vary in shape, are predicted one by one.
        """
        self.network.eval()
        if items.one_by_one:
            yield from self._one_by_one(items)
            return
        size, done = self.batch, 0
        while done < len(items):
            rows = torch.arange(done, len(items))
            try:
                for raw in items.batches(rows, size):
                    part = torch.arange(done, done + len(raw.target))
                    x = self.inputs.plain(raw).x
                    yield self._predicted(x, self._cropped(x, items, part))
                    done += len(part)
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                size //= 2
                torch.cuda.empty_cache()
                self.message(
                    f"the device is out of memory; predicting {size} at a time"
                )

    def _one_by_one(self, items: LoadedSplit) -> Iterator[Mapping[str, Tensor]]:
        windows, row = self.windows, 0
        while row < len(items):
            try:
                arrays = self._through_windows(windows, items, row)
            except torch.OutOfMemoryError:
                windows = self._smaller(windows, items.device)
                continue
            yield arrays
            row += 1

    def _through_windows(
        self, windows: Windows | None, items: LoadedSplit, row: int
    ) -> Mapping[str, Tensor]:
        x = self.inputs.plain(items.uncut_image(row)).x
        if windows is not None and windows.sides == x.shape[2:]:
            windows = None
        if windows is not None and windows.device is not None:
            x = x.cpu()
        with through_windows(self.network, windows):
            return self._predicted(x, self._cropped(x, items, torch.tensor([row])))

    def _smaller(self, windows: Windows | None, device: torch.device) -> Windows:
        """Return fewer windows for a pass, then windows of images on the host."""
        torch.cuda.empty_cache()
        if windows is not None and windows.together > 1:
            return replace(windows, together=windows.together // 2)
        if windows is not None and windows.device is None:
            text = "the device is out of memory; keeping whole images on the host"
            self.message(text)
            return replace(windows, device=device)
        raise torch.OutOfMemoryError("even for one window")

    def _cropped(self, x: Tensor, items: LoadedSplit, rows: Tensor) -> Tensor | None:
        """Return the centres of the images `x`, or their features; None for none."""
        if not self.crops:
            return None
        if self.crop_features is None:
            return centre_crops(x, crop_shares(items.split.item[rows.numpy()]))
        (raw,) = self.crop_features.batches(rows, len(rows))
        return self.inputs.plain(raw).x

    def _predicted(self, x: Tensor, crops: Tensor | None) -> Mapping[str, Tensor]:
        arrays = self.method.predict(self.network, x, self.task)
        check_returned(arrays, self.task)
        arrays = self.inputs.unit.stored(arrays)
        if crops is None:
            return arrays
        of_crops = self.method.predict(self.network, crops, self.task)
        return {
            **arrays,
            **{
                name.replace("uncertainty/", "uncertainty_cropped/"): values
                for name, values in of_crops.items()
                if name.startswith("uncertainty/")
            },
        }


def check_predictable(split: str, splits: Splits, inputs: Inputs) -> None:
    """Raise unless there is a split of that name that the network can predict."""
    task, dataset = splits.dataset.task, splits.dataset_of(split)
    name = parse_split(split)[1]
    corrupted = parse_corrupted(name)
    name = name if corrupted is None else corrupted.of
    dataset.rows(name)  # raises if there is no such split
    of = name if name in dataset.splits else dataset.subsets[name].of
    check_readable(inputs, dataset.splits[of], split)
    tasks = {task.name}
    if "vectors" in traits(task.name):  # embeds any images, whatever their classes are
        tasks.update(tasks_with("items classes"))
    elif dataset.task.classes != task.classes:
        raise TrainingError(
            f"the network tells {task.classes} classes apart, and {split!r} has"
            f" {dataset.task.classes}; leave that split out"
        )
    if dataset.task.name not in tasks:
        raise TrainingError(
            f"the network is trained for {task.name}, and {split!r} is for"
            f" {dataset.task.name}; leave that split out"
        )


def split_path(folder: Path, split: str, task: Task) -> Path:
    """Return the path of the predictions of `split`; a folder for segmentation."""
    ending = "" if "pixels" in traits(task.name) else ".safetensors"
    stem = split_stem(folder, split)
    return stem.with_name(stem.name + ending)


def write_split(
    path: Path, predictor: Predictor, items: LoadedSplit, header: Header
) -> None:
    """Predict `items` and write the predictions to `path`."""
    path.parent.mkdir(exist_ok=True)
    if "pixels" in traits(predictor.task.name):
        _write_maps(path, predictor, items, header)
        return
    arrays = predictor(items) | _copied(items.split, predictor.task)
    write_predictions(path, arrays, header=header)


@torch.no_grad()
def pace_of(predictor: Predictor, items: LoadedSplit) -> Pace:
    """Measure the seconds to predict an item of a batch, and those for its crop.

    They differ between equal runs, so that they do not stand in the predictions.
    """
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


def _copied(split: Split, task: Task) -> Arrays:
    """Return the arrays of `split` that its predictions hold as well."""
    fields = {
        name: np.asarray(split.extra[name])
        for name in _COPIED
        if name in split.extra and array_field(task.name, name) is not None
    }
    named = {name: name for name in split.extra if name.startswith("extra/")}
    named |= {f"extra/{name}": name for name in _COPIED_AS_EXTRA if name in split.extra}
    extra = {
        name: np.asarray(split.extra[stored])
        for name, stored in named.items()
        if array_field(task.name, name) is not None
    }
    return {
        "target": np.asarray(split.target),
        "item": np.asarray(split.item),
        **fields,
        **extra,
    }


def check_returned(returned: Mapping[str, Any], task: Task) -> None:
    """Raise unless `predict` of a method returned the arrays that the task needs."""
    needed = learning_of(task).needed
    arrays = returned if isinstance(returned, Mapping) else {}
    if all(any(name in arrays for name in names) for names in needed):
        if "pixels" in traits(task.name):
            _check_map_names(arrays, task)
        return
    # Users write methods of their own, so `returned` may be anything.
    arrays_text = ", ".join(map(repr, arrays)) or f"a {type(returned).__name__}"
    *first, last = [" or ".join(map(repr, names)) for names in needed]
    raise TrainingError(
        f"predict of a method must return {', '.join(first)}{' and ' * bool(first)}"
        f"{last} for {task.name}, got {arrays_text}; use summarise(draws, task)"
    )


def _check_map_names(names: Iterable[str], task: Task) -> None:
    """Raise if an array would be lost: arrays of maps are not looked up by name."""
    known = [name for names in learning_of(task).needed for name in names]
    for name in names:
        if name not in known and not name.startswith(_OWN):
            raise TrainingError(
                f"predict gave an array {name!r}, which {task.name} predictions do"
                f" not have; uncertainties of your own are called '{_OWN}<name>',"
                " (B, *space) or (B,)"
            )


def item_axis(task: Task, name: str, part: Tensor | NDArray[Any]) -> int:
    """Return the axis of an array that counts items."""
    field = array_field(task.name, name)
    if field is None:
        raise TrainingError(
            f"predict gave an array {name!r}, which {task.name} predictions do not have"
        )
    for axes in field.axes:
        if len(axes) == part.ndim:
            return axes.index("N")
    raise TrainingError(
        f"predict gave {name!r} with shape {tuple(part.shape)}; the axes must be"
        f" {' or '.join(field.axes)}"
    )


def _host(name: str, tensor: Tensor) -> NDArray[Any]:
    """Return finite `tensor` as an array on the host, without 16-bit numbers."""
    half = tensor.is_floating_point() and tensor.dtype not in _STORED
    array = (tensor.float() if half else tensor).cpu().numpy()
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
    threads = 1 if items.one_by_one else _WRITERS  # each holds two items
    with SegmentationWriter(folder, header=header, threads=threads) as writer:
        for chunk in predictor.chunks(items):
            arrays = {name: _host(name, part) for name, part in chunk.items()}
            for i in range(len(arrays["mean_probs"])):
                name = str(split.item[row])
                raters = draw.references(np.asarray(split.target[row]), name)
                maps = maps_at(arrays, i, raters)
                maps = replace(maps, grid=_item_grid(split, row))
                labels, own = _item_labels(split, row), numbers_at(arrays, i)
                writer.add(name, maps, uncertainty=own, **labels)
                row += 1


def maps_at(
    arrays: Mapping[str, NDArray[Any]], i: int, raters: NDArray[Any] | None = None
) -> Maps:
    """Return the maps of item `i` of a batch that `predict` of a method returned."""
    maps = Maps(
        mean_probs=arrays["mean_probs"][i],
        expected_entropy=arrays["expected_entropy"][i],
        draw_labels=arrays["draw_labels"][:, i],
        uncertainty={
            name.removeprefix(_OWN): values[i]
            for name, values in arrays.items()
            if name.startswith(_OWN) and values.ndim > 1
        },
    )
    return maps if raters is None else replace(maps, raters=raters)


def numbers_at(arrays: Mapping[str, NDArray[Any]], i: int) -> dict[str, float]:
    """Return the uncertainties of item `i` of a batch that are one number each."""
    return {
        name.removeprefix(_OWN): float(values[i])
        for name, values in arrays.items()
        if name.startswith(_OWN) and values.ndim == 1
    }


def _item_grid(split: Split, row: int) -> Grid | None:
    """Return where the pixels of an item lie in the body; None if it is not known."""
    if "spacing" not in split.extra:
        return None
    # Prepared volumes have their axes turned to RAS.
    spacing = tuple(np.asarray(split.extra["spacing"][row], np.float64).tolist())
    return Grid("RAS"[: len(spacing)], spacing, float(split.extra["tilt"][row]))


def _item_labels(split: Split, row: int) -> dict[str, Any]:
    names = ("group", "cluster", "shifted")
    return {n: split.extra[n][row].item() for n in names if n in split.extra}


def crop_shares(names: Iterable[object]) -> Tensor:
    """Return the share of its side that is kept of each item, (B,) evenly in 0.1..0.75.

    >>> crop_shares(["bird 1"]).tolist() == crop_shares(["bird 1"]).tolist()
    True
    """
    hashes = (hashlib.blake2b(str(n).encode(), digest_size=_HASH_BYTES) for n in names)
    even = [int.from_bytes(h.digest()) / 2 ** (8 * _HASH_BYTES) for h in hashes]
    width = _MOST_CROP - _LEAST_CROP
    return _LEAST_CROP + width * torch.tensor(even, dtype=torch.float64)


def centre_crops(x: Tensor, share: Tensor) -> Tensor:
    """Return the centre of images (B, channels, H, W), bilinear in their full size.

    Its side is `share` (B,) of the shorter side of the image, in whole pixels.
    """
    high, wide = x.shape[2:]
    side = (min(high, wide) * share.to(x.device)).round().clamp(min=1)
    down, across = (_crop_positions(n, side, x.dtype) for n in (high, wide))
    grid = torch.stack(
        [
            across[:, None, :].expand(-1, high, -1),
            down[:, :, None].expand(-1, -1, wide),
        ],
        -1,
    )
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _crop_positions(length: int, side: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where pixels of a crop come from, (B, length) in -1..1 along the axis.

    Positions stay inside of the crop, as if it had been cut out first.
    """
    first = ((length - side) / 2).round()[:, None]
    step = (torch.arange(length, device=side.device) + 0.5) * side[:, None] / length
    position = first + (step - 0.5).clamp(min=0).minimum(side[:, None] - 1)
    return (2 * (position + 0.5) / length - 1).to(dtype)
