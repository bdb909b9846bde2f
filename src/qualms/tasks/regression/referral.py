"""Referral of predicted values, by their deviation or the length of their interval."""

import numpy as np

from qualms import scores
from qualms.arrays import Array
from qualms.evaluate.chosen_uncertainty import LENGTH
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.referral import Referral, ReferredOutcomes

_COMPUTED = {
    "std": "square root of the mean variance plus the variance of the draws' means",
    "width": "upper end minus lower end of the predicted interval",
}


def _usual(predictions: Predictions) -> str:
    """Return the length of the interval if there is one, else the deviation."""
    return "width" if "lower" in predictions.arrays else "std"


def _named(predictions: Predictions, name: str) -> str:
    return _usual(predictions) if name == LENGTH else name


def _compute(predictions: Predictions, name: str) -> Array:
    if name == "width":
        width: Array = predictions.arrays["upper"] - predictions.arrays["lower"]
        return width
    moments = scores.pool_gaussian(
        mean=predictions.arrays["mean"], var=predictions.get("var")
    )
    return np.sqrt(moments.var)


def _lacking(predictions: Predictions, name: str) -> str:
    if name == LENGTH:
        return ""
    if name == "width":
        return "" if "lower" in predictions.arrays else "'lower' and 'upper'"
    several = predictions.draws > 1 and "mean" in predictions.arrays
    if several or "var" in predictions.arrays:
        return ""
    return "'var', or several draws of 'mean'"


def _predicted(predictions: Predictions) -> Array:
    """Return the predicted values; the middle of an interval without one."""
    mean = predictions.get("mean")
    if mean is not None:
        return scores.pool_gaussian(mean=mean).mean
    middle: Array = (predictions.arrays["lower"] + predictions.arrays["upper"]) / 2.0
    return middle


def _judged(predictions: Predictions, _gallery: Predictions | None) -> ReferredOutcomes:
    index = known_items(predictions)
    cluster = predictions.get("cluster")
    target = predictions.arrays["target"][index]
    return ReferredOutcomes(
        rows=index,
        correct=np.zeros(len(index), np.bool_),
        loss=np.abs(_predicted(predictions)[index] - target),
        positive=np.zeros(len(index)),
        unit=None if cluster is None else cluster[index],
    )


REFERRAL = Referral(
    computed=_COMPUTED,
    usual=_usual,
    compute=_compute,
    lacking=_lacking,
    predicted=_predicted,
    judged=_judged,
    other_names=(LENGTH,),
    named=_named,
    family="select/<name>",
    is_decided=False,
)
