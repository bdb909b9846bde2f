"""Further objectives of a search, beside the rule of its selection.

They are scores of the same predictions. A search by several objectives has no best
trial, but a front: the trials that no other is better than in one objective without
being worse in another.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from qualms.launch._search import Search
from qualms.launch._trials import TrialResult
from qualms.report.search_report import ObjectiveFacts

if TYPE_CHECKING:
    from qualms.training.selection import PredictedSplit, RetrievedSplit

Direction = Literal["maximize", "minimize"]


class SearchObjective(NamedTuple):
    """A score of predicted classes, and whether larger is better."""

    direction: Direction
    score: Callable[..., float]


def _objective(name: str) -> SearchObjective:
    from qualms import scores  # compiles kernels, which few searches need

    return {
        "nll": SearchObjective("minimize", scores.nll),
        "brier": SearchObjective("minimize", scores.brier),
        "ece": SearchObjective("minimize", scores.ece),
        "accuracy": SearchObjective("maximize", scores.accuracy),
    }[name]


def directions(search: Search) -> list[Direction]:
    """Return the direction of every objective; the first is the selection's rule."""
    return ["maximize", *(_objective(name).direction for name in search.objectives)]


def objective_facts(search: Search) -> tuple[ObjectiveFacts, ...]:
    """Return every objective with its words, as pages show it."""
    from qualms import scores

    first = ObjectiveFacts(search.selection.rule, search.selection.label, "higher")
    return (
        first,
        *(
            ObjectiveFacts(name, about.label, about.better)
            for name in search.objectives
            if (about := scores.about(_objective(name).score))
        ),
    )


def objective_scores(
    search: Search, splits: Sequence["PredictedSplit | RetrievedSplit"]
) -> tuple[float, ...]:
    """Return the further objectives on all items that trials are judged on."""
    if not search.objectives:
        return ()
    from qualms.training.selection import PredictedSplit

    predicted = [split for split in splits if isinstance(split, PredictedSplit)]
    probs = np.concatenate([s.probs.astype(np.float64).mean(0) for s in predicted])
    target = np.concatenate([split.target for split in predicted])
    return tuple(_objective(n).score(probs, target) for n in search.objectives)


def front_of(search: Search, results: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the trials that no other trial dominates, by Optuna, in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=directions(search))
    valued = [result for result in results if result.values]
    for result in valued:
        study.add_trial(optuna.trial.create_trial(values=list(result.values)))
    best = {trial.number for trial in study.best_trials} if valued else set()
    return [result for number, result in enumerate(valued) if number in best]
