"""Checkpoints: written completely or not at all, and loaded without running code.

The last two are kept. They hold no state of random generators or loaders: random
numbers and the order of an epoch depend only on the seed of the run and on the epoch.
"""

import itertools
import math
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from qualms.atomic import replacing
from qualms.runs import checkpoint_paths
from qualms.training._error import TrainingError, writing
from qualms.training._optimiser import Plateau

Checkpoint = dict[str, Any]
"""Tensors, numbers and texts by name:

    hash         the run
    data         fingerprint of the dataset that it is trained on
    network      weights and buffers
    optimiser    state of the optimiser, until the run is fitted
    scaler       state of the gradient scaler, until the run is fitted
    stand        the `TrainingState`

Checkpoints of older versions must load, so names never change."""
_BROKEN = (
    zipfile.BadZipFile,
    UnpicklingError,
    RuntimeError,
    EOFError,
    KeyError,
    ValueError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEpoch:
    """The best epoch by a selection rule."""

    value: float = -math.inf
    weights: dict[str, Tensor] | None = None
    """None until the rule scores an epoch."""


@dataclass(slots=True, kw_only=True)
class TrainingState:
    """Progress of a run, beside its weights and its optimiser."""

    epoch: int = 0
    """Epochs done."""
    plateau: Plateau = field(default_factory=Plateau)
    best: dict[str, BestEpoch] = field(default_factory=dict)
    """The best epoch by each rule that is followed since the first epoch."""
    seconds: float = 0.0
    """Seconds spent on epochs."""
    fit_seconds: float = 0.0
    fitted: bool = False

    def follow(self, rules: list[str]) -> None:
        """Follow `rules` from now on; after the first epoch no rule can be added."""
        best = self.best if self.epoch else dict.fromkeys(rules, BestEpoch())
        self.best = {rule: best[rule] for rule in rules if rule in best}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as numbers, texts and tensors."""
        best = {
            rule: {"value": epoch.value, "weights": epoch.weights}
            for rule, epoch in self.best.items()
        }
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {**numbers, "best": best, "plateau": asdict(self.plateau)}


_NUMBERS = ("epoch", "seconds", "fit_seconds", "fitted")


def state_from_dict(values: Mapping[str, Any]) -> TrainingState:
    """Return the state that `TrainingState.to_dict` made `values` of."""
    best = {rule: BestEpoch(**epoch) for rule, epoch in values["best"].items()}
    plateau = Plateau(**values["plateau"])
    return TrainingState(**{**values, "best": best, "plateau": plateau})


class CheckpointWriter:
    """Writes the checkpoints of a run; with an `executor`, in the background.

    In the background, a checkpoint is left out while the last one of the run is still
    being written. All runs share one thread, since several would slow training down.
    """

    def __init__(self, folder: Path, executor: Executor | None) -> None:
        self._folder = folder
        self._executor = executor
        self._pending: Future[None] | None = None
        self._copies = _PinnedCopies()

    def save(self, checkpoint: Checkpoint) -> None:
        """Write `checkpoint`; in the background only if the last one is written."""
        if self._executor is None:
            write_checkpoint(self._folder, checkpoint)
        elif self.idle:
            self.wait()
            copy = self._copies.of(checkpoint)
            ready = torch.cuda.current_stream().record_event()
            self._pending = self._executor.submit(
                _write_when_ready, self._folder, copy, ready
            )

    @property
    def idle(self) -> bool:
        """True if nothing is being written."""
        return self._pending is None or self._pending.done()

    def wait(self) -> None:
        """Wait until everything is written; raise the error of writing, if any."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def settle(self) -> None:
        """Wait until nothing is being written; ignore errors of writing."""
        if self._pending is not None:
            wait([self._pending])


def _write_when_ready(
    folder: Path, checkpoint: Checkpoint, ready: torch.cuda.Event
) -> None:
    ready.synchronize()
    write_checkpoint(folder, checkpoint)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of `folder`; the last one becomes the previous one."""
    current, previous = checkpoint_paths(folder)
    with writing(folder), replacing(current) as temporary:
        _save(_mapped(checkpoint, Tensor.cpu), temporary)
        if current.exists():
            current.replace(previous)


def _save(checkpoint: Checkpoint, path: Path) -> None:
    try:
        # Given a path, torch writes without blocking the threads that train.
        torch.save(checkpoint, path)
    except RuntimeError as error:
        why = str(error).partition("\n")[0]
        raise OSError(f"the disk may be full ({why})") from error


def read_checkpoint(
    folder: Path, run: str, message: Callable[[str], None]
) -> Checkpoint | None:
    """Return the newest readable checkpoint of the run with hash `run`, or None.

    Damaged checkpoints are deleted; `message` is called with a sentence on each.
    """
    for path in checkpoint_paths(folder):
        if not path.is_file():
            continue
        try:
            checkpoint = _load(path)
        except _BROKEN as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            message(f"{path} is damaged ({why}); going back to the one before")
            path.unlink(missing_ok=True)  # several processes may do so
            continue
        if checkpoint["hash"] != run:
            raise TrainingError(
                f"{path} belongs to run {checkpoint['hash']}, not to {run}; choose"
                " another folder"
            )
        return checkpoint
    return None


def _load(path: Path) -> Checkpoint:
    with zipfile.ZipFile(path) as archive:
        wrong = archive.testzip()  # torch itself does not compare checksums
    if wrong is not None:
        raise ValueError(f"the checksum of {wrong} differs")
    checkpoint: Checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    return checkpoint


class _PinnedCopies:
    """Copies of tensors on a GPU, in pinned memory that is allocated once.

    Copies are made on the run's own stream, so the next step waits only for the few
    milliseconds of copying. The memory is never freed: freeing it would record an event
    on that stream, which must not happen while another thread captures a graph there.
    """

    def __init__(self) -> None:
        self._copies: list[Tensor] = []

    def of(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a copy, complete once the current stream has come this far."""
        number = itertools.count()
        copy: Checkpoint = _mapped(
            checkpoint, lambda tensor: self._copied(tensor, next(number))
        )
        return copy

    def _copied(self, tensor: Tensor, number: int) -> Tensor:
        if number == len(self._copies):
            self._copies.append(_pinned(tensor))
        elif not _alike(self._copies[number], tensor):
            self._copies[number] = _pinned(tensor)
        return self._copies[number].copy_(tensor, non_blocking=True)


def _alike(tensor: Tensor, other: Tensor) -> bool:
    return tensor.shape == other.shape and tensor.dtype == other.dtype


def _pinned(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, device="cpu", pin_memory=True)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return `value` with every tensor in it changed."""
    if isinstance(value, Tensor):
        return change(value.detach())
    if isinstance(value, dict):
        return {key: _mapped(entry, change) for key, entry in value.items()}
    if isinstance(value, list):
        return [_mapped(entry, change) for entry in value]
    return value
