"""Training a head alone, on features that a frozen backbone gives once.

With `features="cached"` the backbone stays in evaluation mode and is never moved. What
it gives for the items of a run is computed before the first epoch, kept in the run's
folder in memory-mapped files while it trains, and read like a split of images. The head
trains on it; predictions are made by the whole network, as ever.
"""

import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from qualms.atomic import replacing
from qualms.datasets import Split
from qualms.methods import Batch, Headed, Method
from qualms.runs import features_folder
from qualms.training._error import TrainingError, writing
from qualms.training.data import LoadedSplit, load_split
from qualms.training.inputs import Inputs
from qualms.training.machine import Machine
from qualms.training.options import Training
from qualms.training.raters import NO_SWAPS
from qualms.training.reading import RawItems

_CHUNK = 1 << 24
"""Bytes read at once to compare a checksum."""


class PassOn(nn.Module):
    """Stands where a backbone was: its input is the features already."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F, *space), as they are."""
        return x


def layers_of(backbone: nn.Module) -> list[tuple[str, type[nn.Module]]]:
    """Every layer by name and kind, to see whether a method changed one."""
    return [(name, type(layer)) for name, layer in backbone.named_modules()]


def head_on_features(
    network: nn.Module, before: list[tuple[str, type[nn.Module]]]
) -> Headed:
    """The head of `network`, to be trained on features; both share its weights.

    Args:
        network: what the method made.
        before: `layers_of` its backbone before the method had it.
    """
    if type(network) is not Headed or layers_of(network.backbone) != before:
        raise TrainingError(
            "features='cached' trains the head alone, and this method changes the"
            " backbone; train it with features='learned'"
        )
    width = network.backbone.features
    assert isinstance(width, int)
    return Headed(PassOn(width), network.head, network.task, network.fitted)


def check_cacheable(options: Training, method: Method, machine: Machine) -> None:
    """Refuse what features that are computed once cannot serve."""
    unfit = {
        f"augment={list(options.augment)} changes images": bool(options.augment),
        f"this method sees {method.views} views of each item": method.views > 1,
        "compile=true compiles the backbone": options.compile,
        "several devices divide a batch of images": machine.team.size > 1,
    }
    for what, holds in unfit.items():
        if holds:
            raise TrainingError(
                "features='cached' computes the features of an item once, and"
                f" {what}; leave that out, or train with features='learned'"
            )


def feature_inputs(inputs: Inputs, options: Training) -> Inputs:
    """How features become batches: they are ready."""

    def plain(raw: RawItems) -> Batch:
        target = inputs.unit.learned(raw.target)
        return Batch(x=raw.image, target=target, loss=options.loss)

    def train(raw: RawItems, _views: int) -> Batch:
        return plain(raw)

    return inputs._replace(train=train, plain=plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCache:
    """The features of a run's items, in files of its folder."""

    folder: Path
    """Of the run."""
    run: str
    """Its hash."""
    network: nn.Module
    inputs: Inputs
    """How images become batches."""
    machine: Machine
    batch: int
    """Items that the backbone sees at once."""

    def load(self, name: str, items: LoadedSplit, rows: Tensor) -> LoadedSplit:
        """`rows` of `items`, with features in place of images.

        They are read from the file `name`, which is written first if it is not whole.
        """
        stem = name.replace("/", "~").replace(":", "@")
        path = features_folder(self.folder) / f"{stem}.npy"
        if not self._is_whole(path, len(rows)):
            with writing(self.folder):
                path.parent.mkdir(parents=True, exist_ok=True)
                self._write(path, items, rows)
        chosen = rows.numpy()
        split = Split(
            image=np.load(path, mmap_mode="r", allow_pickle=False),
            target=items.split.target.take(chosen, axis=0),
            item=items.split.item[chosen],
        )
        swaps = NO_SWAPS if items.draw is None else items.draw.swaps
        return load_split(split, items.device, swaps=swaps)

    def _is_whole(self, path: Path, count: int) -> bool:
        try:
            stated = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            wanted = {"run": self.run, "items": count, "crc32": _checksum(path)}
        except (OSError, ValueError):
            return False
        return bool(stated == wanted)

    def _write(self, path: Path, items: LoadedSplit, rows: Tensor) -> None:
        whole, done = None, 0
        with replacing(path) as temporary:
            for part in self._features(items, rows):
                if whole is None:
                    shape = (len(rows), *part.shape[1:])
                    whole = np.lib.format.open_memmap(
                        temporary, mode="w+", dtype=np.float32, shape=shape
                    )
                whole[done : done + len(part)] = part.cpu().numpy()
                done += len(part)
            assert whole is not None
            whole.flush()
        stated = {"run": self.run, "items": len(rows), "crc32": _checksum(path)}
        with replacing(path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(stated), encoding="utf-8")

    @torch.no_grad()
    def _features(self, items: LoadedSplit, rows: Tensor) -> Iterator[Tensor]:
        assert isinstance(self.network, Headed)
        backbone = self.network.backbone.eval()
        for raw in items.batches(rows, self.batch):
            with self.machine.autocast():
                yield backbone(self.inputs.plain(raw).x).float()


def forget_features(folder: Path) -> None:
    """Delete the files of a run that is done with training."""
    shutil.rmtree(features_folder(folder), ignore_errors=True)


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            found = zlib.crc32(part, found)
    return found
