"""The runs in some folders, as the live page shows them."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qualms.report.site.markup import plain
from qualms.runs import (
    REQUEST,
    RunProgress,
    log_end,
    read_progress,
    requested_runs,
)
from qualms.spec import RunSpec

QUIET = 600.0
"""Seconds without a sign after which a run may have been killed."""
EPOCHS_OF_QUIET = 3
"""Epochs that may pass without a sign, where they take longer than that."""
POINTS = 80
"""Points of a curve of losses at most."""
LONGEST_ERROR = 300
"""Letters of an error; its log has all of them."""
LOG_BYTES = 20_000
"""Bytes of a log that are shown, its last ones."""
_STATES = ("failed", "quiet", "under way", "done")
"""Those that need somebody come first."""
_TOTALS = ("done", "under way", "waiting", "quiet", "failed")


class LiveRuns:
    """Reads how far runs are; what has not changed is not read again."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Look for runs in `folders`: of a benchmark, of several, or of one run."""
        self._folders = tuple(folders)
        self._finished: dict[Path, RunProgress] = {}

    def state(self) -> dict[str, Any]:
        """Return all runs as data for the page."""
        runs = [
            _record(folder, progress, time.time()) for folder, progress in self._all()
        ]
        runs.sort(key=lambda run: (_STATES.index(run["state"]), run["key"]))
        counts = Counter(run["state"] for run in runs)
        counts["waiting"] = len(self._waiting())
        return {
            "counts": {state: counts[state] for state in _TOTALS if counts[state]},
            "all": counts.total(),
            "left": _left(runs, counts),
            "runs": runs,
        }

    def log(self, key: str) -> str | None:
        """Return the end of the log of a run; None if there is no run of that key."""
        folder = next((f for f in self._run_folders() if _key(f) == key), None)
        return None if folder is None else plain(log_end(folder, LOG_BYTES))

    def _waiting(self) -> set[str]:
        """Return the runs that were asked for last and have not begun."""
        begun = {folder.resolve() for folder in self._run_folders()}
        folders = [
            file.parent.resolve()
            for root in self._folders
            for pattern in (REQUEST, f"*/{REQUEST}")
            for file in root.glob(pattern)
        ]
        return {
            str(folder / run)
            for folder in folders
            for run in requested_runs(folder)
            if folder / run not in begun
        }

    def _run_folders(self) -> Iterator[Path]:
        yielded: set[Path] = set()
        for root in self._folders:
            for pattern in ("spec.json", "*/spec.json", "*/*/spec.json"):
                for spec in sorted(root.glob(pattern)):
                    if spec.parent.resolve() not in yielded:
                        yielded.add(spec.parent.resolve())
                        yield spec.parent

    def _all(self) -> Iterator[tuple[Path, RunProgress]]:
        for folder in self._run_folders():
            progress = self._finished.get(folder) or read_progress(folder)
            if progress is None:
                continue
            if progress.done:
                self._finished[folder] = progress
            yield folder, progress


def _left(runs: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> float | None:
    """Return the seconds until all runs are done; None where nothing is under way.

    Those that wait take as long as the mean of the others, as many at once as now.
    """
    under_way = [run for run in runs if run["state"] == "under way"]
    left = [float(run["left"]) for run in under_way if run["left"] is not None]
    durations = [float(run["seconds"]) for run in runs if run["seconds"] is not None]
    if not left or not durations:
        return None
    waiting = counts["waiting"] * sum(durations) / len(durations)
    return max(*left, (sum(left) + waiting) / len(under_way), 0.0)


def _key(folder: Path) -> str:
    absolute = folder.absolute()
    return f"{absolute.parent.name}/{absolute.name}"


def _record(folder: Path, progress: RunProgress, now: float) -> dict[str, Any]:
    """Return a run as data."""
    spec = progress.spec
    total = spec.training.get("epochs")
    last = progress.epochs[-1] if progress.epochs else {}
    trained = len(progress.epochs)
    seconds = _number(last.get("seconds"))
    epochs = total if isinstance(total, int) else trained
    running = not (progress.done or progress.error)
    return {
        "key": _key(folder),
        "name": plain(_name(spec)),
        "benchmark": plain(spec.benchmark),
        "state": _state(progress, now, seconds),
        "epoch": min(trained, epochs),
        "epochs": epochs,
        "losses": _thinned([_number(each.get("loss")) for each in progress.epochs]),
        "loss": _number(last.get("loss")),
        "speed": _number(last.get("images_per_second")),
        "left": seconds * max(epochs - trained, 0) if running and trained else None,
        "seconds": seconds * epochs if trained else None,
        "ago": max(0.0, now - progress.sign) if running else None,
        "error": plain(_cut(progress.error)),
    }


def _state(progress: RunProgress, now: float, seconds: float) -> str:
    if progress.done:
        return "done"
    if progress.error:
        return "failed"
    patience = max(QUIET, EPOCHS_OF_QUIET * seconds if seconds > 0 else 0.0)
    return "quiet" if now - progress.sign > patience else "under way"


def _name(spec: RunSpec) -> str:
    """Return dataset, method and seed."""
    options = (
        value for name, value in spec.dataset.options.items() if name != "contents"
    )
    words = [spec.dataset.name, *(value for value in options if isinstance(value, str))]
    return f"{' '.join(words)}, {spec.method.name}, seed {spec.seed}"


def _cut(words: str) -> str:
    """Return words without what is too long for a table."""
    return words if len(words) <= LONGEST_ERROR else f"{words[: LONGEST_ERROR - 1]}…"


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value)


def _thinned(values: list[float]) -> list[float]:
    """Return at most `POINTS` of some values, the first and the last among them."""
    if len(values) <= POINTS:
        return values
    step = (len(values) - 1) / (POINTS - 1)
    return [values[round(number * step)] for number in range(POINTS)]
