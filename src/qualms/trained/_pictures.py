"""Predictions of a network of timm for a user's pictures: folders, or a table in CSV.

Pictures are read as the dataset `folder` reads them, and brought to the size and the
colours that the network was trained with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from qualms.datasets.folder.files import read_pixels
from qualms.datasets.folder.listing import OwnItem, listing_of
from qualms.datasets.folder.targets import target_number
from qualms.networks import (
    OnnxClassifier,
    TimmClassifier,
    make_classifier,
    onnx_classifier,
)
from qualms.predictions import NO_TARGET, Predictions, check_destination
from qualms.trained._classes import class_names, read_classes
from qualms.trained.predict import predict
from qualms.training.machine import make_machine
from qualms.training.options import Execution

TASKS = ("classification", "regression")
_SPLITS = {"source": "test", "fit": "train", "val": "val"}
"""Split that is taken where the items of a folder state theirs."""
_COLOURS = 3
_BYTE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRequest:
    """Network and pictures of `qualms predict`."""

    network: str
    """Name of timm, such as timm:resnet50, or the path of a file .onnx."""
    source: Path
    """Folder or table of pictures, as are `fit` and `val`."""
    fit: Path | None = None
    val: Path | None = None
    weights: str = "pretrained"
    """"pretrained", or the path of a file."""
    classes: Path | None = None
    """File that names the class of each output."""
    split: str | None = None
    """Split that is predicted, where items state theirs; None for test."""
    task: str = "classification"
    batch: int = 32
    workers: int = 0
    device: str = "auto"
    mean: tuple[float, ...] = ()
    """Mean of the colours from 0 to 1 that the network of an ONNX file expects."""
    deviation: tuple[float, ...] = ()
    outputs: str | None = None
    """"logits" or "probabilities", of an ONNX file; None for logits."""


class PicturePredictions(NamedTuple):
    """Predictions, and notes on them for the user."""

    predictions: Predictions
    notes: tuple[str, ...]


Progress = Callable[[int, int], None]
"""Called with the number of items that are predicted, and of all items."""


def predict_pictures(
    request: PictureRequest,
    *,
    method: str = "plain",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> PicturePredictions:
    """Predict pictures with a network of timm, by `qualms.predict`."""
    if request.task not in TASKS:
        raise ValueError(f"task must be {' or '.join(TASKS)}, got {request.task!r}")
    if out is not None:
        check_destination(out, task=request.task)
    listed = None if request.classes is None else read_classes(request.classes)
    sets = dict(_picture_sets(request))
    _check_targets(sets.values())
    model = _model(request)
    is_onnx = isinstance(model, OnnxClassifier)
    targets = _target_reader(request, model.outputs, sets, listed)
    device = make_machine(request.device, Execution()).device
    loaders = {
        name: _PictureBatches(
            loader=_loader(request, pictures, model),
            items=pictures.items,
            target=targets.read if pictures.items[0].target else None,
            progress=progress if name == "source" else None,
        )
        for name, pictures in sets.items()
    }
    predictions = predict(
        model.network.to(device),
        loaders["source"],
        task=request.task,
        method=method,
        options=options,
        fit=loaders.get("fit"),
        val=loaders.get("val"),
        out=out,
        outputs=_form(request, is_onnx=is_onnx),
        last=False if is_onnx else None,
        seed=seed,
        header={
            "dataset": request.source.resolve().stem,
            "split": sets["source"].split,
            "options": _options(request, options),
            "classes": list(targets.names),
        },
    )
    notes = tuple(note for note in (model.note, targets.note) if note)
    notes += tuple(note for note in predictions.notes if note != NO_TARGET)
    return PicturePredictions(predictions, notes)


def _model(request: PictureRequest) -> OnnxClassifier | TimmClassifier:
    """Return the network with the preparation of its pictures."""
    colours = {"--mean": request.mean, "--std": request.deviation}
    if not request.network.lower().endswith(".onnx"):
        surplus = [name for name, values in colours.items() if values]
        surplus += ["--outputs"] if request.outputs else []
        if surplus:
            raise ValueError(
                f"{surplus[0]} is for files .onnx; networks of timm state it"
                " themselves, leave it out"
            )
        return make_classifier(request.network, request.weights)
    if request.weights != "pretrained":
        raise ValueError("a file .onnx has its weights in it; leave out --weights")
    for name, values in colours.items():
        if len(values) not in (1, _COLOURS) or (name == "--std" and min(values) <= 0):
            raise ValueError(
                "an ONNX file does not say how its pictures are prepared: state"
                " --mean and --std of the colours from 0 to 1, such as --mean"
                " 0.485,0.456,0.406 --std 0.229,0.224,0.225, or --mean 0 --std 1; got"
                f" {name} {','.join(f'{value:g}' for value in values) or 'not at all'}"
            )
    return onnx_classifier(
        Path(request.network), mean=request.mean, deviation=request.deviation
    )


def _form(request: PictureRequest, *, is_onnx: bool) -> str | None:
    """Return what the outputs are; None for values, and where the values may tell."""
    if request.task != "classification":
        return None
    return request.outputs if is_onnx else "logits"


class _PictureSet(NamedTuple):
    folder: Path
    items: Sequence[OwnItem]
    split: str | None


def _picture_sets(request: PictureRequest) -> Iterator[tuple[str, _PictureSet]]:
    roots = {"source": request.source, "fit": request.fit, "val": request.val}
    for name, root in roots.items():
        if root is not None:
            split = request.split if name == "source" else None
            yield name, _picture_set(root, split, _SPLITS[name])


def _picture_set(root: Path, split: str | None, default: str) -> _PictureSet:
    """Return the items of a folder, or of one split where items state theirs."""
    listing = listing_of(root, unlabelled=True)
    splits = sorted({item.split for item in listing.items if item.split})
    if not splits:
        if split is not None:
            raise ValueError(
                f"the items in {root} state no split, so {split!r} cannot be chosen;"
                " leave --split out"
            )
        return _PictureSet(listing.folder, listing.items, None)
    split = split or default
    items = [item for item in listing.items if item.split == split]
    if not items:
        raise ValueError(
            f"no item in {root} is of the split {split!r}, which is asked for; there"
            f" are {', '.join(splits)}"
        )
    return _PictureSet(listing.folder, items, split)


def _check_targets(sets: Iterable[_PictureSet]) -> None:
    """Raise if some items have a target and others have none."""
    for pictures in sets:
        with_target = [item for item in pictures.items if item.target]
        if with_target and len(with_target) < len(pictures.items):
            without = next(item for item in pictures.items if not item.target)
            raise ValueError(
                f"{without.where} must have a target as {with_target[0].where} has, got"
                " none; fill all of them, or none"
            )


def _loader(
    request: PictureRequest,
    pictures: _PictureSet,
    model: OnnxClassifier | TimmClassifier,
) -> DataLoader[Any]:
    prepared: Any = _PreparedPictures(pictures, model.prepare)
    return DataLoader(
        prepared, batch_size=request.batch, num_workers=request.workers, collate_fn=list
    )


def _options(
    request: PictureRequest, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the options that the header of the file states."""
    name = request.network
    if name.lower().endswith(".onnx"):
        name = Path(name).name
    network = {"name": name, "weights": Path(request.weights).name}
    return {"network": network, "method": dict(options or {})}


class _TargetReader(NamedTuple):
    """Function that reads targets, and what it knows of the classes."""

    read: Callable[[OwnItem], float]
    note: str = ""
    names: Sequence[str] = ()
    """Class of each output, where it is known."""


def _target_reader(
    request: PictureRequest,
    outputs: int,
    sets: Mapping[str, _PictureSet],
    listed: Sequence[str] | None,
) -> _TargetReader:
    if request.task == "regression":
        return _TargetReader(target_number)
    of_items = {item.target for part in sets.values() for item in part.items} - {""}
    classes = class_names(outputs, listed, of_items, str(request.classes or ""))
    numbers = classes.numbers()
    return _TargetReader(lambda item: numbers[item.target], classes.note, classes.names)


class _PreparedPictures:
    """Pictures of some items, read one at a time."""

    def __init__(self, pictures: _PictureSet, prepare: Callable[[Any], Tensor]) -> None:
        self.pictures = pictures
        self.prepare = prepare

    def __len__(self) -> int:
        return len(self.pictures.items)

    def __getitem__(self, row: int) -> tuple[int, Tensor | str]:
        """Return the row of an item with its picture, or with an error message.

        An error raised in another process would come with a traceback.
        """
        path = self.pictures.folder / self.pictures.items[row].path
        try:
            return row, self._prepared(path)
        except ValueError as error:
            return row, str(error)

    def _prepared(self, path: Path) -> Tensor:
        from PIL import Image

        pixels = read_pixels(path)
        if pixels.ndim != _COLOURS or pixels.shape[-1] not in (1, _COLOURS):
            raise ValueError(
                f"{path} must be a picture in grey or colour, got the shape"
                f" {pixels.shape}; the networks of timm see nothing else"
            )
        if pixels.dtype != np.uint8:
            pixels = np.rint(pixels.clip(0, 1) * _BYTE).astype(np.uint8)
        colours = np.broadcast_to(pixels, (*pixels.shape[:2], _COLOURS))
        return self.prepare(Image.fromarray(np.ascontiguousarray(colours)))


def _picture(picture: Tensor | str) -> Tensor:
    """Return a picture; raise the error message that stands in place of one."""
    if isinstance(picture, str):
        raise ValueError(f"{picture}; repair that file or remove it")
    return picture


@dataclass(frozen=True, slots=True, kw_only=True)
class _PictureBatches:
    """Batches of pictures with their targets and groups; reports its progress."""

    loader: DataLoader[Any]
    items: Sequence[OwnItem]
    target: Callable[[OwnItem], float] | None
    """Function from an item to its target; None where items have none."""
    progress: Progress | None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        done, first = 0, self.items[0]
        shifted = any(item.shifted for item in self.items)
        for pairs in self.loader:
            items = [self.items[row] for row, _ in pairs]
            x = torch.stack([_picture(picture) for _, picture in pairs])
            batch: dict[str, Any] = {"x": x, "item": [item.path for item in items]}
            if self.target is not None:
                batch["target"] = np.array([self.target(item) for item in items])
            if shifted:
                batch["shifted"] = np.array([item.shifted for item in items])
            if first.group:
                batch["group"] = np.array([item.group for item in items])
            if first.cluster:
                batch["cluster"] = np.array([item.cluster for item in items])
            yield batch
            done += len(items)
            if self.progress is not None:
                self.progress(done, len(self.items))
