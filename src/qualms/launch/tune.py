"""Search the options of a method; trials are judged on validation items.

Every trial is an ordinary run in a folder of its own. So finished trials are never made
again, and several searches may share an output folder. The results are also kept in a
journal of Optuna, beside the table of trials and the best configuration.
"""

import csv
import json
import math
import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qualms import __version__
from qualms.atomic import replacing
from qualms.launch._config_file import ConfigFile, write_config
from qualms.launch._proposals import Proposals, proposals_of
from qualms.launch._search import Search, search_of
from qualms.launch._trials import (
    Trial,
    TrialResult,
    distribution,
    name_of,
    trials_of,
)
from qualms.launch.local import RunOutcome
from qualms.predictions import PredictionsError, read
from qualms.processes import locked
from qualms.runs import lock_path, split_stem, stored
from qualms.spec import RunSpec

if TYPE_CHECKING:
    from optuna import Study

__all__ = [
    "Proposals",
    "Search",
    "Trial",
    "TrialResult",
    "config_path",
    "proposals_of",
    "ranked_trials",
    "search_of",
    "trials_of",
    "tune",
]

Launch = Callable[[Sequence[RunSpec]], Generator[RunOutcome, None, None]]
"""Makes runs, like `qualms.launch.run_all` with its other arguments filled in."""


def tune(
    search: Search, proposals: Proposals, *, launch: Launch, out: Path
) -> Generator[TrialResult, None, None]:
    """Make trials, and yield the result of each; failed ones do not stop the others.

    At the end the table of trials and the best configuration are written to the folder
    of the search, as trials.csv and best.json.

    Args:
        search: The search.
        proposals: Its trials, from `proposals_of`.
        launch: Makes the runs, below `out`.
        out: Folder of runs and of the results of searches.
    """
    folder = search.folder(out)
    journal = _Journal(search, folder)
    results: dict[int, TrialResult] = {}
    while trials := proposals.ask(results):
        for result in _results_of(search, trials, launch):
            results[result.trial.number] = result
            if not result.is_busy:
                journal.record(result)
                yield result
    yield from (result for result in results.values() if result.is_busy)
    _write(search, ranked_trials([*results.values()]), folder)


def _results_of(
    search: Search, trials: Sequence[Trial], launch: Launch
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
    value, error = None, outcome.error
    if outcome.status in ("done", "skipped"):
        try:
            value = _value(search, trial, outcome.folder)
        except (PredictionsError, OSError) as unreadable:
            error = str(unreadable)
        if value is not None and math.isnan(value):
            value, error = None, f"{search.selection.rule} is not defined for it"
    elif outcome.status == "busy":
        error = "another process makes it; run again to see it"
    return TrialResult(trial=trial, outcome=outcome, value=value, error=error)


def _value(search: Search, trial: Trial, folder: Path) -> float:
    from qualms.training.selection import predicted_split, selection_score

    rule, splits = search.selection.rule, []
    uncertainty = str(trial.spec.training.get("select_uncertainty", ""))
    for split in search.judged_on:
        arrays = read(stored(folder, split) or split_stem(folder, split)).arrays
        splits.append(predicted_split(rule, arrays, uncertainty))
    return selection_score(rule, splits)


def _write(search: Search, results: Sequence[TrialResult], folder: Path) -> None:
    with (
        replacing(folder / "trials.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerows(_table(search, results))
    if not results or results[0].value is None:
        return
    with replacing(folder / "best.json") as temporary:
        text = json.dumps(_best(search, results), indent=1)
        temporary.write_text(text, encoding="utf-8")
    write_config(_config_file(search, results), config_path(folder))


def config_path(folder: Path) -> Path:
    """Return the path of the config of the best trial, in the folder of a search."""
    return folder / "best.toml"


def _config_file(search: Search, results: Sequence[TrialResult]) -> ConfigFile:
    """Return the options of the best trial and those that were fixed, as a config."""
    best, request = results[0], search.request
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
            "trials": len(results),
            "without_value": sum(result.value is None for result in results),
            "score": search.selection.label,
            "value": best.value,
            "trial": best.trial.number,
            "run": best.trial.spec.hash,
            "qualms": __version__,
        },
    )


def _table(search: Search, results: Sequence[TrialResult]) -> Iterator[list[Any]]:
    options = list(results[0].trial.options) if results else []
    yield ["trial", "selection", "value", *options, "run", "error"]
    for result in results:
        trial = result.trial
        yield [
            trial.number,
            search.selection.name,
            "" if result.value is None else result.value,
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
        "score": search.selection.label,
        "value": best.value,
        "trial": best.trial.number,
        "options": {**search.request.options, **best.trial.options},
        "command": shlex.join(search.command(best.trial.options)),
        "run": best.trial.spec.hash,
        "trials": len(results),
        "without_value": sum(result.value is None for result in results),
        "qualms": __version__,
    }


class _Journal:
    """A study of Optuna in a file, with the finished trials of a search.

    It is for people and for Optuna's own tools, and several processes may share it. A
    search goes on without it, since the folders of runs say what is done.
    """

    def __init__(self, search: Search, folder: Path) -> None:
        self._search = search
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "journal.log"
        try:
            with locked(lock_path(folder), wait=True):
                self._study = _study(search, path)
        except ValueError as error:  # a line was not written completely
            raise ValueError(
                f"{path} cannot be read ({error}); delete it and run again: trials that"
                " are done are kept in the folders of their runs"
            ) from error

    def record(self, result: TrialResult) -> None:
        """Add the result of a trial, unless it is there already."""
        from optuna.trial import TrialState, create_trial

        trial = result.trial
        state = TrialState.FAIL if result.value is None else TrialState.COMPLETE
        about = {"trial": trial.number, "run": trial.spec.hash}
        more = {"options": dict(trial.options), "error": result.error}
        ranges = self._search.ranges
        record = create_trial(
            state=state,
            value=result.value,
            params=dict(trial.values),
            distributions={name_of(each): distribution(each) for each in ranges},
            user_attrs={**about, **more},
        )
        with locked(lock_path(self._folder), wait=True):
            trials = self._study.get_trials(deepcopy=False, states=(state,))
            if not any(about.items() <= each.user_attrs.items() for each in trials):
                self._study.add_trial(record)


def _study(search: Search, path: Path) -> "Study":
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name=search.title,
        direction="maximize",
        load_if_exists=True,
    )
    if not study.user_attrs:
        study.set_user_attr("selection", search.selection.name)
        study.set_user_attr("score", search.selection.label)
    return study
