"""Importance of each searched option, by Optuna.

It is Optuna's functional ANOVA (Hutter et al., 2014): the share of the differences in
an objective that an option explains by itself, by a random forest of the trials.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from qualms.launch._objectives import directions
from qualms.launch._search import Search
from qualms.launch._trials import TrialResult, distribution, name_of

if TYPE_CHECKING:
    from optuna import Study

FEWEST = 10
"""Least number of trials with a value: a forest of fewer finds chance."""


class Importance(NamedTuple):
    """The share that an option explains of an objective."""

    objective: str
    option: str
    share: float


def importance_of(
    search: Search, results: Sequence[TrialResult]
) -> tuple[list[Importance], str]:
    """Return the importance of each option, or why it is not known."""
    valued = [result for result in results if result.values]
    if len(valued) < FEWEST:
        return [], (
            f"Importance needs at least {FEWEST} trials with a value, and this search"
            f" has {len(valued)}."
        )
    study = _study(search, valued)
    names = (search.selection.rule, *search.objectives)
    shares: list[Importance] = []
    for place, name in enumerate(names):
        if len({result.values[place] for result in valued}) == 1:
            return [], f"All trials have the same {name}, so that no option matters."
        shares += _shares(study, name, place)
    return shares, ""


def _study(search: Search, valued: Sequence[TrialResult]) -> "Study":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=directions(search))
    space = {name_of(each): distribution(each) for each in search.ranges}
    for result in valued:
        study.add_trial(
            optuna.trial.create_trial(
                values=list(result.values),
                params=dict(result.trial.values),
                distributions=space,
            )
        )
    return study


def _shares(study: "Study", name: str, place: int) -> list[Importance]:
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    shares = get_param_importances(
        study,
        evaluator=FanovaImportanceEvaluator(seed=0),
        target=lambda trial: trial.values[place],
    )
    return [Importance(name, option, float(share)) for option, share in shares.items()]
