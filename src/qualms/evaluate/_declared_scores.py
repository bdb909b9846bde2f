"""Scores that say themselves where they belong: `tasks=...`, or from outside.

A parameter of such a score names an array of the predictions: `target`, `lower` or
`group`. Where an array has draws, the parameter gets their mean, and with `_draws` at
the end of its name all of them, items first: `probs` is (N, C), `probs_draws`
(N, M, C).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import Judgement, ScoreOptions, bound_entry, parameters
from qualms.evaluate.subsets import subsets
from qualms.predictions import Predictions
from qualms.shelf import find, names

_DRAWS = "_draws"


def with_declared_scores(
    judgement: Judgement, predictions: Predictions, options: ScoreOptions
) -> Judgement:
    """Return `judgement` with the entries of such scores, and what these lack."""
    chosen = _of_task(predictions.task) | {
        n: find("scores", n) for n in names("scores")
    }
    if not chosen:
        return judgement
    entries, notes = list(judgement.entries), list(judgement.notes)
    arrays = dict(_readable(predictions))
    items = subsets(predictions, by_group=options.by_group, seed=options.seed)
    for name, score in chosen.items():
        missing = [array for array in parameters(score) if array not in arrays]
        if missing:
            notes.append(
                f"{name} is left out: it reads {', '.join(missing)}, and these "
                f"predictions have {', '.join(predictions.arrays)}"
            )
            continue
        for subset, index in items.items():
            inputs = {array: arrays[array][index] for array in parameters(score)}
            entries.append(bound_entry(score, inputs, index, subset=subset))
    return replace(judgement, entries=tuple(entries), notes=tuple(notes))


def _of_task(task: str) -> dict[str, Callable[..., Any]]:
    """Return the package's own scores that name this task."""
    functions = {name: getattr(scores, name) for name in scores.__all__}
    return {
        name: value
        for name, value in functions.items()
        if hasattr(value, "__score__") and task in scores.about(value).tasks
    }


def _readable(predictions: Predictions) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield every array by the name of the parameter that reads it, items first."""
    for name, array in predictions.arrays.items():
        if name.startswith("extra/"):
            continue  # is kept, and never scored
        plain = name.replace("/", "_")
        if predictions.item_axis(name) == 1:
            yield plain, scores.mean_over_draws(array)
            yield plain + _DRAWS, np.moveaxis(array, 0, 1)
        else:
            yield plain, array
