"""The runs in some folders, as the live page shows them."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qualms.report.site.markup import plain
from qualms.runs import RunProgress, log_end, read_progress
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
        return {
            "counts": {state: counts[state] for state in _STATES if counts[state]},
            "runs": runs,
        }

    def log(self, key: str) -> str | None:
        """Return the end of the log of a run; None if there is no run of that key."""
        folder = next((f for f in self._run_folders() if _key(f) == key), None)
        return None if folder is None else plain(log_end(folder, LOG_BYTES))

    def _run_folders(self) -> Iterator[Path]:
        seen: set[Path] = set()
        for given in self._folders:
            for pattern in ("spec.json", "*/spec.json", "*/*/spec.json"):
                for spec in sorted(given.glob(pattern)):
                    if spec.parent.resolve() not in seen:
                        seen.add(spec.parent.resolve())
                        yield spec.parent

    def _all(self) -> Iterator[tuple[Path, RunProgress]]:
        for folder in self._run_folders():
            progress = self._finished.get(folder) or read_progress(folder)
            if progress is None:
                continue
            if progress.done:
                self._finished[folder] = progress
            yield folder, progress


def _key(folder: Path) -> str:
    absolute = folder.absolute()
    return f"{absolute.parent.name}/{absolute.name}"


def _record(folder: Path, progress: RunProgress, now: float) -> dict[str, Any]:
    """Return a run as data."""
    spec = progress.spec
    total = spec.training.get("epochs")
    last = progress.epochs[-1] if progress.epochs else {}
    made = len(progress.epochs)
    seconds = _number(last.get("seconds"))
    epochs = total if isinstance(total, int) else made
    running = not (progress.done or progress.error)
    return {
        "key": _key(folder),
        "name": plain(_name(spec)),
        "benchmark": plain(spec.benchmark),
        "state": _state(progress, now, seconds),
        "epoch": min(made, epochs),
        "epochs": epochs,
        "losses": _thinned([_number(each.get("loss")) for each in progress.epochs]),
        "loss": _number(last.get("loss")),
        "speed": _number(last.get("images_per_second")),
        "left": seconds * max(epochs - made, 0) if running and made else None,
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
