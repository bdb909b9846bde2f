"""Scores that declare their tasks themselves: `tasks=...`, or scores from outside.

A parameter of such a score names an array of the predictions: `target`, `lower` or
`group`. Where an array has draws, the parameter gets their mean, and with `_draws` at
the end of its name all of them, items first: `probs` is (N, C), `probs_draws`
(N, M, C).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import (
    Judgement,
    ScoreOptions,
    bound_entry,
    parameters,
    with_known_influence,
)
from qualms.evaluate.subsets import subsets
from qualms.predictions import Predictions
from qualms.shelf import OutsidePart, PartError, find, outside_parts, refused
from qualms.wording import error_words

_DRAWS = "_draws"
_Score = Callable[..., Any]


class _OutsideScores(NamedTuple):
    """Scores from outside by name, and notes on those that are left out."""

    scores: dict[str, _Score]
    notes: list[str]


def with_declared_scores(
    judgement: Judgement, predictions: Predictions, options: ScoreOptions
) -> Judgement:
    """Add the entries of such scores to `judgement`, and notes on missing arrays.

    Raises:
        PartError: If a score that the user included fails. One of an installed package
            is left out, with a note.
    """
    outside = _from_outside()
    chosen = _of_task(predictions.task) | outside.scores
    if not chosen and not outside.notes:
        return judgement
    entries, notes = list(judgement.entries), [*judgement.notes, *outside.notes]
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
        try:
            for subset, index in items.items():
                inputs = {array: arrays[array][index] for array in parameters(score)}
                entry = bound_entry(score, inputs, index, subset=subset)
                if name in outside.scores:
                    entry = _called(name, with_known_influence, entry)
                entries.append(entry)
        except PartError as error:
            _raise_unless_installed(outside_parts("scores")[name], error)
            entries = [entry for entry in entries if entry.score is not score]
            notes.append(f"{error}; it is left out")
    return replace(judgement, entries=tuple(entries), notes=tuple(notes))


def _from_outside() -> _OutsideScores:
    """Return the scores from outside that can be loaded."""
    functions: dict[str, _Score] = {}
    notes = list(refused("scores"))
    for name, part in outside_parts("scores").items():
        try:
            functions[name] = _checked(name, _declared(part))
        except PartError as error:
            _raise_unless_installed(part, error)
            notes.append(f"{error}; it is left out")
    return _OutsideScores(functions, notes)


def _declared(part: OutsidePart) -> _Score:
    score: _Score = find("scores", part.name)
    if not hasattr(score, "__score__"):
        raise PartError(
            f"score {part.name!r} of {part.where} is not declared by @as_score"
        )
    return score


def _raise_unless_installed(part: OutsidePart, error: PartError) -> None:
    if not part.installed:
        raise error


def _checked(name: str, score: _Score) -> _Score:
    """Wrap a score from outside: its errors name it, and it must return a number."""

    @wraps(score)
    def checked(*arrays: Any) -> float:
        return _number(name, _called(name, score, *arrays))

    return checked


def _called(name: str, function: Callable[..., Any], *arrays: Any) -> Any:
    try:
        return function(*arrays)
    except KeyboardInterrupt:
        raise
    # Foreign code may raise any error, and may exit the program.
    except BaseException as error:
        raise PartError(f"score {name!r}: {error_words(error)}") from error


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    kind = type(value).__name__
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    raise PartError(f"score {name!r} must return a number, got {kind}{shape}")


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
            continue  # such arrays are stored, but never scored
        plain = name.replace("/", "_")
        if predictions.item_axis(name) == 1:
            yield plain, scores.mean_over_draws(array)
            yield plain + _DRAWS, np.moveaxis(array, 0, 1)
        else:
            yield plain, array
