"""The trials that a search makes next.

An even search (`sobol`) knows all trials from the start. A search by the
tree-structured Parzen estimator (`tpe`; Bergstra et al., 2011) begins with the first
points of the even one and then proposes trials where earlier ones did well. So does
NSGA-II (`nsga2`; Deb et al., 2002), generation by generation. A proposal follows from
the seed, its number and the results that were known when it was made. It is kept in the
file plan.json, so that it stays when a search goes on, when a trial that failed is
repaired, and when several processes share the search.
"""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qualms.atomic import replacing
from qualms.launch._objectives import directions
from qualms.launch._search import Search
from qualms.launch._trials import (
    Trial,
    TrialResult,
    distribution,
    name_of,
    trial_at,
    trials_of,
)
from qualms.processes import locked
from qualms.regular import UNREADABLE, read_file
from qualms.runs import lock_path
from qualms.study import Range

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

POPULATION = 8
"""Trials of a generation of NSGA-II. Optuna's default of 50 is more than most searches
have in all."""
START = 4
"""Trials of a search by TPE that do not look at results. Optuna's default of 10 would
leave nothing to propose in the ten trials of Kirchhof et al. (2023)."""
TrialResults = Mapping[int, TrialResult]
"""Results of trials, by the number of the trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The trials of a search: the first ones, and a function that gives the next."""

    count: int
    """Number of all trials."""
    first: Sequence[Trial]
    """Trials that are planned before any is made."""
    at_once: int
    """Number of trials that can be made at the same time."""
    ask: Callable[[TrialResults], Sequence[Trial]]
    """Returns the trials to make next, none at the end. Trials that another process
    makes may be among them again."""


def proposals_of(
    search: Search, count: int, *, out: Path, at_once: int = 1
) -> Proposals:
    """Return the first `count` trials of a search.

    Args:
        search: The search.
        count: Number of trials.
        out: Folder of the results of searches.
        at_once: Number of trials that TPE proposes before it uses new results. NSGA-II
            proposes a generation at once.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    if search.sampler == "sobol":
        trials = trials_of(search, count)
        return Proposals(
            count=count, first=trials, at_once=count, ask=partial(_untried, trials)
        )
    evenly = trials_of(search, min(count, _start(search)))
    path = search.folder(out) / "plan.json"
    return Proposals(
        count=count,
        first=(_planned(search, path) or evenly)[:count],
        at_once=POPULATION if search.sampler == "nsga2" else at_once,
        ask=partial(_next, search, count, path, at_once),
    )


def _start(search: Search) -> int:
    """Return how many trials do not look at results."""
    return POPULATION if search.sampler == "nsga2" else START


def _untried(trials: Sequence[Trial], results: TrialResults) -> Sequence[Trial]:
    return [trial for trial in trials if trial.number not in results]


def _next(
    search: Search, count: int, path: Path, at_once: int, results: TrialResults
) -> Sequence[Trial]:
    """Return the planned trials that are not tried yet, else new proposals."""
    with locked(lock_path(path.parent), wait=True):
        plan = _planned(search, path)
        start = min(count, _start(search))
        if len(plan) < start:
            plan = trials_of(search, start)
            _write_plan(plan, path)
        if not (new := _untried(plan[:count], results)):
            if search.sampler == "nsga2":  # the rest of a generation
                at_once = POPULATION - len(plan) % POPULATION
            for _ in range(min(at_once, count - len(plan))):
                plan.append(_proposed(search, plan, results))
            _write_plan(plan, path)
            new = _untried(plan[:count], results)
    if not new:
        return []
    return [result.trial for result in results.values() if result.is_busy] + [*new]


def _planned(search: Search, path: Path) -> list[Trial]:
    """Read the trials in the file `path`; none where there is no such file."""
    if not path.exists():
        return []
    try:
        rows = json.loads(read_file(path))
        points = [
            {name_of(r): _parsed(r, row[name_of(r)]) for r in search.ranges}
            for row in rows
        ]
    except UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read ({error}); delete it and run again: trials that are"
            " done are kept in the folders of their runs"
        ) from error
    return [trial_at(search, number, values) for number, values in enumerate(points)]


def _parsed(each: Range, value: Any) -> Any:
    """Parse a value from a file; choices are found by their text."""
    if not each.choices:
        return float(value)
    choices = {json.dumps(choice): choice for choice in each.choices}
    return choices[json.dumps(value)]


def _write_plan(plan: Sequence[Trial], path: Path) -> None:
    with replacing(path) as temporary:
        text = json.dumps([dict(trial.values) for trial in plan], indent=1)
        temporary.write_text(text, encoding="utf-8")


def _proposed(search: Search, plan: Sequence[Trial], results: TrialResults) -> Trial:
    """Propose the trial after those of `plan`, by TPE or NSGA-II.

    Trials without a result yet count as bad, so that no other is made beside them.
    """
    import optuna

    number = len(plan)
    words = np.random.SeedSequence([search.base.seed, number]).generate_state(1)
    study = optuna.create_study(
        directions=directions(search), sampler=_sampler(search, int(words[0]))
    )
    worst = _worst(search, results)
    for trial in plan:
        study.add_trial(_frozen(search, trial, results.get(trial.number), worst))
    space = {name_of(each): distribution(each) for each in search.ranges}
    return trial_at(search, number, study.ask(space).params)


def _sampler(search: Search, seed: int) -> "BaseSampler":
    import optuna

    if search.sampler == "nsga2":
        return optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=0, constant_liar=True
        )


def _worst(search: Search, results: TrialResults) -> list[float]:
    """Return what counts as the values of a trial without any.

    Among several objectives it is the worst that any trial has reached in each: the
    front of trials has no area with infinite ones, and a generation no distances.
    """
    if not search.objectives and search.sampler == "tpe":
        return [-math.inf]
    valued = [result.values for result in results.values() if result.values]
    ways = [min if way == "maximize" else max for way in directions(search)]
    columns = zip(*valued, strict=True) if valued else ([0.0] for _ in ways)
    return [worse(column) for worse, column in zip(ways, columns, strict=True)]


def _frozen(
    search: Search, trial: Trial, result: TrialResult | None, worst: Sequence[float]
) -> "FrozenTrial":
    """Return a trial as a record of Optuna.

    One without a value is the worst: its training failed, or the rule of the selection
    left it out. If it counted for nothing, TPE would propose the same again.
    """
    from optuna.trial import TrialState, create_trial

    state, values, more = TrialState.RUNNING, None, {}
    if search.sampler == "nsga2":
        # What another process makes counts as the worst of its generation.
        generation = trial.number // POPULATION
        more = {"NSGAIISampler:generation": generation}
        state, values = TrialState.COMPLETE, list(worst)
    if result is not None and not result.is_busy:
        state = TrialState.COMPLETE
        values = list(result.values or worst)
    return create_trial(
        state=state,
        values=values,
        params=dict(trial.values),
        distributions={name_of(each): distribution(each) for each in search.ranges},
        system_attrs=more,
    )
