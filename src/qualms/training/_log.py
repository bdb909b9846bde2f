"""The log of epochs: one JSON object per epoch, and optional sinks beside it."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from qualms.atomic import replacing
from qualms.regular import read_file
from qualms.runs import epochs_path
from qualms.training._error import TrainingError, writing

_Values = Mapping[str, Any]
_Sink = Callable[[_Values], None]


class _SinkTarget(NamedTuple):
    """The run that a sink logs: its folder, its hash, and its first epoch."""

    folder: Path
    run: str
    epoch: int


class EpochLog:
    """Appends the values of each epoch; first drops epochs that are trained again."""

    def __init__(
        self, folder: Path, sinks: Sequence[str], *, run: str, epoch: int
    ) -> None:
        self._folder = folder
        self._path = epochs_path(folder)
        target = _SinkTarget(folder, run, epoch)
        self._sinks = [_SINKS[name](target) for name in sinks]
        self._drop_from(epoch)

    def write(self, entry: _Values) -> None:
        """Add the entry of one epoch."""
        with writing(self._folder), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for sink in self._sinks:
            sink(entry)

    def _drop_from(self, epoch: int) -> None:
        if not self._path.exists():
            return
        lines = _complete_lines(self._path)
        before = [line for line in lines if _epoch(line) < epoch]
        with writing(self._folder), replacing(self._path) as temporary:
            temporary.write_text("".join(before), encoding="utf-8")


def copy_log(folder: Path, other: Path) -> None:
    """Copy the log of the run in `folder`, if it has one, to the run in `other`."""
    if not epochs_path(folder).exists():
        return
    lines = _complete_lines(epochs_path(folder))
    with writing(other), replacing(epochs_path(other)) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def _complete_lines(path: Path) -> list[str]:
    """Return the lines that were written completely before the process was killed."""
    text = read_file(path).decode("utf-8", "replace")
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _epoch(line: str) -> float:
    """Return the epoch of a line; infinite for a line that a crash damaged."""
    try:
        return float(json.loads(line)["epoch"])
    except (ValueError, TypeError, KeyError):
        return math.inf


def _tensorboard(target: _SinkTarget) -> _Sink:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise TrainingError(
            "the sink 'tensorboard' needs the package tensorboard; install it or leave"
            " the sink out"
        ) from error
    # Epochs that are trained again must be shown only once.
    writer = SummaryWriter(
        target.folder / "tensorboard", purge_step=target.epoch or None
    )

    def sink(entry: _Values) -> None:
        for name, value in _numbers(entry).items():
            writer.add_scalar(name, value, entry["epoch"])
        writer.flush()

    return sink


def _wandb(target: _SinkTarget) -> _Sink:
    try:
        wandb = import_module("wandb")
    except ImportError as error:
        raise TrainingError(
            "the sink 'wandb' needs the package wandb; install it or leave the sink out"
        ) from error
    # With the same id, a run that continues after a stop stays one run.
    run = wandb.init(
        mode="offline",
        dir=str(target.folder),
        project="qualms",
        id=target.run,
        resume="allow",
    )
    return lambda entry: run.log(_numbers(entry), step=entry["epoch"])


def _mlflow(target: _SinkTarget) -> _Sink:
    try:
        client_of = import_module("mlflow").MlflowClient
    except ImportError as error:
        raise TrainingError(
            "the sink 'mlflow' needs the package mlflow; install it or leave the sink"
            " out"
        ) from error
    folder = target.folder.resolve()
    # Folders of files are no longer a store of MLflow: without a server it has a file
    # of SQLite.
    address = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder}/mlflow.db"
    client = client_of(tracking_uri=address)
    run = _mlflow_run(client, target)

    def sink(entry: _Values) -> None:
        for name, value in _numbers(entry).items():
            client.log_metric(run, name, value, step=entry["epoch"])

    # Values that were logged cannot be taken back: epochs that are trained again are
    # those that a checkpoint missed, and give the same values.
    last = max((p.step for p in client.get_metric_history(run, "loss")), default=-1)
    return lambda entry: sink(entry) if entry["epoch"] > last else None


def _mlflow_run(client: Any, target: _SinkTarget) -> str:
    """Return the id of the run in MLflow; one that continues is found by its tag."""
    experiment = client.get_experiment_by_name("qualms")
    if experiment is None:
        number = client.create_experiment(
            "qualms", artifact_location=str(target.folder.resolve() / "mlflow")
        )
    else:
        number = experiment.experiment_id
    chosen = f"tags.`qualms.run` = '{target.run}'"
    runs = client.search_runs([number], filter_string=chosen)
    if runs:
        return str(runs[0].info.run_id)
    tags = {"qualms.run": target.run, "mlflow.runName": target.run}
    return str(client.create_run(number, tags=tags).info.run_id)


def _numbers(entry: _Values) -> dict[str, float]:
    return {name: value for name, value in entry.items() if isinstance(value, float)}


_SINKS: dict[str, Callable[[_SinkTarget], _Sink]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}
