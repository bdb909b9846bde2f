"""Arrays of a regression: means with variances, or intervals."""

from collections.abc import Iterator

import numpy as np

from qualms.predictions import Predictions
from qualms.predictions.schema import OF_FILES, UNCERTAINTY, Field, TaskSchema

# Names of a standard deviation.
_DEVIATIONS = ("std", "sigma", "scale")


def _facts(predictions: Predictions) -> Iterator[str]:
    target = predictions.get("target")
    if target is not None:
        finite = target[np.isfinite(target)]
        if len(finite):
            low, middle, high = np.quantile(finite, (0.0, 0.5, 1.0))
            yield f"target: {low:.4g} to {high:.4g}, median {middle:.4g}"
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is not None and upper is not None:
        yield f"intervals: mean length {float(np.mean(upper - lower)):.4g}"


SCHEMA = TaskSchema(
    required=(("mean", "lower"),),
    marks=("mean", "var", "lower", "upper"),
    together=(
        ("lower", "upper"),
        ("upper", "lower"),
        *((name, "mean") for name in ("var", *_DEVIATIONS)),
    ),
    exclusive=(("var", *_DEVIATIONS),),
    fields=(
        Field(name="target"),
        Field(name="mean", axes=("MN", "N")),
        Field(name="var", axes=("MN", "N"), low=0.0),
        *(
            Field(name=name, axes=("MN", "N"), low=0.0, becomes="var")
            for name in _DEVIATIONS
        ),
        Field(name="lower"),
        Field(name="upper"),
        Field(name="select/", axes=("MN", "N")),
        UNCERTAINTY,
        *OF_FILES,
    ),
    facts=_facts,
)
