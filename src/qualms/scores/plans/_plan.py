"""A score of fixed items that waits for how often each counts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.scores import _weighted as kernel
from qualms.scores._arrays import Array, vector
from qualms.scores._resample import Weights


@dataclass(frozen=True, slots=True)
class Plan:
    """A score of fixed items, waiting for their weights.

    >>> plan = mean_plan([1.0, 2.0, 6.0])
    >>> plan(np.array([1, 1, 1])), plan(np.array([0, 3, 1]))
    (3.0, 3.0)
    """

    items: int
    """How many items the plan was made for."""
    value: Callable[[Weights], float]
    """The score for checked weights; call the plan itself to have them checked."""

    def __call__(self, weights: NDArray[np.integer]) -> float:
        """The score of the items, each repeated by its weight; nan without any."""
        if weights.shape != (self.items,):
            raise ValueError(
                f"weights must have shape ({self.items},), got {weights.shape}"
            )
        if weights.dtype.kind not in "iu":
            raise TypeError(f"weights must be whole numbers, got {weights.dtype}")
        if weights.min() < 0:
            raise ValueError(f"weights must be 0 or more, got {weights.min()}")
        if not weights.any():
            return float("nan")
        return float(self.value(np.require(weights, np.int32, ["C", "W"])))


def mean_plan(values: ArrayLike) -> Plan:
    """The mean of per-item `values` (N,): accuracy, NLL, Brier score, coverage."""
    array = vector("values", values)
    return Plan(len(array), lambda weights: kernel.dot(weights, array) / weights.sum())


def ratio_plan(numerator: ArrayLike, denominator: ArrayLike) -> Plan:
    """One sum over another, both (N,), such as the coverage among accepted items.

    Undefined, nan, where the denominator sums to 0.
    """
    below = vector("denominator", denominator)
    above = vector("numerator", numerator, length=len(below))

    def value(weights: Weights) -> float:
        return share(kernel.dot(weights, above), kernel.dot(weights, below))

    return Plan(len(below), value)


def replay_plan(score: Callable[..., float], *arrays: ArrayLike) -> Plan:
    """Any score of arrays with items on the first axis, called on repeated items."""
    held = [np.asarray(array) for array in arrays]
    if not held or any(array.ndim == 0 for array in held):
        raise TypeError(
            "arrays must have items on their first axis; bind other arguments with "
            "functools.partial"
        )
    lengths = [len(array) for array in held]
    if len(set(lengths)) > 1:
        raise ValueError(
            "arrays must have the same items on their first axis, got lengths "
            f"{lengths}; pass draws (M, N) as (N, M) and transpose inside the score"
        )

    def value(weights: Weights) -> float:
        index = np.repeat(np.arange(len(weights)), weights)
        return _number(score(*(array[index] for array in held)))

    return Plan(lengths[0], value)


def share(part: float, whole: float) -> float:
    return float(part / whole) if whole != 0.0 else float("nan")


def _number(value: object) -> float:
    if isinstance(value, float | int | np.number):
        return float(value)
    raise TypeError(
        f"the score must return one number, got {type(value).__name__}; wrap it in a "
        "function that reads the number out"
    )


def edge_plan(
    summand: ArrayLike,
    rank: Array,
    edges: Callable[[float], Array],
    value: Callable[[Array, Array], float],
) -> Plan:
    """`value(total, edges)` of the sums of `summand` up to `edges(N)` copies."""
    item, last = kernel.ascending(rank)
    ranked_summand = vector("risk", summand, length=len(rank))[item]

    def at(weights: Weights) -> float:
        edge = edges(float(weights.sum()))
        return value(kernel.sums_at(weights, item, last, ranked_summand, edge), edge)

    return Plan(len(rank), at)
