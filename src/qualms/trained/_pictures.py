"""Predictions of a trained network for a user's pictures: folders, or a table in CSV.

Pictures are read as the dataset `folder` reads them, and brought to the size and the
colours that the network was trained with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from qualms.datasets.folder.files import read_pixels
from qualms.datasets.folder.listing import OwnItem, listing_of
from qualms.datasets.folder.targets import target_number
from qualms.networks import PictureNetwork, onnx_classifier, picture_network
from qualms.predictions import NO_TARGET, Predictions, check_destination, write
from qualms.shelf import tasks_with, traits
from qualms.trained._classes import class_names, embedded_classes, read_classes
from qualms.trained.predict import predict
from qualms.training.machine import make_machine
from qualms.training.options import Execution

_SPLITS = {"source": "test", "fit": "train", "val": "val"}
"""Split that is taken where the items of a folder state theirs."""
_COLOURS = 3
_BYTE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRequest:
    """Network and pictures of `qualms predict`."""

    network: str
    """Name of timm or open_clip, such as timm:resnet50 and open_clip:ViT-B-32, or the
    path of a file .onnx."""
    source: Path
    """Folder or table of pictures, as are `fit` and `val`."""
    fit: Path | None = None
    val: Path | None = None
    weights: str = "pretrained"
    """"pretrained", a name of open_clip's weights, "package:NAME", or a path."""
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
    views: bool = True
    """True to embed pictures mirrored and cropped as well."""
    thumbnails: int = 0
    """Side of the small pictures that the file keeps; 0 for none."""


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
    """Predict or embed pictures with a trained network, by `qualms.predict`."""
    if request.task not in (known := tasks_with("items")):
        raise ValueError(f"task must be {', '.join(known)}, got {request.task!r}")
    if out is not None:
        check_destination(out, task=request.task)
    listed = None if request.classes is None else read_classes(request.classes)
    sets = dict(_picture_sets(request))
    _check_targets(sets.values())
    model = _model(request)
    is_onnx = request.network.lower().endswith(".onnx")
    embeds = "vectors" in traits(request.task)
    outputs = 0 if embeds and is_onnx else model.outputs
    targets = _target_reader(request, outputs, sets, listed)
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
        out=None if embeds else out,
        outputs=_form(request, model, is_onnx=is_onnx),
        last=False if is_onnx else None,
        views=request.views,
        seed=seed,
        header={
            "dataset": request.source.resolve().stem,
            "split": sets["source"].split,
            "options": _options(request, options),
            "classes": list(targets.names),
        },
    )
    if embeds:
        predictions = _with_own_classes(predictions, targets)
        if out is not None:
            write(out, predictions)
    notes = tuple(note for note in (model.note, targets.note) if note)
    notes += tuple(note for note in predictions.notes if note != NO_TARGET)
    return PicturePredictions(predictions, notes)


def _with_own_classes(
    predictions: Predictions, targets: "_TargetReader"
) -> Predictions:
    """Return embeddings without predicted classes that are not those of the items."""
    same = targets.comparable
    arrays = {n: a for n, a in predictions.arrays.items() if same or n != "predicted"}
    return replace(predictions, arrays=arrays)


def _model(request: PictureRequest) -> PictureNetwork:
    """Return the network with the preparation of its pictures."""
    colours = {"--mean": request.mean, "--std": request.deviation}
    if not request.network.lower().endswith(".onnx"):
        surplus = [name for name, values in colours.items() if values]
        surplus += ["--outputs"] if request.outputs else []
        if surplus:
            raise ValueError(
                f"{surplus[0]} is for files .onnx; other networks state it themselves,"
                " leave it out"
            )
        model = picture_network(request.network, request.weights)
        if "vectors" not in traits(request.task) and not model.outputs:
            raise ValueError(
                f"the weights {request.weights!r} of {request.network} must end in a"
                " linear classifier with a bias, and have none; say --task embedding,"
                " choose other weights, or pass the network to qualms.predict"
            )
        return model
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


def _form(
    request: PictureRequest, model: PictureNetwork, *, is_onnx: bool
) -> str | None:
    """Return what the outputs are; None for values, and where the values may tell."""
    if "vectors" in traits(request.task):
        if is_onnx and request.outputs not in (None, "embeddings"):
            raise ValueError(
                "the layers of a file .onnx cannot be seen, so that its outputs must be"
                f" the embeddings, got --outputs {request.outputs}; export the network"
                " without its classifier, and leave --outputs out"
            )
        return "logits" if model.outputs and not is_onnx else "embeddings"
    if "probabilities" not in traits(request.task):
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
    model: PictureNetwork,
) -> DataLoader[Any]:
    prepared: Any = _PreparedPictures(pictures, model.prepare, request.thumbnails)
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
    """Class of each output, where it is known; of embeddings the classes of items."""
    comparable: bool = True
    """True if the classes of the network are those of the items."""


def _target_reader(
    request: PictureRequest,
    outputs: int,
    sets: Mapping[str, _PictureSet],
    listed: Sequence[str] | None,
) -> _TargetReader:
    if "values" in traits(request.task):
        return _TargetReader(target_number)
    of_items = {item.target for part in sets.values() for item in part.items} - {""}
    if "vectors" in traits(request.task):
        named = embedded_classes(outputs, listed, of_items, str(request.classes or ""))
        number = named.numbers()
        return _TargetReader(
            lambda item: number[item.target],
            named.note,
            named.names,
            comparable=listed is not None and not named.note,
        )
    classes = class_names(outputs, listed, of_items, str(request.classes or ""))
    numbers = classes.numbers()
    return _TargetReader(lambda item: numbers[item.target], classes.note, classes.names)


class _PreparedPictures:
    """Pictures of some items, read one at a time."""

    def __init__(
        self, pictures: _PictureSet, prepare: Callable[[Any], Tensor], thumbnails: int
    ) -> None:
        self.pictures = pictures
        self.prepare = prepare
        self.thumbnails = thumbnails

    def __len__(self) -> int:
        return len(self.pictures.items)

    def __getitem__(self, row: int) -> "_ReadPicture":
        """Return an item with its picture, or with an error message.

        An error raised in another process would come with a traceback.
        """
        path = self.pictures.folder / self.pictures.items[row].path
        try:
            picture = self._read(path)
            return _ReadPicture(row, self.prepare(picture), self._thumbnail(picture))
        except ValueError as error:
            return _ReadPicture(row, error=str(error))

    def _thumbnail(self, picture: Any) -> NDArray[np.uint8] | None:
        """Return a small picture (side, side, 3), with black around it."""
        if not self.thumbnails:
            return None
        from PIL import ImageOps

        side = (self.thumbnails, self.thumbnails)
        return np.asarray(ImageOps.pad(picture, side), np.uint8)

    def _read(self, path: Path) -> Any:
        """Return a picture of Pillow in three colours."""
        from PIL import Image

        pixels = read_pixels(path)
        if pixels.ndim != _COLOURS or pixels.shape[-1] not in (1, _COLOURS):
            raise ValueError(
                f"{path} must be a picture in grey or colour, got the shape"
                f" {pixels.shape}; networks for pictures see nothing else"
            )
        if pixels.dtype != np.uint8:
            pixels = np.rint(pixels.clip(0, 1) * _BYTE).astype(np.uint8)
        colours = np.broadcast_to(pixels, (*pixels.shape[:2], _COLOURS))
        return Image.fromarray(np.ascontiguousarray(colours))


class _ReadPicture(NamedTuple):
    """A picture as it was read, or why it could not be."""

    row: int
    x: Tensor | None = None
    thumbnail: NDArray[np.uint8] | None = None
    error: str = ""

    @property
    def prepared(self) -> Tensor:
        """The picture as the network takes it; raise where there is none."""
        if self.x is None:
            raise ValueError(f"{self.error}; repair that file or remove it")
        return self.x


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
        for pictures in self.loader:
            items = [self.items[picture.row] for picture in pictures]
            x = torch.stack([picture.prepared for picture in pictures])
            batch: dict[str, Any] = {"x": x, "item": [item.path for item in items]}
            if pictures[0].thumbnail is not None:
                batch["thumbnail"] = np.stack([each.thumbnail for each in pictures])
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
