"""Progress of runs, read without disturbing the runs."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from qualms.regular import (
    UNREADABLE,
    as_object,
    read_file,
    read_object,
)
from qualms.runs._files import epochs_path
from qualms.runs._predictions import was_finished
from qualms.runs._record import number_in, why_failed
from qualms.spec import RunSpec


class RunState(NamedTuple):
    """The facts about a run that a listing of thousands of runs reads."""

    spec: dict[str, Any]
    """Fields of its spec, unchecked."""
    done: bool
    error: str
    """Error of the last attempt; '' if it did not fail."""
    seconds: float | None
    """Seconds of its training; None unless it is done."""
    finished: str | None
    """Time of its end, in UTC; None unless it is done."""


class RunProgress(NamedTuple):
    """Progress of a run, by the files in its folder."""

    spec: RunSpec
    done: bool
    error: str
    """Error of the last attempt; '' if it did not fail."""
    epochs: tuple[Mapping[str, Any], ...]
    """Record of each epoch: its number, loss, seconds and images per second."""


def read_progress(folder: Path) -> RunProgress | None:
    """Return the progress of the run in `folder`; None if it holds no run.

    Nothing is locked, so a process that works on the run is not disturbed.
    """
    try:
        spec = RunSpec.from_json(read_file(folder / "spec.json").decode())
    except UNREADABLE:
        return None
    try:
        lines = read_file(epochs_path(folder)).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    return RunProgress(
        spec,
        done=was_finished(folder),
        error=why_failed(folder),
        epochs=tuple(filter(None, map(_line_object, lines))),
    )


def read_state(folder: Path) -> RunState | None:
    """Return the facts that a listing shows; None if the files cannot be read."""
    spec, record = (read_object(folder / f"{name}.json") for name in ("spec", "done"))
    error = why_failed(folder)
    if not spec:
        return None
    done = record.get("hash") == folder.name
    finished = None
    if done:
        changed = datetime.fromtimestamp(_changed(folder / "done.json"), UTC)
        finished = changed.strftime("%Y-%m-%d %H:%M")
    seconds = number_in(record, "seconds") if done else None
    return RunState(spec, done, error, seconds, finished)


def last_change(folder: Path) -> float:
    """Return when a file of a run last changed, in seconds since 1970."""
    return max((_changed(path) for path in folder.glob("*")), default=0.0)


def _line_object(line: str) -> dict[str, Any]:
    """Return the object of a line; {} for a line that is still being written."""
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
