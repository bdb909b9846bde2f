"""Scores from outside the package, judged like the package's own.

A parameter of such a score names an array of the predictions: `target`, `lower` or
`group`. Where an array has draws, the parameter gets their mean, and with `_draws` at
the end of its name all of them, items first: `probs` is (N, C), `probs_draws`
(N, M, C). Intervals come from replicates.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.entry import Judgement, ScoreOptions, entry_of
from qualms.evaluate.subsets import subsets
from qualms.predictions import Predictions
from qualms.scores import mean_over_draws
from qualms.shelf import find, names

_DRAWS = "_draws"


def with_outside_scores(
    judgement: Judgement, predictions: Predictions, options: ScoreOptions
) -> Judgement:
    """`judgement` with the entries of scores from outside, and what they lack."""
    if not names("scores"):
        return judgement
    entries, notes = list(judgement.entries), list(judgement.notes)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    for name in names("scores"):
        score = find("scores", name)
        arrays, missing = _arguments(score, predictions)
        if missing:
            notes.append(
                f"{name} is left out: it reads {', '.join(missing)}, and these "
                f"predictions have {', '.join(predictions.arrays)}"
            )
            continue
        for subset, index in chosen.items():
            here = [array[index] for array in arrays]
            entries.append(entry_of(score, here, index, subset=subset))
    return replace(judgement, entries=tuple(entries), notes=tuple(notes))


def _arguments(
    score: Callable[..., Any], predictions: Predictions
) -> tuple[list[NDArray[Any]], list[str]]:
    """The arrays that a score reads, items first, and those that are not there."""
    known = dict(_readable(predictions))
    asked = [
        parameter.name
        for parameter in inspect.signature(score).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    missing = [name for name in asked if name not in known]
    return [known[name] for name in asked if name in known], missing


def _readable(predictions: Predictions) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array by the name of the parameter that reads it, items first."""
    for name, array in predictions.arrays.items():
        if name.startswith("extra/"):
            continue  # is kept, and never scored
        plain = name.replace("/", "_")
        if predictions.item_axis(name) == 1:
            yield plain, mean_over_draws(array)
            yield plain + _DRAWS, np.moveaxis(array, 0, 1)
        else:
            yield plain, array
