"""Searches of options for pages, read from the study of Optuna that they are kept in.

The study is a file of SQLite, read as such: pages need neither Optuna nor the code of
the benchmark.
"""

import json
import math
import shlex
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qualms.regular import MOST_BYTES, UNREADABLE, open_file, read_file
from qualms.wording import plain_line

FILE = "study.db"
CONFIG = "best.toml"
"""The config of the best trial, beside it."""
STATES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
"""Words for the states of Optuna; a running trial with an error has failed."""
_TRIALS = (
    "SELECT trial_id, number, state, datetime_complete FROM trials ORDER BY number"
)
_VALUES = "SELECT trial_id, value FROM trial_values ORDER BY objective"
_NOTES = "SELECT trial_id, key, value_json FROM trial_user_attributes"
_SEARCH = "SELECT value_json FROM study_user_attributes WHERE key = 'search'"


class ObjectiveFacts(NamedTuple):
    """A score by which trials are judged."""

    name: str
    label: str
    better: str
    """"higher" or "lower"."""


class TrialFacts(NamedTuple):
    """A trial of a search."""

    number: int
    state: str
    """"done", "pruned", "failed" or "under way"."""
    values: tuple[float, ...] = ()
    """By each objective; () where it has none."""
    options: Mapping[str, Any] = {}
    run: str = ""
    """Hash of its run."""
    error: str = ""
    """Why it has no value, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """A search as pages show it."""

    title: str
    benchmark: str
    variant: str
    method: str
    preset: str = ""
    selection: str = ""
    items: str = ""
    """The items that trials are judged on, in words."""
    pruner: str = "none"
    seed: int = 0
    objectives: tuple[ObjectiveFacts, ...]
    trials: tuple[TrialFacts, ...] = ()
    """In the order of their numbers."""
    simulated: bool = False
    when: str = ""
    """Time at which the last trial ended."""
    versions: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    """Folder of the search."""

    @property
    def valued(self) -> tuple[TrialFacts, ...]:
        """The trials with a value."""
        return tuple(trial for trial in self.trials if trial.values)

    @property
    def ranked(self) -> tuple[TrialFacts, ...]:
        """The trials with a value from the best to the worst by the first objective."""
        return tuple(sorted(self.valued, key=lambda t: (-t.values[0], t.number)))

    @property
    def command(self) -> str:
        """Runs the benchmark with the best options."""
        words = ["qualms", "run", f"{self.benchmark}/{self.variant}"]
        words += ["--preset", self.preset, "--methods", self.method]
        return shlex.join([*words, "--config", str(self.folder / CONFIG)])

    @property
    def config(self) -> str:
        """Text of the config of the best trial; '' if there is none."""
        try:
            return read_file(self.folder / CONFIG).decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def best(self) -> TrialFacts | None:
        """The best trial by the first objective."""
        return next(iter(self.ranked), None)


def read_search(folder: Path) -> SearchReport:
    """Read the search in a folder.

    Raises:
        ValueError: If its study is damaged, or not one of `qualms tune`.
    """
    path = folder / FILE
    try:
        with open_file(path) as file:  # a pipe or a device is not opened
            if file.seek(0, 2) > MOST_BYTES:
                raise ValueError("it is larger than any search")
        where = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=60.0)) as study:
            study.execute("PRAGMA trusted_schema = OFF")
            return _report(study, folder)
    except (*UNREADABLE, sqlite3.Error) as error:
        raise ValueError(unreadable(path, error)) from error


def unreadable(path: Path, error: Exception) -> str:
    """Say that a study cannot be read, and what to do."""
    words = plain_line(str(error)) or type(error).__name__
    return (
        f"{path} cannot be read ({words}); delete it and run again: trials that are"
        " done are kept in the folders of their runs"
    )


def _report(study: sqlite3.Connection, folder: Path) -> SearchReport:
    row = study.execute(_SEARCH).fetchone()
    if row is None:
        raise ValueError("it is no study of qualms tune")
    facts = json.loads(row[0])
    objectives = tuple(ObjectiveFacts(*map(str, each)) for each in facts["objectives"])
    values: dict[int, list[float]] = {}
    for trial, value in study.execute(_VALUES):
        values.setdefault(trial, []).append(float(value))
    notes: dict[int, dict[str, Any]] = {}
    for trial, key, text in study.execute(_NOTES):
        notes.setdefault(trial, {})[key] = json.loads(text)
    rows = study.execute(_TRIALS).fetchall()
    trials = [
        _trial(number, state, values.get(of, []), notes.get(of, {}), len(objectives))
        for of, number, state, _ in rows
    ]
    when = max((str(end) for *_, end in rows if end), default="")
    facts |= {"objectives": objectives, "trials": tuple(trials), "when": when}
    return SearchReport(**facts, folder=folder)


def _trial(
    number: int,
    state: str,
    values: list[float],
    notes: Mapping[str, Any],
    objectives: int,
) -> TrialFacts:
    if len(values) not in (0, objectives) or not all(map(math.isfinite, values)):
        raise ValueError(f"trial {number} has the values {values}")
    error = str(notes.get("error", ""))
    options = {str(name): value for name, value in dict(notes["options"]).items()}
    return TrialFacts(
        number=int(number),
        state=STATES.get(state, "failed" if error else "under way"),
        values=tuple(values),
        options=options,
        run=str(notes["run"]),
        error=error,
    )
