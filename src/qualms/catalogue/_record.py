"""The record of one run, read from its folder."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from qualms.processes import LockError, locked
from qualms.runs import epochs_path, last_change, lock_path, read_state

Status = Literal["done", "failed", "running", "stopped", "damaged"]
STATUSES: tuple[Status, ...] = ("done", "failed", "running", "stopped", "damaged")
LIVELY = 600.0
"""Seconds since its last change for which a run counts as running."""
Value = str | int | float | bool
_PARTS = ("dataset", "network", "method")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run: its labels, its options and, where it was judged, its scores."""

    run: str
    """Its hash, which is the name of its folder."""
    folder: str
    """The folder, below the one that was listed."""
    status: Status
    labels: Mapping[str, Value] = field(default_factory=dict)
    """Benchmark, dataset, network, method, seed and the like."""
    options: Mapping[str, Value] = field(default_factory=dict)
    """Options of training by their names, those of parts as `method.rate`."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Values of this run alone, by the first row of a table that shows it."""
    error: str = ""
    """Error of its last attempt; '' if it did not fail."""

    def get(self, name: str) -> Value | None:
        """Return the label, option or score of this name; None if it has none.

        >>> seed = {"seed": 3}
        >>> record = RunRecord(run="0a", folder="b/0a", status="done", labels=seed)
        >>> record.get("seed"), record.get("status"), record.get("auroc")
        (3, 'done', None)
        """
        if name in ("run", "folder", "status", "error"):
            text = {"run": self.run, "folder": self.folder, "error": self.error}
            return text.get(name, self.status) or None
        for values in (self.labels, self.scores, self.options):
            if name in values:
                return values[name]
        return None

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return asdict(self)


def recorded_run(folder: Path, name: str) -> RunRecord:
    """Read the files of a run folder.

    Args:
        folder: The folder.
        name: Its path below the folder that is listed.
    """
    state = read_state(folder)
    if state is None:
        benchmark = {"benchmark": folder.parent.name}
        return RunRecord(
            run=folder.name, folder=name, status="damaged", labels=benchmark
        )
    spec = state.spec
    labels: dict[str, Any] = {
        "benchmark": spec.get("benchmark"),
        **{part: _object(spec.get(part)).get("name") for part in _PARTS},
        "seed": spec.get("seed"),
        "version": spec.get("version"),
        "seconds": state.seconds,
        "finished": state.finished,
    }
    options = dict(_object(spec.get("training")))
    for part in _PARTS:
        for option, value in _object(_object(spec.get(part)).get("options")).items():
            options[f"{part}.{option}"] = value
    return RunRecord(
        run=folder.name,
        folder=name,
        status=_status(folder, done=state.done, error=state.error),
        labels=_plain(labels),
        options=_plain(options),
        error="" if state.done else state.error,
    )


def _status(folder: Path, *, done: bool, error: str) -> Status:
    if done:
        return "done"
    if time.time() - last_change(folder) < LIVELY and not error:
        return "running"
    # The lock of a run without an epoch is not tried: that could disturb its start.
    with suppress(LockError, OSError):
        if lock_path(folder).exists() and epochs_path(folder).exists():
            with locked(lock_path(folder)) as is_free:
                if not is_free:
                    return "running"
    return "failed" if error else "stopped"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(values: Mapping[str, Any]) -> dict[str, Value]:
    """Return values for cells of a table: lists and mappings as JSON."""
    return {
        name: value if isinstance(value, Value) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }
