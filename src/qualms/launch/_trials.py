"""The trials of a search: points of its ranges, each an ordinary run."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from qualms.launch._search import Search
from qualms.launch.local import RunOutcome
from qualms.spec import Part, RunSpec
from qualms.study import Range

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DIGITS = 6
"""Significant digits of a value: what is printed is exactly what was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One configuration of a search."""

    number: int
    values: Mapping[str, Any]
    """The drawn values, by the name of their range."""
    options: Mapping[str, Any]
    """The options that these values set, as for `-o`."""
    spec: RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """A trial, and what came of it."""

    trial: Trial
    outcome: RunOutcome
    value: float | None
    """Score by the search's selection, larger is better; None where it has none."""
    error: str
    """Why it has no score, in a sentence."""
    others: tuple[float, ...] = ()
    """Scores by the further objectives of the search; () where it has no value."""

    @property
    def values(self) -> tuple[float, ...]:
        """Scores by all objectives; () where it has none."""
        return () if self.value is None else (self.value, *self.others)

    @property
    def is_busy(self) -> bool:
        """True if another process makes the trial."""
        return self.outcome.status == "busy"

    @property
    def is_pruned(self) -> bool:
        """True if the pruner of the search stopped the trial."""
        return self.outcome.status == "pruned"


def trials_of(search: Search, count: int) -> list[Trial]:
    """Return the first `count` points of the search's scrambled Sobol sequence.

    They depend only on the seed, so a longer search begins like a shorter one.
    Any 2^k of them that begin at a multiple of 2^k lie evenly in every range.
    """
    if count < 1:
        raise ValueError(f"trials must be at least 1, got {count}")
    check_optuna()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {name_of(each): distribution(each) for each in search.ranges}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.QMCSampler(scramble=True, seed=search.base.seed)
    study = optuna.create_study(sampler=sampler)
    # The sampler takes the ranges from the first trial, and would draw that at random.
    first = {name_of(each): _any_of(each) for each in search.ranges}
    study.add_trial(
        optuna.trial.create_trial(params=first, distributions=space, value=0.0)
    )
    points = (study.ask(space).params for _ in range(count))
    return [trial_at(search, number, point) for number, point in enumerate(points)]


def check_optuna() -> None:
    """Raise if Optuna is not installed."""
    if find_spec("optuna") is None:
        raise LookupError(
            "searching needs Optuna, which is not installed; install it with pip"
            " install 'qualms-bench[tune]'"
        )


def name_of(each: Range) -> str:
    """Return the name of a range in a study."""
    return f"1 - {each.option}" if each.complement else each.option


def distribution(each: Range) -> "BaseDistribution":
    """Return a range as a distribution of Optuna."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if each.choices:
        return CategoricalDistribution(each.choices)
    return FloatDistribution(each.low, each.high, log=each.log)


def trial_at(search: Search, number: int, point: Mapping[str, Any]) -> Trial:
    """Return the trial at a point, whose values are by the name of their range."""
    values = {
        name_of(each): _rounded(each, point[name_of(each)]) for each in search.ranges
    }
    options = {
        each.option: _option(each, values[name_of(each)]) for each in search.ranges
    }
    options["select_by"] = search.selection.rule
    return Trial(
        number=number,
        values=values,
        options=options,
        spec=_with(search.base, options, search.judged_on),
    )


def _any_of(each: Range) -> Any:
    return each.choices[0] if each.choices else each.low


def _rounded(each: Range, value: Any) -> Any:
    if each.choices:
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), each.low), each.high)


def _option(each: Range, value: Any) -> Any:
    return round(1 - value, 2 * DIGITS) if each.complement else value


def _with(
    base: RunSpec, options: Mapping[str, Any], splits: tuple[str, ...]
) -> RunSpec:
    """Return `base` with other options, predicting `splits`: no test item is seen."""
    loop = {name: value for name, value in options.items() if "." not in name}
    of_method = {
        name.removeprefix("method."): value
        for name, value in options.items()
        if "." in name
    }
    method = Part(name=base.method.name, options={**base.method.options, **of_method})
    return replace(
        base, training={**base.training, **loop}, method=method, splits=splits
    )
