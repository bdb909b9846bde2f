"""Which uncertainty a plan rests on, and how it comes out of predictions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.draws import decomposed
from qualms.predictions import Predictions, pool
from qualms.wording import suggest

Array = NDArray[np.float64]
Index = NDArray[np.int64]

COMPUTED: Mapping[str, Mapping[str, str]] = {
    # In the order of `scores.decompose`.
    "classification": {
        "entropy": "entropy of the mean over draws of class probabilities, in nats",
        "aleatoric": "mean over draws of the entropy of class probabilities, in nats",
        "epistemic": "entropy of the mean over draws minus the mean entropy, in nats",
    },
    "regression": {
        "std": "square root of the mean variance plus the variance of the draws' means",
        "width": "upper end minus lower end of the predicted interval",
    },
}
FAMILY = {"classification": "uncertainty", "regression": "select"}
"""Arrays of a file that may be used, by task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyUsed:
    """Where the uncertainty of a plan comes from; larger is less certain."""

    name: str
    given: bool
    """Whether it is an array of the file; else it is computed from the predictions."""
    how: str
    """The same in words."""
    draws: int
    """Draws of the predictions it was computed from."""


def uncertainty_used(predictions: Predictions, name: str | None) -> UncertaintyUsed:
    """The uncertainty called `name`, an array of the file first; None: the usual one.

    Raises:
        LookupError: If there is none of this name.
        ValueError: If the file cannot give it.
    """
    computed, family = COMPUTED[predictions.task], FAMILY[predictions.task]
    own = predictions.named(family)
    if name is None:
        name = "width" if _only_interval(predictions) else next(iter(computed))
    if name in own:
        how = f"array '{family}/{name}' of the predictions"
    elif name in computed:
        _refuse_uncomputable(predictions, name)
        how = computed[name]
    else:
        known = sorted({*own, *computed})
        raise LookupError(
            f"{predictions.source}: no uncertainty {name!r}.{suggest(name, known)} "
            f"Known: {', '.join(known)}."
        )
    return UncertaintyUsed(
        name=name, given=name in own, how=how, draws=predictions.draws
    )


def uncertainty_values(predictions: Predictions, used: UncertaintyUsed) -> Array:
    """(N,) the uncertainty of every item, made as `used` says.

    Raises:
        ValueError: If the predictions cannot give it.
    """
    if used.given:
        return _given(predictions, used.name)
    _refuse_uncomputable(predictions, used.name)
    if predictions.task == "classification":
        parts = decomposed(predictions.arrays["probs"])
        at = list(COMPUTED["classification"]).index(used.name)
        return parts[at].astype(np.float64)
    if used.name == "width":
        width: Array = predictions.arrays["upper"] - predictions.arrays["lower"]
        return width
    moments = scores.pool_gaussian(predictions.arrays["mean"], predictions.get("var"))
    return np.sqrt(moments.var)


def predicted_of(predictions: Predictions) -> Index | Array:
    """(N,) predicted classes, or values: the middle of an interval without a mean."""
    if predictions.task == "classification":
        return scores.predicted_class(predictions.arrays["probs"])
    mean = predictions.get("mean")
    if mean is not None:
        return scores.pool_gaussian(mean).mean
    middle: Array = (predictions.arrays["lower"] + predictions.arrays["upper"]) / 2.0
    return middle


def _given(predictions: Predictions, name: str) -> Array:
    family = FAMILY[predictions.task]
    # Draws of a selection score are joined by the rule that its file states.
    many = family == "select" and predictions.draws > 1
    own = (pool([predictions]) if many else predictions).named(family)
    if name not in own:
        has = ", ".join(f"'{family}/{each}'" for each in own) or "none"
        raise ValueError(
            f"{predictions.source}: the plan refers by the array '{family}/{name}', "
            f"and this file has {has}; add it"
        )
    return np.asarray(own[name][0] if family == "select" else own[name], np.float64)


def _only_interval(predictions: Predictions) -> bool:
    return (
        predictions.task == "regression"
        and not _has_spread(predictions)
        and "lower" in predictions.arrays
    )


def _has_spread(predictions: Predictions) -> bool:
    several = predictions.draws > 1 and "mean" in predictions.arrays
    return several or "var" in predictions.arrays


def _refuse_uncomputable(predictions: Predictions, name: str) -> None:
    lacks = {
        "aleatoric": predictions.draws == 1,
        "epistemic": predictions.draws == 1,
        "std": not _has_spread(predictions),
        "width": "lower" not in predictions.arrays,
    }
    if not lacks.get(name, False):
        return
    family = FAMILY[predictions.task]
    needs = {
        "std": "'var', or several draws of 'mean'",
        "width": "'lower' and 'upper'",
    }.get(name, "several draws (M, N, C), this file has one")
    other = "use entropy, or " if family == "uncertainty" else ""
    raise ValueError(
        f"{predictions.source}: the {name} uncertainty needs {needs}; {other}give the "
        f"values as '{family}/{name}'"
    )
