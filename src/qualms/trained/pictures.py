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
from qualms.networks import TimmClassifier, make_classifier
from qualms.predictions import Predictions, check_destination
from qualms.trained.classes import class_names, read_classes
from qualms.trained.predict import predict
from qualms.training.machine import make_machine
from qualms.training.options import Execution

TASKS = ("classification", "regression")
_SPLITS = {"source": "test", "fit": "train", "val": "val"}
"""The split that is meant where the items of a folder state theirs."""
_COLOURS = 3
_BYTE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureWish:
    """Which network shall predict which pictures."""

    network: str
    """A name of timm, such as timm:resnet50."""
    source: Path
    """A folder or table of pictures, as are `fit` and `val`."""
    fit: Path | None = None
    val: Path | None = None
    weights: str = "pretrained"
    """Or the path of a file."""
    classes: Path | None = None
    """A file that names the class of each output."""
    split: str | None = None
    """That is predicted, where items state their splits; None for test."""
    task: str = "classification"
    batch: int = 32
    workers: int = 0
    device: str = "auto"


class PicturePredictions(NamedTuple):
    """What was predicted, and what the user should know of it."""

    predictions: Predictions
    notes: tuple[str, ...]


Progress = Callable[[int, int], None]
"""Is told how many of how many items are predicted."""


def predict_pictures(
    wish: PictureWish,
    *,
    method: str = "plain",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> PicturePredictions:
    """Predict pictures with a network of timm, by `qualms.predict`."""
    if wish.task not in TASKS:
        raise ValueError(f"task must be {' or '.join(TASKS)}, got {wish.task!r}")
    if out is not None:
        check_destination(out, task=wish.task)
    given = read_classes(wish.classes) if wish.classes is not None else None
    items = dict(_places(wish))
    _check_targets(items.values())
    model = make_classifier(wish.network, wish.weights)
    targets = _targets(wish, model.outputs, items, given)
    device = make_machine(wish.device, Execution()).device
    loaders = {
        name: _PictureBatches(
            loader=_loader(wish, part, model),
            items=part.items,
            target=targets.read if part.items[0].target else None,
            progress=progress if name == "source" else None,
        )
        for name, part in items.items()
    }
    made = predict(
        model.network.to(device),
        loaders["source"],
        task=wish.task,
        method=method,
        options=options,
        fit=loaders.get("fit"),
        val=loaders.get("val"),
        out=out,
        outputs="logits" if wish.task == "classification" else None,
        seed=seed,
        header={
            "dataset": wish.source.resolve().stem,
            "split": items["source"].split,
            "options": _about(wish, options),
            "about": {"classes": list(targets.names)} if targets.names else {},
        },
    )
    notes = tuple(said for said in (model.note, targets.note) if said)
    return PicturePredictions(made, notes)


def _places(wish: PictureWish) -> Iterator[tuple[str, "_Chosen"]]:
    places = {"source": wish.source, "fit": wish.fit, "val": wish.val}
    for name, root in places.items():
        if root is not None:
            asked = wish.split if name == "source" else None
            yield name, _chosen(root, asked, _SPLITS[name])


def _check_targets(parts: Iterable["_Chosen"]) -> None:
    """Refuse items of which some have a target and others have none."""
    for part in parts:
        with_target = [item for item in part.items if item.target]
        if with_target and len(with_target) < len(part.items):
            silent = next(item for item in part.items if not item.target)
            raise ValueError(
                f"{silent.where} must have a target as {with_target[0].where} has, got"
                " none; fill all of them, or none"
            )


class _Chosen(NamedTuple):
    folder: Path
    items: Sequence[OwnItem]
    split: str | None


def _loader(wish: PictureWish, part: _Chosen, model: TimmClassifier) -> DataLoader[Any]:
    pictures: Any = _PreparedPictures(part, model.prepare)
    return DataLoader(
        pictures, batch_size=wish.batch, num_workers=wish.workers, collate_fn=list
    )


def _about(wish: PictureWish, options: Mapping[str, Any] | None) -> dict[str, Any]:
    network = {"name": wish.network, "weights": Path(wish.weights).name}
    return {"network": network, "method": dict(options or {})}


def _chosen(root: Path, asked: str | None, usual: str) -> _Chosen:
    """The items of a folder, or those of one split where they state theirs."""
    listing = listing_of(root, unlabelled=True)
    stated = sorted({item.split for item in listing.items if item.split})
    if not stated:
        if asked is not None:
            raise ValueError(
                f"the items in {root} state no split, so {asked!r} cannot be chosen;"
                " leave --split out"
            )
        return _Chosen(listing.folder, listing.items, None)
    wanted = asked or usual
    items = [item for item in listing.items if item.split == wanted]
    if not items:
        raise ValueError(
            f"no item in {root} is of the split {wanted!r}, which is asked for; there"
            f" are {', '.join(stated)}"
        )
    return _Chosen(listing.folder, items, wanted)


class _Targets(NamedTuple):
    """How the targets of items are read."""

    read: Callable[[OwnItem], float]
    note: str = ""
    names: Sequence[str] = ()
    """The class of each output, where it is known."""


def _targets(
    wish: PictureWish,
    outputs: int,
    items: Mapping[str, _Chosen],
    given: Sequence[str] | None,
) -> _Targets:
    if wish.task == "regression":
        return _Targets(target_number)
    found = {item.target for part in items.values() for item in part.items}
    named = class_names(outputs, given, found - {""}, str(wish.classes or ""))
    numbers = named.numbers()
    return _Targets(lambda item: numbers[item.target], named.note, named.names)


class _PreparedPictures:
    """The pictures of some items, one at a time, as a loader asks for them."""

    def __init__(self, part: _Chosen, prepare: Callable[[Any], Tensor]) -> None:
        self.part = part
        self.prepare = prepare

    def __len__(self) -> int:
        return len(self.part.items)

    def __getitem__(self, row: int) -> tuple[int, Tensor | str]:
        """The number of an item with its picture, or with what is wrong with it.

        An error in another process would come with a traceback.
        """
        try:
            return row, self._prepared(self.part.folder / self.part.items[row].path)
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
        whole = np.broadcast_to(pixels, (*pixels.shape[:2], _COLOURS))
        return self.prepare(Image.fromarray(np.ascontiguousarray(whole)))


def _picture(held: Tensor | str) -> Tensor:
    if isinstance(held, str):
        raise ValueError(f"{held}; repair that file or remove it")
    return held


@dataclass(frozen=True, slots=True, kw_only=True)
class _PictureBatches:
    """Batches of pictures with what is said of them; tells how far it is."""

    loader: DataLoader[Any]
    items: Sequence[OwnItem]
    target: Callable[[OwnItem], float] | None
    """Gives the target of an item; None where items have none."""
    progress: Progress | None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        done, first = 0, self.items[0]
        shifted = any(item.shifted for item in self.items)
        for pairs in self.loader:
            some = [self.items[row] for row, _ in pairs]
            x = torch.stack([_picture(held) for _, held in pairs])
            batch: dict[str, Any] = {"x": x, "item": [item.path for item in some]}
            if self.target is not None:
                batch["target"] = np.array([self.target(item) for item in some])
            if shifted:
                batch["shifted"] = np.array([item.shifted for item in some])
            for name in ("group", "cluster"):
                if getattr(first, name):
                    batch[name] = np.array([getattr(item, name) for item in some])
            yield batch
            done += len(some)
            if self.progress is not None:
                self.progress(done, len(self.items))
