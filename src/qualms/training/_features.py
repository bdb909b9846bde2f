"""Training a head alone, on features that a frozen backbone computes once.

With `features="cached"` the backbone stays in evaluation mode and its weights never
change. Its features of an item are computed once, for all heads and seeds that are
trained beside each other, and kept in memory-mapped files. They are read like a split
of images: the head trains on them, and predicts from them.
"""

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from qualms.atomic import replacing
from qualms.datasets import Split
from qualms.methods import Batch, Headed, Method
from qualms.processes import locked
from qualms.runs import shared_features
from qualms.spec import RunSpec
from qualms.training._error import TrainingError, writing
from qualms.training._inputs import Inputs
from qualms.training._raters import NO_SWAPS
from qualms.training._splits import LoadedSplit, RawItems, load_split
from qualms.training.machine import Machine
from qualms.training.options import Training
from qualms.training.predict import centre_crops, crop_shares

_CHUNK = 1 << 24
"""Bytes read at once to compare a checksum."""
_ATTEMPTS = 5
"""Attempts to make files that another launcher removes meanwhile."""


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
    """Features of items, in files that runs with the same backbone share."""

    folder: Path
    """Folder of the files."""
    identity: str
    """Digest of all that features depend on but for the items."""
    fingerprint: Callable[[str], str]
    """From a split to the fingerprint of its dataset."""
    network: nn.Module
    inputs: Inputs
    """Functions that make batches of images."""
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

    def crops(self, name: str, items: LoadedSplit) -> LoadedSplit:
        """Return the split `name` with features of the centres of its images."""
        return self.load(name, items, torch.arange(len(items)), cropped=True)

    def load(
        self, name: str, items: LoadedSplit, rows: Tensor, *, cropped: bool = False
    ) -> LoadedSplit:
        """Return `rows` of `items`, with features in place of images.

        They are read from a file, which is written first if it is missing or
        incomplete.
        """
        wanted = _Wanted(name, items, rows, cropped)
        chosen = rows.numpy()
        stored = items.split
        split = Split(
            image=self._features(wanted),
            target=stored.target.take(chosen, axis=0),
            item=stored.item[chosen],
            extra={key: values[chosen] for key, values in stored.extra.items()},
        )
        swaps = NO_SWAPS if items.draw is None else items.draw.swaps
        return load_split(split, items.device, swaps=swaps)

    def _features(self, wanted: "_Wanted") -> NDArray[Any]:
        """Return the features (N, ...) of the items, mapped from their file."""
        path = self._path(wanted)
        for _ in range(_ATTEMPTS):
            try:
                with writing(self.folder):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with locked(path.with_suffix(".lock"), wait=True):
                        if not self._is_complete(path):
                            self._write(path, wanted)
                        features: NDArray[Any] = np.load(
                            path, mmap_mode="r", allow_pickle=False
                        )
                        return features
            except FileNotFoundError:  # removed by a launcher that has ended
                continue
        raise TrainingError(f"the files in {self.folder} are removed again and again")

    def _path(self, wanted: "_Wanted") -> Path:
        digest = hashlib.sha256()
        names = "\n".join(map(str, wanted.items.split.item))
        parts = [self.identity, self.fingerprint(wanted.name), names, wanted.cropped]
        digest.update(json.dumps([*parts, self.batch]).encode())
        digest.update(wanted.rows.numpy().tobytes())
        stem = wanted.name.replace("/", "~").replace(":", "@")
        return self.folder / f"{stem}-{digest.hexdigest()[:16]}.npy"

    def _is_complete(self, path: Path) -> bool:
        try:
            description = json.loads(path.with_suffix(".json").read_text("utf-8"))
            return bool(description == _description(path))
        except (OSError, ValueError):
            return False

    def _write(self, path: Path, wanted: "_Wanted") -> None:
        features, done, count = None, 0, len(wanted.rows)
        with replacing(path) as temporary:
            for part in self._computed(wanted):
                if features is None:
                    features = np.lib.format.open_memmap(
                        temporary,
                        mode="w+",
                        dtype=np.float32,
                        shape=(count, *part.shape[1:]),
                    )
                features[done : done + len(part)] = part.cpu().numpy()
                done += len(part)
            assert features is not None
            features.flush()
        with replacing(path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(_description(path)), encoding="utf-8")

    @torch.no_grad()
    def _computed(self, wanted: "_Wanted") -> Iterator[Tensor]:
        assert isinstance(self.network, Headed)
        backbone, done = self.network.backbone.eval(), 0
        items, rows = wanted.items, wanted.rows
        for raw in items.batches(rows, self.batch):
            x = self.inputs.plain(raw).x
            part = rows[done : done + len(x)].numpy()
            if wanted.cropped:
                x = centre_crops(x, crop_shares(items.split.item[part]))
            with self.machine.autocast():
                yield backbone(x).float()
            done += len(x)


class _Wanted(NamedTuple):
    """The items whose features are wanted."""

    name: str
    items: LoadedSplit
    rows: Tensor
    cropped: bool


def backbone_identity(
    network: nn.Module, spec: RunSpec, options: Training, machine: Machine
) -> str:
    """Compute a digest of all that features of an image depend on."""
    assert isinstance(network, Headed)
    preprocessing = asdict(options.preprocessing)
    execution = [options.execution.precision, machine.device.type, torch.__version__]
    known = [asdict(spec.network), preprocessing, execution]
    digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode())
    for name, weights in network.backbone.state_dict().items():
        digest.update(name.encode())
        digest.update(weights.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def forget_features(benchmark: Path) -> None:
    """Delete the features that the runs in the folder of a benchmark shared.

    Processes that still read them keep what they have mapped.
    """
    shutil.rmtree(shared_features(benchmark), ignore_errors=True)


def _description(path: Path) -> dict[str, Any]:
    return {"crc32": _checksum(path)}


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            checksum = zlib.crc32(part, checksum)
    return checksum
