"""Training a head alone, on features that a frozen backbone computes once.

With `features="cached"` the backbone stays in evaluation mode and its weights never
change. Its features of the run's items are computed before the first epoch, kept in
memory-mapped files in the run's folder during training, and read like a split of
images. The head trains on them; predictions are made by the complete network.
"""

import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from qualms.atomic import replacing
from qualms.datasets import Split
from qualms.methods import Batch, Headed, Method
from qualms.runs import features_folder
from qualms.training._error import TrainingError, writing
from qualms.training._inputs import Inputs
from qualms.training._raters import NO_SWAPS
from qualms.training._splits import LoadedSplit, RawItems, load_split
from qualms.training.machine import Machine
from qualms.training.options import Training

_CHUNK = 1 << 24
"""Bytes read at once to compare a checksum."""


class PassOn(nn.Module):
    """An identity in place of the backbone, for inputs that are features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, F, *space) unchanged."""
        return x


def layers_of(backbone: nn.Module) -> list[tuple[str, type[nn.Module]]]:
    """Return every layer by name and kind, to see whether a method changed one."""
    return [(name, type(layer)) for name, layer in backbone.named_modules()]


def head_on_features(
    network: nn.Module, before: list[tuple[str, type[nn.Module]]]
) -> Headed:
    """Return the head of `network` for training on features; it shares the weights.

    Args:
        network: network that the method built.
        before: `layers_of` the backbone that the method was given.
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
    """Raise unless features that are computed once can serve the run."""
    augment = options.preprocessing.augment
    unfit = {
        f"augment={list(augment)} changes images": bool(augment),
        f"this method sees {method.views} views of each item": method.views > 1,
        "compile=true compiles the backbone": options.execution.compile,
        "several devices divide a batch of images": machine.team.size > 1,
    }
    for reason, applies in unfit.items():
        if applies:
            raise TrainingError(
                "features='cached' computes the features of an item once, and"
                f" {reason}; leave that out, or train with features='learned'"
            )


def feature_inputs(inputs: Inputs, options: Training) -> Inputs:
    """Return how batches of features are made: features are used unchanged."""

    def plain(raw: RawItems) -> Batch:
        target = inputs.unit.learned(raw.target)
        return Batch(x=raw.image, target=target, loss=options.objective.loss)

    def train(raw: RawItems, _views: int) -> Batch:
        return plain(raw)

    return inputs._replace(train=train, plain=plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCache:
    """Features of a run's items, in files of its folder."""

    folder: Path
    """Folder of the run."""
    run: str
    """Hash of the run."""
    network: nn.Module
    inputs: Inputs
    """How images become batches."""
    machine: Machine
    batch: int
    """Items that the backbone sees at once."""
    _loaded: dict[str, LoadedSplit] = field(default_factory=dict, init=False)

    def split(self, name: str, items: LoadedSplit) -> LoadedSplit:
        """Return the split `name`, whose items are `items`, with features as images."""
        if name not in self._loaded:
            rows = torch.arange(len(items))
            self._loaded[name] = self.load(name, items, rows)
        return self._loaded[name]

    def load(self, name: str, items: LoadedSplit, rows: Tensor) -> LoadedSplit:
        """Return `rows` of `items`, with features in place of images.

        They are read from the file `name`, which is written first if it is missing or
        incomplete.
        """
        stem = name.replace("/", "~").replace(":", "@")
        path = features_folder(self.folder) / f"{stem}.npy"
        if not self._is_complete(path, len(rows)):
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

    def _is_complete(self, path: Path, count: int) -> bool:
        try:
            description = json.loads(path.with_suffix(".json").read_text("utf-8"))
            return bool(description == self._description(path, count))
        except (OSError, ValueError):
            return False

    def _description(self, path: Path, count: int) -> dict[str, Any]:
        return {"run": self.run, "items": count, "crc32": _checksum(path)}

    def _write(self, path: Path, items: LoadedSplit, rows: Tensor) -> None:
        features, done = None, 0
        with replacing(path) as temporary:
            for part in self._features(items, rows):
                if features is None:
                    shape = (len(rows), *part.shape[1:])
                    features = np.lib.format.open_memmap(
                        temporary, mode="w+", dtype=np.float32, shape=shape
                    )
                features[done : done + len(part)] = part.cpu().numpy()
                done += len(part)
            assert features is not None
            features.flush()
        description = self._description(path, len(rows))
        with replacing(path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(description), encoding="utf-8")

    @torch.no_grad()
    def _features(self, items: LoadedSplit, rows: Tensor) -> Iterator[Tensor]:
        assert isinstance(self.network, Headed)
        backbone = self.network.backbone.eval()
        for raw in items.batches(rows, self.batch):
            with self.machine.autocast():
                yield backbone(self.inputs.plain(raw).x).float()


def forget_features(folder: Path) -> None:
    """Delete the cached features of a run whose training is done."""
    shutil.rmtree(features_folder(folder), ignore_errors=True)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            checksum = zlib.crc32(part, checksum)
    return checksum
