"""Search the options of a method; trials are judged on validation items.

Every trial is an ordinary run in a folder of its own. So finished trials are never made
again, and several searches may share an output folder. The results are also kept in a
study of Optuna, beside the table of trials and the best configuration.
"""

import csv
import json
import math
import shlex
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from qualms import __version__
from qualms.atomic import replacing
from qualms.launch._config_file import ConfigFile, write_config
from qualms.launch._importance import importance_of
from qualms.launch._objectives import front_of, objective_facts, objective_scores
from qualms.launch._proposals import Proposals, proposals_of
from qualms.launch._pruning import Pruning
from qualms.launch._search import Search, search_of
from qualms.launch._study import SearchStudy, Storage, checked_storage
from qualms.launch._trials import Trial, TrialResult, trials_of
from qualms.launch._worker import Judge
from qualms.launch.local import RunOutcome
from qualms.predictions import PredictionsError, read
from qualms.report.benchmark_report import versions
from qualms.report.search_report import (
    CONFIG,
    ImportanceFacts,
    SearchReport,
    TrialFacts,
    write_search,
)
from qualms.runs import split_stem, stored
from qualms.spec import RunSpec

__all__ = [
    "Proposals",
    "Search",
    "Storage",
    "Trial",
    "TrialResult",
    "checked_storage",
    "config_path",
    "front_of",
    "front_path",
    "proposals_of",
    "ranked_trials",
    "search_of",
    "trials_of",
    "tune",
]


class Launch(Protocol):
    """Makes runs, like `qualms.launch.run_all` with its other arguments filled in."""

    def __call__(
        self, specs: Sequence[RunSpec], /, *, judge: Judge | None
    ) -> Generator[RunOutcome, None, None]:
        """Make runs, and yield the outcome of each; the judge may stop some."""


def tune(
    search: Search,
    proposals: Proposals,
    *,
    launch: Launch,
    out: Path,
    storage: Storage = "sqlite",
) -> Generator[TrialResult, None, None]:
    """Make trials, and yield the result of each; failed ones do not stop the others.

    At the end the table of trials, the best configuration and what pages show of the
    search are written to its folder, as trials.csv, best.json and search.json.

    Args:
        search: The search.
        proposals: Its trials, from `proposals_of`.
        launch: Makes the runs, below `out`.
        out: Folder of runs and of the results of searches.
        storage: How the study of Optuna is stored beside the results.
    """
    folder = search.folder(out)
    study = SearchStudy(search, folder, storage=storage)
    results: dict[int, TrialResult] = {}
    while trials := proposals.ask(results):
        begun = {trial.number: trial for trial in trials}
        begun |= {number: result.trial for number, result in results.items()}
        judge = _judge(search, begun, folder)
        for result in _results_of(search, trials, partial(launch, judge=judge)):
            results[result.trial.number] = result
            if not result.is_busy:
                study.record(result)
                yield result
    yield from (result for result in results.values() if result.is_busy)
    _write(search, ranked_trials([*results.values()]), folder)


def _judge(search: Search, begun: Mapping[int, Trial], folder: Path) -> Judge | None:
    """Return what stops trials before their end, by the trials that have begun."""
    if search.pruner == "none":
        return None
    runs = tuple(begun[number].spec.hash for number in sorted(begun))
    return Pruning(pruner=search.pruner, search=folder.name, runs=runs)


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


def ranked_trials(results: Sequence[TrialResult]) -> list[TrialResult]:
    """Sort results from the best to the worst, then those without a value."""

    def order(result: TrialResult) -> tuple[bool, float, int]:
        return result.value is None, -(result.value or 0.0), result.trial.number

    return sorted(results, key=order)


def _judged(search: Search, trial: Trial, outcome: RunOutcome) -> TrialResult:
    values: tuple[float, ...] = ()
    error = outcome.error
    if outcome.status in ("done", "skipped"):
        try:
            values = _values(search, trial, outcome.folder)
        except (PredictionsError, OSError) as unreadable:
            error = str(unreadable)
        names = (search.selection.rule, *search.objectives)
        for name, value in zip(names, values, strict=False):
            if math.isnan(value):
                values, error = (), f"{name} is not defined for it"
                break
    elif outcome.status == "busy":
        error = "another process makes it; run again to see it"
    return TrialResult(
        trial=trial,
        outcome=outcome,
        value=values[0] if values else None,
        error=error,
        others=values[1:],
    )


def _values(search: Search, trial: Trial, folder: Path) -> tuple[float, ...]:
    from qualms.training.selection import predicted_split, selection_score

    rule, splits = search.selection.rule, []
    uncertainty = str(trial.spec.training.get("select_uncertainty", ""))
    for split in search.judged_on:
        arrays = read(stored(folder, split) or split_stem(folder, split)).arrays
        splits.append(predicted_split(rule, arrays, uncertainty))
    return selection_score(rule, splits), *objective_scores(search, splits)


def _write(search: Search, results: Sequence[TrialResult], folder: Path) -> None:
    with (
        replacing(folder / "trials.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerows(_table(search, results))
    write_search(_report(search, results, folder), folder)
    if not results or results[0].value is None:
        return
    with replacing(folder / "best.json") as temporary:
        text = json.dumps(_best(search, results), indent=1)
        temporary.write_text(text, encoding="utf-8")
    write_config(_config_file(search, results[0], results), config_path(folder))
    if search.objectives:
        _write_front(search, results, folder)


def _report(
    search: Search, results: Sequence[TrialResult], folder: Path
) -> SearchReport:
    """Return what pages show of a search; results are ranked."""
    valued = [result for result in results if result.values]
    shares, reason = importance_of(search, results)
    return SearchReport(
        title=search.title,
        benchmark=search.base.benchmark,
        variant=search.variant,
        method=search.method,
        preset=search.request.preset,
        selection=search.selection.name,
        items=search.selection.items,
        sampler=search.sampler,
        pruner=search.pruner,
        seed=search.base.seed,
        objectives=objective_facts(search),
        trials=tuple(sorted(map(_trial_facts, results), key=lambda each: each.number)),
        best=valued[0].trial.number if valued else None,
        front=tuple(result.trial.number for result in front_of(search, results)),
        importance=tuple(ImportanceFacts(*each) for each in shares),
        no_importance=reason,
        command=shlex.join(search.with_config(config_path(folder))),
        simulated=search.simulated,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def _trial_facts(result: TrialResult) -> TrialFacts:
    trial = result.trial
    state = "done" if result.values else "failed"
    if result.is_pruned:
        state = "pruned"
    elif result.is_busy:
        state = "under way"
    return TrialFacts(
        number=trial.number,
        state=state,
        values=result.values,
        options=dict(trial.options),
        run=trial.spec.hash,
        error=result.error,
    )


def _write_front(search: Search, results: Sequence[TrialResult], folder: Path) -> None:
    """Write a config for each trial of the front, in place of those of before."""
    files = {front_path(folder, each): each for each in front_of(search, results)}
    for stale in {*front_path(folder, results[0]).parent.glob("*.toml")} - {*files}:
        stale.unlink()
    for path, result in files.items():
        path.parent.mkdir(exist_ok=True)
        write_config(_config_file(search, result, results), path)


def front_path(folder: Path, result: TrialResult) -> Path:
    """Return the path of the config of a trial of the front of a search."""
    return folder / "front" / f"trial-{result.trial.number}.toml"


def config_path(folder: Path) -> Path:
    """Return the path of the config of the best trial, in the folder of a search."""
    return folder / CONFIG


def _config_file(
    search: Search, best: TrialResult, results: Sequence[TrialResult]
) -> ConfigFile:
    """Return the options of a trial and those that were fixed, as a config."""
    request = search.request
    selection = search.selection.name
    return ConfigFile(
        name="-".join((search.variant, search.method, selection, request.preset)),
        benchmark=search.base.benchmark,
        method=search.method,
        selection=selection,
        options={**search.config_options, **best.trial.options},
        search={
            "variant": search.variant,
            "preset": request.preset,
            "seed": search.base.seed,
            "sampler": search.sampler,
            "pruner": search.pruner,
            "trials": len(results),
            "pruned": sum(result.is_pruned for result in results),
            "without_value": sum(result.value is None for result in results),
            "score": search.selection.label,
            "value": best.value,
            **dict(zip(search.objectives, best.others, strict=True)),
            "trial": best.trial.number,
            "run": best.trial.spec.hash,
            "qualms": __version__,
        },
    )


def _table(search: Search, results: Sequence[TrialResult]) -> Iterator[list[Any]]:
    options = list(results[0].trial.options) if results else []
    names = search.objectives
    front = front_of(search, results) if names else []
    head = ["trial", "selection", "value", *names, *(["front"] if names else [])]
    yield [*head, *options, "run", "error"]
    for result in results:
        trial = result.trial
        yield [
            trial.number,
            search.selection.name,
            *(result.values or [""] * (1 + len(names))),
            *([int(result in front)] if names else []),
            *(trial.options[name] for name in options),
            trial.spec.hash,
            result.error,
        ]


def _best(search: Search, results: Sequence[TrialResult]) -> dict[str, Any]:
    best = results[0]
    return {
        "benchmark": search.base.benchmark,
        "variant": search.variant,
        "method": search.method,
        "preset": search.request.preset,
        "selection": search.selection.name,
        "sampler": search.sampler,
        "pruner": search.pruner,
        "score": search.selection.label,
        "value": best.value,
        **dict(zip(search.objectives, best.others, strict=True)),
        "trial": best.trial.number,
        "options": {**search.request.options, **best.trial.options},
        "command": shlex.join(search.command(best.trial.options)),
        "run": best.trial.spec.hash,
        "trials": len(results),
        "pruned": sum(result.is_pruned for result in results),
        "without_value": sum(result.value is None for result in results),
        "qualms": __version__,
    }
