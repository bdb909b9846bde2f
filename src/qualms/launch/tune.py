"""Searches the options of a method; trials are judged on validation items.

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
from qualms.launch.here import RunOutcome
from qualms.launch.proposals import Proposals, proposals_of
from qualms.launch.search import Search, search_of
from qualms.launch.trials import Trial, Tried, distribution, name_of, trials_of
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
    "Tried",
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
) -> Generator[Tried, None, None]:
    """Make trials, and yield the result of each; failed ones do not stop the others.

    At the end the table of trials and the best configuration are written to the folder
    of the search, as trials.csv and best.json.

    Args:
        search: what is searched.
        proposals: its trials, from `proposals_of`.
        launch: makes the runs, below `out`.
        out: where runs and the results of the search are kept.
    """
    folder = search.folder(out)
    journal = _Journal(search, folder)
    found: dict[int, Tried] = {}
    while trials := proposals.ask(found):
        for tried in _made(search, trials, launch):
            found[tried.trial.number] = tried
            if not tried.is_busy:
                journal.record(tried)
                yield tried
    yield from (tried for tried in found.values() if tried.is_busy)
    _write(search, ranked_trials([*found.values()]), folder)


def _made(search: Search, trials: Sequence[Trial], launch: Launch) -> Iterator[Tried]:
    """Make `trials`; those that come out alike share their run."""
    by_run: dict[str, list[Trial]] = {}
    for trial in trials:
        by_run.setdefault(trial.spec.hash, []).append(trial)
    with closing(launch([trial.spec for trial in trials])) as outcomes:
        for outcome in outcomes:
            for trial in by_run[outcome.spec.hash]:
                yield _judged(search, trial, outcome)


def ranked_trials(found: Sequence[Tried]) -> list[Tried]:
    """Trials from the best to the worst, then those without a value."""

    def place(tried: Tried) -> tuple[bool, float, int]:
        return tried.value is None, -(tried.value or 0.0), tried.trial.number

    return sorted(found, key=place)


def _judged(search: Search, trial: Trial, outcome: RunOutcome) -> Tried:
    value, error = None, outcome.error
    if outcome.status in ("done", "skipped"):
        try:
            value = _value(search, trial, outcome.folder)
        except (PredictionsError, OSError) as wrong:
            error = str(wrong)
        if value is not None and math.isnan(value):
            value, error = None, f"{search.selection.rule} is not defined for it"
    elif outcome.status == "busy":
        error = "another process makes it; run again to see it"
    return Tried(trial=trial, outcome=outcome, value=value, error=error)


def _value(search: Search, trial: Trial, folder: Path) -> float:
    from qualms.training.selection import predicted_split, selection_score

    rule, judged = search.selection.rule, []
    uncertainty = str(trial.spec.training.get("select_uncertainty", ""))
    for split in search.judged_on:
        arrays = read(stored(folder, split) or split_stem(folder, split)).arrays
        judged.append(predicted_split(rule, arrays, uncertainty))
    return selection_score(rule, judged)


def _write(search: Search, found: Sequence[Tried], folder: Path) -> None:
    with (
        replacing(folder / "trials.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerows(_table(search, found))
    if not found or found[0].value is None:
        return
    with replacing(folder / "best.json") as temporary:
        text = json.dumps(_best(search, found), indent=1)
        temporary.write_text(text, encoding="utf-8")


def _table(search: Search, found: Sequence[Tried]) -> Iterator[list[Any]]:
    options = list(found[0].trial.options) if found else []
    yield ["trial", "selection", "value", *options, "run", "error"]
    for tried in found:
        trial, value = tried.trial, "" if tried.value is None else tried.value
        given = [trial.options[name] for name in options]
        yield [
            trial.number,
            search.selection.name,
            value,
            *given,
            trial.spec.hash,
            tried.error,
        ]


def _best(search: Search, found: Sequence[Tried]) -> dict[str, Any]:
    best = found[0]
    return {
        "benchmark": search.base.benchmark,
        "variant": search.variant,
        "method": search.method,
        "preset": search.wish.preset,
        "selection": search.selection.name,
        "score": search.selection.label,
        "value": best.value,
        "trial": best.trial.number,
        "options": {**search.wish.options, **best.trial.options},
        "command": shlex.join(search.command(best.trial.options)),
        "run": best.trial.spec.hash,
        "trials": len(found),
        "without_value": sum(tried.value is None for tried in found),
        "qualms": __version__,
    }


class _Journal:
    """The finished trials of a search, as a study of Optuna in a file.

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

    def record(self, tried: Tried) -> None:
        """Add the result of a trial, unless it is there already."""
        from optuna.trial import TrialState, create_trial

        state = TrialState.FAIL if tried.value is None else TrialState.COMPLETE
        about = {"trial": tried.trial.number, "run": tried.trial.spec.hash}
        told = {"options": dict(tried.trial.options), "error": tried.error}
        ranges = self._search.ranges
        made = create_trial(
            state=state,
            value=tried.value,
            params=dict(tried.trial.values),
            distributions={name_of(each): distribution(each) for each in ranges},
            user_attrs={**about, **told},
        )
        with locked(lock_path(self._folder), wait=True):
            known = self._study.get_trials(deepcopy=False, states=(state,))
            if not any(about.items() <= each.user_attrs.items() for each in known):
                self._study.add_trial(made)


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
