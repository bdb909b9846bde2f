"""Checkpoints: written completely or not at all, and loaded without running code.

The last two are kept. They hold no state of random generators or loaders: random
numbers and the order of an epoch depend only on the seed of the run and on the epoch.
"""

import itertools
import pickle
import zipfile
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qualms.atomic import replacing
from qualms.runs import checkpoint_paths
from qualms.training._error import TrainingError, writing

State = dict[str, Any]
_BROKEN = (
    zipfile.BadZipFile,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    KeyError,
    ValueError,
)


class Saver:
    """Writes the checkpoints of a run; with a `writer`, in the background.

    In the background, a checkpoint is left out while the last one of the run is still
    being written. All runs share one writer, since several would slow training down.
    """

    def __init__(self, folder: Path, writer: Executor | None) -> None:
        self._folder = folder
        self._writer = writer
        self._pending: Future[None] | None = None
        self._copies = _PinnedState()

    def save(self, state: State) -> None:
        """Write `state`, or give it to the writer if the last one is written."""
        if self._writer is None:
            write_checkpoint(self._folder, state)
        elif self.idle:
            self.wait()
            copy = self._copies.of(state)
            ready = torch.cuda.current_stream().record_event()
            self._pending = self._writer.submit(_later, self._folder, copy, ready)

    @property
    def idle(self) -> bool:
        """Whether nothing is being written."""
        return self._pending is None or self._pending.done()

    def wait(self) -> None:
        """Wait until everything is written; raises the error of the writer, if any."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def settle(self) -> None:
        """Wait until nothing is being written; errors of the writer are ignored."""
        if self._pending is not None:
            wait([self._pending])


def _later(folder: Path, state: State, ready: torch.cuda.Event) -> None:
    ready.synchronize()
    write_checkpoint(folder, state)


def write_checkpoint(folder: Path, state: State) -> None:
    """Make `state` the checkpoint of `folder`; the last one becomes the previous."""
    current, previous = checkpoint_paths(folder)
    with writing(folder), replacing(current) as temporary:
        _save(_mapped(state, Tensor.cpu), temporary)
        if current.exists():
            current.replace(previous)


def _save(state: State, path: Path) -> None:
    try:
        # Given a path, torch writes without blocking the threads that train.
        torch.save(state, path)
    except RuntimeError as error:
        why = str(error).partition("\n")[0]
        raise OSError(f"the disk may be full ({why})") from error


def read_checkpoint(folder: Path, run: str, say: Callable[[str], None]) -> State | None:
    """The newest readable checkpoint of the run with hash `run`; None to start anew."""
    for path in checkpoint_paths(folder):
        if not path.exists():
            continue
        try:
            state = _load(path)
        except _BROKEN as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            say(f"{path} is damaged ({why}); going back to the one before")
            path.unlink(missing_ok=True)  # several processes may do so
            continue
        if state["hash"] != run:
            raise TrainingError(
                f"{path} belongs to run {state['hash']}, not to {run}; choose another"
                " folder"
            )
        return state
    return None


def _load(path: Path) -> State:
    with zipfile.ZipFile(path) as archive:
        wrong = archive.testzip()  # torch itself does not compare checksums
    if wrong is not None:
        raise ValueError(f"the checksum of {wrong} differs")
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


class _PinnedState:
    """Copies of tensors on a GPU, in pinned memory that is allocated once.

    Copies are made on the run's own stream, so the next step waits only for the few
    milliseconds of copying. The memory is never freed: freeing it would record an event
    on that stream, which must not happen while another thread captures a graph there.
    """

    def __init__(self) -> None:
        self._held: list[Tensor] = []

    def of(self, state: State) -> State:
        """A copy of `state`, complete once the current stream has come this far."""
        place = itertools.count()
        copy: State = _mapped(state, lambda part: self._copied(part, next(place)))
        return copy

    def _copied(self, part: Tensor, place: int) -> Tensor:
        if place == len(self._held):
            self._held.append(_pinned(part))
        elif not _alike(self._held[place], part):
            self._held[place] = _pinned(part)
        return self._held[place].copy_(part, non_blocking=True)


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _pinned(part: Tensor) -> Tensor:
    return torch.empty_like(part, device="cpu", pin_memory=True)


def _mapped(state: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`state` with every tensor in it changed."""
    if isinstance(state, Tensor):
        return change(state.detach())
    if isinstance(state, dict):
        return {key: _mapped(value, change) for key, value in state.items()}
    if isinstance(state, list):
        return [_mapped(value, change) for value in state]
    return state
