"""The most certain mistakes and the most uncertain successes of predictions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.evaluate.chosen_uncertainty import chosen_uncertainty
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.referral import predicted_values, uncertainty_source, uncertainty_values
from qualms.shelf import traits

SHOWN = 12
"""Items of each kind."""
LONGEST = 100
"""Letters of names that are shown; they may be of any length."""
_WORST = 0.9
"""Share of absolute errors below those that count as mistakes, without intervals."""


class _Judged(NamedTuple):
    """Items of a known target; arrays are of them."""

    row: Index
    wrong: Flags
    right: Flags
    rule: str
    lines: Callable[[int], list[tuple[str, str]]]
    """Function from the place of an item to the lines that describe it."""


def telling_items(
    predictions: Predictions, pictures: Callable[[Sequence[int]], list[str]]
) -> dict[str, Any]:
    """Return the most certain mistakes and most uncertain successes for a page.

    Args:
        predictions: Predictions of classes or values, with a target.
        pictures: Returns the address of a picture of each of these rows, or "".

    Raises:
        ValueError: If the predictions have no known target or no uncertainty.
    """
    predictions.require_target()
    name, uncertainty = item_uncertainty(predictions)
    index = known_items(predictions)
    if not len(index):
        raise ValueError("no item has a known target")
    judged = (_classes if "probabilities" in traits(predictions.task) else _values)(
        predictions, index
    )
    order = np.argsort(uncertainty[index], kind="stable")
    certain = [place for place in order if judged.wrong[place]][:SHOWN]
    uncertain = [place for place in order[::-1] if judged.right[place]][:SHOWN]
    places = [*certain, *uncertain]
    number_of = {place: number for number, place in enumerate(places)}

    def tile(place: int) -> dict[str, Any]:
        row = int(judged.row[place])
        below = float(np.mean(uncertainty[index] < uncertainty[row]))
        return {
            "name": item_name(predictions, row),
            "right": bool(judged.right[place]),
            "picture": number_of[place],
            "lines": [
                *judged.lines(place),
                (name, shown_number(uncertainty[row])),
                ("more certain", f"{100 * below:.0f}\u00a0% of items"),
            ],
        }

    number, wrong = len(index), int(judged.wrong.sum())
    return {
        "about": f"{judged.rule} {wrong:,} of {number:,} items are mistakes. Items are"
        f" ordered by {name}.",
        "pictures": pictures([int(judged.row[place]) for place in places]),
        "groups": [
            {
                "title": "Most certain mistakes",
                "tiles": [tile(place) for place in certain],
                "empty": "No item is a mistake.",
            },
            {
                "title": "Most uncertain successes",
                "tiles": [tile(place) for place in uncertain],
                "empty": "No item is a success.",
            },
        ],
    }


def item_uncertainty(predictions: Predictions) -> tuple[str, Array]:
    """Return the name and values of the uncertainty that items are ordered by.

    It is the one that scores judge: that of the header, else the first of the file's
    own, else the usual one of the task.

    Raises:
        LookupError: If the one that the header names is not there.
        ValueError: If there is none.
    """
    if "vectors" in traits(predictions.task):
        own = predictions.named("uncertainty")
        name = chosen_uncertainty(predictions, own)
        return name, np.asarray(own[name], np.float64)
    source = uncertainty_source(predictions, None)
    return source.name, uncertainty_values(predictions, source)


def item_name(predictions: Predictions, row: int) -> str:
    """Return the name of an item; its row where the file has no names."""
    names = predictions.get("item")
    return f"row {row}" if names is None else _cut(str(names[row]))


def item_marks(predictions: Predictions, row: int) -> list[tuple[str, str]]:
    """Return what the file says of an item besides its target."""
    marks = []
    for name in ("group", "cluster"):
        values = predictions.get(name)
        if values is not None:
            marks.append((name, _cut(str(values[row]))))
    shifted = predictions.get("shifted")
    if shifted is not None and shifted.any() and not shifted.all():
        marks.append(("shifted", "yes" if shifted[row] else "no"))
    return marks


def shown_number(value: float) -> str:
    r"""Return a number in three digits, with a true minus.

    >>> shown_number(-0.12345) == "\u22120.123", shown_number(float("nan")) == "\u2013"
    (True, True)
    """
    return f"{value:.3g}".replace("-", "\u2212") if np.isfinite(value) else "\u2013"


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}\u2026"


def _classes(predictions: Predictions, index: Index) -> _Judged:
    probs = scores.mean_probabilities(predictions.arrays["probs"])[index]
    target = predictions.arrays["target"][index]
    predicted = predicted_values(predictions)[index]
    right = scores.correct(probs, target).astype(np.bool_)
    name = predictions.header.class_name

    def lines(place: int) -> list[tuple[str, str]]:
        best = int(predicted[place])
        share = probs[place, best]
        return [
            ("target", name(int(target[place]))),
            ("predicted", f"{name(best)} ({100 * share:.1f}\u00a0%)"),
            *item_marks(predictions, int(index[place])),
        ]

    rule = "A mistake is an item whose most probable class is not its target."
    return _Judged(index, ~right, right, rule, lines)


def _values(predictions: Predictions, index: Index) -> _Judged:
    target: NDArray[np.float64] = predictions.arrays["target"][index]
    predicted = predicted_values(predictions)[index]
    error = np.abs(predicted - target)
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is not None and upper is not None:
        right = (lower[index] <= target) & (target <= upper[index])
        wrong = ~right
        rule = "A mistake is an item whose interval does not hold its target."
    else:
        wrong = (error > 0) & (error >= np.quantile(error, _WORST))
        right = (error <= np.median(error)) & ~wrong
        rule = (
            "A mistake is an item whose absolute error is among the largest tenth, a"
            " success one whose error is at most the median."
        )

    def lines(place: int) -> list[tuple[str, str]]:
        row = int(index[place])
        interval = []
        if lower is not None and upper is not None:
            ends = f"{shown_number(lower[row])} to {shown_number(upper[row])}"
            interval.append(("interval", ends))
        return [
            ("target", shown_number(target[place])),
            ("predicted", shown_number(float(predicted[place]))),
            *interval,
            *item_marks(predictions, row),
        ]

    return _Judged(index, wrong, right, rule, lines)
