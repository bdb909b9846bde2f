"""The log of a run: one JSON object per epoch, and optional sinks beside it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.training._error import TrainingError, writing

Entry = Mapping[str, Any]
Sink = Callable[[Entry], None]
_FILE = "log.jsonl"


class Log:
    """Appends entries; those of epochs that are trained again are dropped first."""

    def __init__(self, folder: Path, sinks: Sequence[str], *, epoch: int) -> None:
        self._folder = folder
        self._sinks = [_SINKS[name](folder, epoch) for name in sinks]
        self._drop_from(epoch)

    def write(self, entry: Entry) -> None:
        """Add the entry of one epoch."""
        path = self._folder / _FILE
        with writing(self._folder), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for sink in self._sinks:
            sink(entry)

    def _drop_from(self, epoch: int) -> None:
        path = self._folder / _FILE
        if not path.exists():
            return
        kept = [line for line in _whole_lines(path) if _epoch(line) < epoch]
        with writing(self._folder), replacing(path) as temporary:
            temporary.write_text("".join(kept), encoding="utf-8")


def _whole_lines(path: Path) -> list[str]:
    """Lines that were written to their end before the process was killed."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _epoch(line: str) -> float:
    """The epoch that a line is about; one that a crash of the system tore has none."""
    try:
        return float(json.loads(line)["epoch"])
    except (ValueError, TypeError, KeyError):
        return math.inf


def _tensorboard(folder: Path, epoch: int) -> Sink:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise TrainingError(
            "the sink 'tensorboard' needs the package tensorboard; install it or leave"
            " the sink out"
        ) from error
    # Epochs that are trained again are shown once.
    writer = SummaryWriter(folder / "tensorboard", purge_step=epoch or None)

    def sink(entry: Entry) -> None:
        for name, value in _numbers(entry).items():
            writer.add_scalar(name, value, entry["epoch"])
        writer.flush()

    return sink


def _wandb(folder: Path, _epoch: int) -> Sink:
    try:
        wandb = import_module("wandb")
    except ImportError as error:
        raise TrainingError(
            "the sink 'wandb' needs the package wandb; install it or leave the sink out"
        ) from error
    run = wandb.init(mode="offline", dir=str(folder), project="qualms")
    return lambda entry: run.log(_numbers(entry), step=entry["epoch"])


def _numbers(entry: Entry) -> dict[str, float]:
    return {
        name: value
        for name, value in entry.items()
        if isinstance(value, int | float) and name != "epoch"
    }


_SINKS: dict[str, Callable[[Path, int], Sink]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
}
