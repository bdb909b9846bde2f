"""The study of Optuna that a search is kept in: the only record of its trials.

A trial is asked of the study, made as an ordinary run, and told to it. Trials are
proposed where earlier ones did well, by the tree-structured Parzen estimator (Bergstra
et al., 2011). A proposal follows from the seed, its number and what the study held. A
trial without a value stays open: it counts as bad, so that no other is made beside it,
and the next command makes it again.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qualms.launch._search import Search
from qualms.processes import locked
from qualms.report.benchmark_report import versions
from qualms.report.search_report import FILE, unreadable
from qualms.runs import lock_path
from qualms.spec import Part, RunSpec
from qualms.study import Range

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

START = 4
"""Trials that do not look at results. Optuna's default of 10 would leave nothing to
propose in the ten trials of Kirchhof et al. (2023)."""
DIGITS = 6
"""Significant digits of a value: what is printed is exactly what was run."""
SECONDS = 60.0
"""Seconds for which a write waits for another program that reads the study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One configuration of a search."""

    number: int
    options: Mapping[str, Any]
    """The options that it sets, as for `-o`."""
    spec: RunSpec


def check_optuna() -> None:
    """Raise if Optuna is not installed."""
    if find_spec("optuna") is None:
        raise LookupError(
            "searching needs Optuna, which is not installed; install it with pip"
            " install 'qualms-bench[tune]'"
        )


class SearchStudy:
    """The study in the folder of a search, which several processes may share."""

    def __init__(self, search: Search, folder: Path) -> None:
        check_optuna()
        self._search, self._folder = search, folder
        self._study: Study | None = None
        folder.mkdir(parents=True, exist_ok=True)
        with self._opened() as study:
            if "search" not in study.user_attrs:
                study.set_user_attr("search", _facts(search))

    def open_trials(self) -> list[Trial]:
        """Return the trials that have no value yet and were not pruned."""
        return [trial for trial, state in self._trials() if state == "RUNNING"]

    def propose(self, most: int, *, count: int) -> list[Trial]:
        """Propose up to `most` trials, as far as there are fewer than `count`."""
        import optuna

        with self._opened() as study:
            numbers = range(len(study.trials), count)[:most]
            new = list(proposed(self._search, study.trials, numbers))
            for trial, params in new:
                study.add_trial(
                    optuna.trial.create_trial(
                        state=optuna.trial.TrialState.RUNNING,
                        params=params,
                        distributions=_space(self._search),
                        user_attrs={
                            "options": dict(trial.options),
                            "run": trial.spec.hash,
                        },
                    )
                )
        return [trial for trial, _ in new]

    def record(
        self, trial: Trial, values: Sequence[float], error: str, *, pruned: bool
    ) -> None:
        """Tell how a trial ended; one without values stays open unless it was pruned.

        Losses of a pruned trial are in its log: TPE would take them for its values.
        """
        import optuna
        from optuna.trial import TrialState

        with self._opened() as study:
            stored = study.trials[trial.number]
            if stored.state != TrialState.RUNNING:  # another process told it
                return
            optuna.trial.Trial(study, stored._trial_id).set_user_attr("error", error)
            if values:
                study.tell(trial.number, list(values))
            elif pruned:
                study.tell(trial.number, state=TrialState.PRUNED)

    @property
    def runs(self) -> tuple[str, ...]:
        """Hashes of the runs of all trials, in the order of the trials."""
        return tuple(trial.spec.hash for trial, _ in self._trials())

    def _trials(self) -> list[tuple[Trial, str]]:
        """Return all trials with their states, as Optuna calls them."""
        with self._opened() as study:
            trials = [(t.number, t.params, t.state.name) for t in study.trials]
        return [(_trial_at(self._search, n, p), state) for n, p, state in trials]

    @contextmanager
    def _opened(self) -> Iterator["Study"]:
        """Open the study for one process at a time; damage ends in a sentence."""
        import optuna
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        path = self._folder / FILE
        try:
            with locked(lock_path(self._folder), wait=True):
                self._study = self._study or optuna.create_study(
                    storage=optuna.storages.RDBStorage(
                        f"sqlite:///{path.resolve()}",
                        engine_kwargs={"connect_args": {"timeout": SECONDS}},
                    ),
                    study_name=self._search.title,
                    directions=self._search.directions,
                    load_if_exists=True,
                )
                yield self._study
        except (RuntimeError, StorageInternalError, SQLAlchemyError) as error:
            raise ValueError(unreadable(path, error)) from error


def proposed(
    search: Search, trials: Sequence["FrozenTrial"], numbers: Iterable[int]
) -> Iterator[tuple[Trial, dict[str, Any]]]:
    """Yield trials of these numbers, which follow `trials`, with their parameters."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # A copy is asked, so that a kill leaves no half of a trial in the study.
    copy = optuna.create_study(directions=search.directions)
    copy.add_trials(trials)
    for number in numbers:
        copy.sampler = _sampler(search.base.seed, number)
        params = copy.ask(_space(search)).params
        yield _trial_at(search, number, params), params


def _facts(search: Search) -> dict[str, Any]:
    """Return what pages say of a search, beside its trials."""
    return {
        "title": search.title,
        "benchmark": search.base.benchmark,
        "variant": search.variant,
        "method": search.method,
        "preset": search.request.preset,
        "selection": search.selection.name,
        "items": search.selection.items,
        "pruner": search.pruner,
        "seed": search.base.seed,
        "objectives": search.objective_facts(),
        "simulated": search.simulated,
        "versions": versions(),
    }


def _sampler(seed: int, number: int) -> Any:
    import optuna

    words = np.random.SeedSequence([seed, number]).generate_state(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=int(words[0]),
            n_startup_trials=0 if number >= START else START,
            constant_liar=True,
        )


def _name(each: Range) -> str:
    """Return the name of a range in a study."""
    return f"1 - {each.option}" if each.complement else each.option


def _space(search: Search) -> dict[str, Any]:
    """Return the ranges of a search as distributions of Optuna, by their names."""
    return {_name(each): _values(each) for each in search.ranges}


def _values(each: Range) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if each.choices:
        return CategoricalDistribution(each.choices)
    return FloatDistribution(each.low, each.high, log=each.log)


def _trial_at(search: Search, number: int, point: Mapping[str, Any]) -> Trial:
    """Return the trial at a point, whose values are by the name of their range."""
    options = {r.option: _option(r, point[_name(r)]) for r in search.ranges}
    options["select_by"] = search.selection.rule
    base = search.base
    loop = {name: value for name, value in options.items() if "." not in name}
    of_method = {
        name.removeprefix("method."): value
        for name, value in options.items()
        if "." in name
    }
    method = Part(name=base.method.name, options={**base.method.options, **of_method})
    spec = replace(
        base,
        training={**base.training, **loop},
        method=method,
        splits=search.judged_on,  # no test item is seen
    )
    return Trial(number=number, options=options, spec=spec)


def _option(each: Range, value: Any) -> Any:
    if each.choices:
        return value
    rounded = min(max(float(f"{value:.{DIGITS}g}"), each.low), each.high)
    return round(1 - rounded, 2 * DIGITS) if each.complement else rounded
