"""Predictions of an estimator that follows the protocol of scikit-learn.

No estimator is imported: an object with `classes_` is a classifier, which must have
`predict_proba`; any other object with `predict` is a regressor.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from qualms.predictions import PredictionsError


@runtime_checkable
class Estimator(Protocol):
    """An object that predicts values or classes of rows of inputs."""

    def predict(self, inputs: Any, /) -> Any: ...


@runtime_checkable
class FittedClassifier(Protocol):
    """An object that was fitted to classes."""

    classes_: Any


@runtime_checkable
class ProbabilisticClassifier(Protocol):
    """A classifier that predicts probabilities of its classes."""

    classes_: Any

    def predict_proba(self, inputs: Any, /) -> Any: ...


@runtime_checkable
class Unsupervised(Protocol):
    """An object that finds clusters or outliers, and knows no targets."""

    def fit_predict(self, inputs: Any, /) -> Any: ...


class EstimatedArrays(NamedTuple):
    """Arrays of predictions, and their header."""

    arrays: Mapping[str, Any]
    header: Mapping[str, Any]


def estimator_arrays(estimator: Estimator, inputs: Any, target: Any) -> EstimatedArrays:
    """Return the predictions of `estimator` for `inputs`, with `target`.

    These are probabilities and the names of the classes if it has them; else values,
    with their standard deviation if `predict` can return it.

    Raises:
        PredictionsError: If inputs or targets are missing, or a target is no class.
    """
    if inputs is None or target is None:
        raise PredictionsError(
            f"{type(estimator).__name__} needs inputs and targets: write"
            " qualms.score(estimator, X, y), with rows that it was not fitted on"
        )
    header: dict[str, Any] = {"method": type(estimator).__name__}
    if isinstance(estimator, ProbabilisticClassifier):
        names = [str(each) for each in np.asarray(estimator.classes_).tolist()]
        arrays = _class_arrays(estimator, names, inputs, target)
        if names != [str(number) for number in range(len(names))]:
            header["classes"] = names
        return EstimatedArrays(arrays, header)
    if isinstance(estimator, Unsupervised):
        raise PredictionsError(
            f"{type(estimator).__name__} finds clusters or outliers, and predicts no"
            " targets; score a classifier or a regressor"
        )
    if isinstance(estimator, FittedClassifier):
        raise PredictionsError(_without_probabilities(estimator))
    arrays = {"target": np.asarray(target), **_value_arrays(estimator, inputs)}
    if arrays["mean"].dtype.kind not in "fiu":
        raise PredictionsError(_without_probabilities(estimator))
    return EstimatedArrays(arrays, header)


def _without_probabilities(estimator: object) -> str:
    return (
        f"{type(estimator).__name__} predicts classes without probabilities, and has no"
        " predict_proba; fit one that has, such as with probability=True, or inside"
        " CalibratedClassifierCV"
    )


def _class_arrays(
    estimator: ProbabilisticClassifier, names: list[str], inputs: Any, target: Any
) -> dict[str, Any]:
    probs = estimator.predict_proba(inputs)
    if isinstance(probs, list):
        raise PredictionsError(
            f"{type(estimator).__name__} predicts {len(probs)} outputs at once; score"
            " one after the other with its own probabilities and targets"
        )
    places = {name: number for number, name in enumerate(names)}
    classes = [str(each) for each in np.asarray(target).tolist()]
    row = next((row for row, name in enumerate(classes) if name not in places), None)
    if row is not None:
        raise PredictionsError(
            f"y must hold classes that {type(estimator).__name__} was fitted on"
            f" ({', '.join(names[:6])}{' ...' * (len(names) > 6)}), row {row} is"
            f" {classes[row]!r:.60}; leave such rows out"
        )
    return {"probs": probs, "target": np.array([places[name] for name in classes])}


def _value_arrays(estimator: Estimator, inputs: Any) -> dict[str, Any]:
    parameters = inspect.signature(estimator.predict).parameters
    if "return_std" not in parameters:
        return {"mean": np.asarray(estimator.predict(inputs))}
    mean, deviation = estimator.predict(inputs, return_std=True)  # type: ignore[call-arg]
    return {"mean": np.asarray(mean), "std": np.asarray(deviation)}
