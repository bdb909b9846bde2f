"""Records of a search of options for pages, stored beside its results as search.json.

`qualms tune` writes it at its end, with all that Optuna computed, so that pages need
neither Optuna nor the code of the benchmark.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from qualms.atomic import replacing
from qualms.regular import UNREADABLE, read_file

FILE = "search.json"
CONFIG = "best.toml"
"""The config of the best trial, beside it."""
FORMAT = 1
STATES = ("done", "pruned", "failed", "under way")


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
    """One of `STATES`."""
    values: tuple[float, ...] = ()
    """By each objective; () where it has none."""
    options: Mapping[str, Any] = {}
    run: str = ""
    """Hash of its run."""
    error: str = ""
    """Why it has no value, in a sentence."""


class ImportanceFacts(NamedTuple):
    """The share of the differences in an objective that an option explains."""

    objective: str
    option: str
    share: float


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
    sampler: str = ""
    pruner: str = "none"
    seed: int = 0
    objectives: tuple[ObjectiveFacts, ...]
    trials: tuple[TrialFacts, ...] = ()
    """In the order of their numbers."""
    best: int | None = None
    """Number of the best trial by the first objective."""
    front: tuple[int, ...] = ()
    """Numbers of the trials that no other beats in all objectives."""
    importance: tuple[ImportanceFacts, ...] = ()
    no_importance: str = ""
    """Why no importance is known, in a sentence."""
    command: str = ""
    """Runs the benchmark with the best options."""
    simulated: bool = False
    when: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    """Text of the config of the best trial. It is read from its own file."""

    @property
    def valued(self) -> tuple[TrialFacts, ...]:
        """The trials with a value."""
        return tuple(trial for trial in self.trials if trial.values)


def write_search(report: SearchReport, folder: Path) -> Path:
    """Write a report into the folder of its search, and return the path."""
    path = folder / FILE
    data = {"format": FORMAT, **asdict(replace(report, config=""))}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path


def read_search(folder: Path) -> SearchReport:
    """Read the report of the search in a folder.

    Raises:
        ValueError: If it is damaged, or of a newer version.
    """
    path = folder / FILE
    try:
        data = json.loads(read_file(path))
        if data.pop("format") != FORMAT:
            raise ValueError("it was written by another version")
        report = _report(data)
    except UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read ({error}); give the command of the search again,"
            " which makes no finished trial anew"
        ) from error
    config = folder / CONFIG
    text = config.read_text("utf-8", "replace") if config.is_file() else ""
    return replace(report, config=text)


def _report(data: Mapping[str, Any]) -> SearchReport:
    trials = tuple(TrialFacts(*each) for each in data["trials"])
    objectives = tuple(ObjectiveFacts(*each) for each in data["objectives"])
    return SearchReport(
        **{
            **data,
            "objectives": objectives,
            "trials": tuple(_checked(trial, len(objectives)) for trial in trials),
            "front": tuple(data["front"]),
            "importance": tuple(ImportanceFacts(*e) for e in data["importance"]),
        }
    )


def _checked(trial: TrialFacts, objectives: int) -> TrialFacts:
    values = tuple(map(float, trial.values))
    if len(values) not in (0, objectives) or not all(map(math.isfinite, values)):
        raise ValueError(f"trial {trial.number} has the values {values}")
    if trial.state not in STATES:
        raise ValueError(f"trial {trial.number} has the state {trial.state!r:.40}")
    return trial._replace(values=values)
