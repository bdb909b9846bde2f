"""Which trials a search makes next.

An even search (`sobol`) knows all trials from the start. A search by the
tree-structured Parzen estimator (`tpe`; Bergstra et al., 2011) begins with the first
points of the even one and then proposes trials where earlier ones did well. A proposal
follows from the seed, its number and the results that were known when it was made. It
is kept in the file plan.json, so that it stays when a search goes on, when a trial that
failed is repaired, and when several processes share the search.
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
from qualms.benchmarks import Range
from qualms.launch.search import Search
from qualms.launch.trials import (
    Trial,
    Tried,
    distribution,
    name_of,
    trial_at,
    trials_of,
)
from qualms.processes import locked
from qualms.runs import lock_path

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

START = 4
"""Trials of a search by TPE that do not look at results. Optuna's default of 10 would
leave nothing to propose in the ten trials of Kirchhof et al. (2023)."""
Results = Mapping[int, Tried]
"""What came of trials, by their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The trials of a search, as far as they are known."""

    count: int
    """How many there will be."""
    known: Sequence[Trial]
    """Those that are known before any is made."""
    at_once: int
    """How many can be made at the same time."""
    ask: Callable[[Results], Sequence[Trial]]
    """The trials to make next; none when there are no more. Trials that are busy in
    another process may be among them again."""


def proposals_of(
    search: Search, count: int, *, out: Path, at_once: int = 1
) -> Proposals:
    """The first `count` trials of `search`.

    Args:
        search: what is searched.
        count: how many trials there shall be.
        out: where the results of searches are kept.
        at_once: how many trials TPE proposes before it looks at results again.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    if search.sampler == "sobol":
        trials = trials_of(search, count)
        return Proposals(
            count=count, known=trials, at_once=count, ask=partial(_left, trials)
        )
    begin = trials_of(search, min(count, START))
    path = search.folder(out) / "plan.json"
    return Proposals(
        count=count,
        known=(_planned(search, path) or begin)[:count],
        at_once=at_once,
        ask=partial(_next, search, count, path, at_once),
    )


def _left(trials: Sequence[Trial], found: Results) -> Sequence[Trial]:
    return [trial for trial in trials if trial.number not in found]


def _next(
    search: Search, count: int, path: Path, at_once: int, found: Results
) -> Sequence[Trial]:
    """What is planned and not tried yet, else new proposals."""
    with locked(lock_path(path.parent), wait=True):
        plan = _planned(search, path)
        if len(plan) < min(count, START):
            plan = trials_of(search, min(count, START))
            _write_plan(plan, path)
        if not (new := _left(plan[:count], found)):
            for _ in range(min(at_once, count - len(plan))):
                plan.append(_proposed(search, plan, found))
            _write_plan(plan, path)
            new = _left(plan[:count], found)
    if not new:
        return []
    return [tried.trial for tried in found.values() if tried.is_busy] + [*new]


def _planned(search: Search, path: Path) -> list[Trial]:
    """The trials in the file `path`, or none where there is no such file."""
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        points = [
            {name_of(r): _stated(r, row[name_of(r)]) for r in search.ranges}
            for row in rows
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); delete it and run again: trials that are"
            " done are kept in the folders of their runs"
        ) from error
    return [trial_at(search, number, values) for number, values in enumerate(points)]


def _stated(each: Range, value: Any) -> Any:
    """A value from a file; choices are found by their text."""
    if not each.choices:
        return float(value)
    known = {json.dumps(choice): choice for choice in each.choices}
    return known[json.dumps(value)]


def _write_plan(plan: Sequence[Trial], path: Path) -> None:
    with replacing(path) as temporary:
        text = json.dumps([dict(trial.values) for trial in plan], indent=1)
        temporary.write_text(text, encoding="utf-8")


def _proposed(search: Search, plan: Sequence[Trial], found: Results) -> Trial:
    """The trial after those of `plan`, by TPE.

    What is not known yet counts as bad, so that no other trial is made beside it.
    """
    import optuna

    number = len(plan)
    words = np.random.SeedSequence([search.base.seed, number]).generate_state(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=int(words[0]), n_startup_trials=0, constant_liar=True
        )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in plan:
        study.add_trial(_told(search, trial, found.get(trial.number)))
    space = {name_of(each): distribution(each) for each in search.ranges}
    return trial_at(search, number, study.ask(space).params)


def _told(search: Search, trial: Trial, tried: Tried | None) -> "FrozenTrial":
    """A trial as Optuna knows it.

    One that has no value is the worst: its training failed, or the rule of the
    selection left it out. If that said nothing, TPE would propose the same again.
    """
    from optuna.trial import TrialState, create_trial

    state, value = TrialState.RUNNING, None
    if tried is not None and not tried.is_busy:
        state = TrialState.COMPLETE
        value = -math.inf if tried.value is None else tried.value
    return create_trial(
        state=state,
        value=value,
        params=dict(trial.values),
        distributions={name_of(each): distribution(each) for each in search.ranges},
    )
