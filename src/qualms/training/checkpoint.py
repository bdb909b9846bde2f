"""Checkpoints: whole or not at all, the last two kept, readable without pickle's code.

There is no state of a generator or a loader in them: the random numbers and the order
of an epoch follow from the seed of the run and the number of the epoch.
"""

import io
import pickle
import zipfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qualms.atomic import replacing
from qualms.training._error import TrainingError, writing

State = dict[str, Any]
_CURRENT = "checkpoint.pt"
_PREVIOUS = "checkpoint.previous.pt"
_BROKEN = (
    zipfile.BadZipFile,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    KeyError,
    ValueError,
)


class Saver:
    """Writes the checkpoints of a run; on a GPU, while training goes on.

    There, a checkpoint that is due while the one before is still on its way to the disk
    is left out rather than waited for.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        self._folder = folder
        self._device = device
        self._pool = ThreadPoolExecutor(1) if device.type == "cuda" else None
        self._pending: Future[None] | None = None

    def save(self, state: State) -> None:
        """Write `state`, or hand it to the writer if that is idle."""
        if self._pool is None:
            write(self._folder, state)
        elif self._pending is None or self._pending.done():
            self.wait()
            copy = _mapped(state, Tensor.clone)
            ready = torch.cuda.current_stream(self._device).record_event()
            self._pending = self._pool.submit(self._later, copy, ready)

    def wait(self) -> None:
        """Return once everything is on the disk; raises what went wrong there."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Stop the writer, after what it is writing."""
        if self._pool is not None:
            self._pool.shutdown()

    def _later(self, state: State, ready: torch.cuda.Event) -> None:
        ready.synchronize()
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            held = _mapped(state, Tensor.cpu)
        write(self._folder, held)


def write(folder: Path, state: State) -> None:
    """Make `state` the checkpoint of `folder`, and the one before the previous."""
    buffer = io.BytesIO()
    # Through memory, so that a full disk is an ordinary error of the system.
    torch.save(_mapped(state, Tensor.cpu), buffer)
    with writing(folder), replacing(folder / _CURRENT) as temporary:
        temporary.write_bytes(buffer.getbuffer())
        if (folder / _CURRENT).exists():
            (folder / _CURRENT).replace(folder / _PREVIOUS)


def read(folder: Path, run: str, say: Callable[[str], None]) -> State | None:
    """The newest readable checkpoint of the run with hash `run`; None to start anew."""
    for name in (_CURRENT, _PREVIOUS):
        path = folder / name
        if not path.exists():
            continue
        try:
            state = _load(path)
        except _BROKEN as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            say(f"{path} is damaged ({why}); going back to the one before")
            path.unlink()
            continue
        if state["hash"] != run:
            raise TrainingError(
                f"{path} belongs to run {state['hash']}, not to {run}; choose another"
                " folder"
            )
        return state
    return None


def forget_previous(folder: Path) -> None:
    """Delete the older checkpoint of a finished run."""
    (folder / _PREVIOUS).unlink(missing_ok=True)


def _load(path: Path) -> State:
    with zipfile.ZipFile(path) as archive:
        wrong = archive.testzip()  # torch itself does not compare checksums
    if wrong is not None:
        raise ValueError(f"the checksum of {wrong} differs")
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _mapped(state: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`state` with every tensor in it changed."""
    if isinstance(state, Tensor):
        return change(state.detach())
    if isinstance(state, dict):
        return {key: _mapped(value, change) for key, value in state.items()}
    if isinstance(state, list):
        return [_mapped(value, change) for value in state]
    return state
