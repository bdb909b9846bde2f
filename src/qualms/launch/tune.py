"""Search the options of a method; trials are judged on validation items.

Every trial is an ordinary run in a folder of its own, and the study of Optuna is the
only record of the search: pages and the best configuration are read from it.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from qualms import __version__
from qualms.launch._config_file import ConfigFile, write_config
from qualms.launch._pruning import Pruning
from qualms.launch._search import Search, objective_score, search_of
from qualms.launch._study import START, SearchStudy, Trial
from qualms.launch._worker import Judge
from qualms.launch.local import RunOutcome
from qualms.predictions import PredictionsError, read
from qualms.report.search_report import CONFIG, SearchReport, read_search
from qualms.runs import split_stem, stored
from qualms.spec import RunSpec

__all__ = [
    "START",
    "Search",
    "Trial",
    "TrialResult",
    "config_path",
    "search_of",
    "tune",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """A trial, and what came of it."""

    trial: Trial
    outcome: RunOutcome
    values: tuple[float, ...]
    """Scores by the objectives of the search, the selection's first; () for none."""
    error: str
    """Why it has no score, in a sentence."""

    @property
    def is_busy(self) -> bool:
        """True if another process makes the trial."""
        return self.outcome.status == "busy"

    @property
    def is_pruned(self) -> bool:
        """True if the pruner of the search stopped the trial."""
        return self.outcome.status == "pruned"


class Launch(Protocol):
    """Makes runs, like `qualms.launch.run_all` with its other arguments filled in."""

    def __call__(
        self, specs: Sequence[RunSpec], /, *, judge: Judge | None
    ) -> Generator[RunOutcome, None, None]:
        """Make runs, and yield the outcome of each; the judge may stop some."""


def tune(
    search: Search, count: int, *, launch: Launch, out: Path, at_once: int = 1
) -> Generator[TrialResult, None, None]:
    """Make trials until there are `count`, and yield the result of each made now.

    Those that failed do not stop the others. Trials of former calls that have no value
    are made first. At the end the best configuration is written to the folder of the
    search.

    Args:
        search: The search.
        count: Number of all its trials.
        launch: Makes the runs, below `out`.
        out: Folder of runs and of searches.
        at_once: Trials that are proposed before results are looked at again.
    """
    if count < 1:
        raise ValueError(f"trials must be at least 1, got {count}")
    folder = search.folder(out)
    study = SearchStudy(search, folder)
    results: dict[int, TrialResult] = {}
    while True:
        trials = [t for t in study.open_trials() if t.number not in results]
        trials = trials or study.propose(at_once, count=count)
        if not trials:
            break
        trials += [result.trial for result in results.values() if result.is_busy]
        pruning = Pruning(search=folder.name, runs=study.runs)
        judge = None if search.pruner == "none" else pruning
        for result in _results_of(search, trials, partial(launch, judge=judge)):
            results[result.trial.number] = result
            if not result.is_busy:
                study.record(
                    result.trial, result.values, result.error, pruned=result.is_pruned
                )
                yield result
    yield from (result for result in results.values() if result.is_busy)
    report = read_search(folder)
    if report.best is not None:
        write_config(_config_file(search, report), config_path(folder))


def _results_of(
    search: Search,
    trials: Sequence[Trial],
    launch: Callable[[Sequence[RunSpec]], Generator[RunOutcome, None, None]],
) -> Iterator[TrialResult]:
    """Make trials and yield their results; equal trials share their run."""
    by_run: dict[str, list[Trial]] = {}
    for trial in trials:
        by_run.setdefault(trial.spec.hash, []).append(trial)
    with closing(launch([trial.spec for trial in trials])) as outcomes:
        for outcome in outcomes:
            for trial in by_run[outcome.spec.hash]:
                yield _judged(search, trial, outcome)


def _judged(search: Search, trial: Trial, outcome: RunOutcome) -> TrialResult:
    values: tuple[float, ...] = ()
    error = outcome.error
    if outcome.status in ("done", "skipped"):
        try:
            values = _values(search, trial, outcome.folder)
        except (PredictionsError, OSError) as unreadable:
            error = str(unreadable)
        names = (search.selection.rule, search.objective)
        for name, value in zip(names, values, strict=False):
            if math.isnan(value):
                values, error = (), f"{name} is not defined for it"
                break
    elif outcome.status == "busy":
        error = "another process makes it; run again to see it"
    return TrialResult(trial=trial, outcome=outcome, values=values, error=error)


def _values(search: Search, trial: Trial, folder: Path) -> tuple[float, ...]:
    from qualms.training.selection import (
        PredictedSplit,
        predicted_split,
        selection_score,
    )

    rule, splits = search.selection.rule, []
    uncertainty = str(trial.spec.training.get("select_uncertainty", ""))
    for split in search.judged_on:
        arrays = read(stored(folder, split) or split_stem(folder, split)).arrays
        splits.append(predicted_split(rule, arrays, uncertainty))
    score = selection_score(rule, splits)
    if not search.objective:
        return (score,)
    predicted = [split for split in splits if isinstance(split, PredictedSplit)]
    probs = np.concatenate([s.probs.astype(np.float64).mean(0) for s in predicted])
    target = np.concatenate([split.target for split in predicted])
    return score, objective_score(search.objective)(probs, target)


def config_path(folder: Path) -> Path:
    """Return the path of the config of the best trial, in the folder of a search."""
    return folder / CONFIG


def _config_file(search: Search, report: SearchReport) -> ConfigFile:
    """Return the options of the best trial and those that were fixed, as a config."""
    best = report.best
    assert best is not None
    selection, preset = search.selection.name, search.request.preset
    return ConfigFile(
        name="-".join((search.variant, search.method, selection, preset)),
        benchmark=search.base.benchmark,
        method=search.method,
        selection=selection,
        options={**search.config_options, **best.options},
        search={
            "variant": search.variant,
            "preset": preset,
            "seed": search.base.seed,
            "pruner": search.pruner,
            "trials": len(report.trials),
            "pruned": sum(trial.state == "pruned" for trial in report.trials),
            "without_value": len(report.trials) - len(report.valued),
            "score": search.selection.label,
            "value": best.values[0],
            **({search.objective: best.values[1]} if search.objective else {}),
            "trial": best.number,
            "run": best.run,
            "qualms": __version__,
        },
    )
