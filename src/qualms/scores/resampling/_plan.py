"""Plans: scores as functions of how often each item counts, presorted once.

A plan maps whole weights (N,) to the score of the items in which item i appears
`weights[i]` times, in O(N) and with exact ties. With all weights 1 it gives the score
itself. The plan of a score stands beside the score, in `@as_score(..., plan=...)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Index
from qualms.scores._arrays import vector
from qualms.scores.resampling._cells import Cells, Copies, ranked_cells
from qualms.scores.resampling._kernels import sums_at


@dataclass(frozen=True, slots=True)
class Plan:
    """A score of fixed items as a function of their weights.

    >>> plan = mean_plan([1.0, 2.0, 6.0])
    >>> plan(np.array([1, 1, 1])), plan(np.array([0, 3, 1]))
    (3.0, 3.0)
    """

    items: int
    """How many items the plan was made for."""
    value: Callable[[Copies], Array]
    """(replicates,) the score in each replicate; for a single one call the plan."""

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
        copies = Copies(np.require(weights[None], np.int32, ["C", "W"]))
        return float(self.value(copies)[0])


def plan_of(score: Callable[..., float], *arrays: ArrayLike) -> Plan:
    """The fastest plan that gives `score(*arrays)`.

    Options bound by `functools.partial` are honoured. A score that declares no plan is
    called on the repeated items, which must lie on the first axis of every array.

    >>> from qualms.scores import auroc
    >>> plan_of(auroc, [0.2, 0.4, 0.3], [0, 1, 1])(np.array([1, 2, 0]))
    1.0
    """
    options = {}
    function = score
    if isinstance(score, partial) and not score.args:
        function, options = score.func, score.keywords
    make: Callable[..., Plan] | None = getattr(function, "__plan__", None)
    if make is None:
        return replay_plan(score, *arrays)
    return make(*arrays, **options)


def mean_plan(values: ArrayLike) -> Plan:
    """The mean of per-item `values` (N,): accuracy, NLL, Brier score, coverage."""
    array = vector("values", values)
    return Plan(len(array), lambda copies: copies.mean(array))


def mean_of(item_values: Callable[..., ArrayLike]) -> Callable[..., Plan]:
    """What makes the plan of a score that is the mean of `item_values(*arrays)`."""

    def make(*arrays: ArrayLike, **options: Any) -> Plan:
        return mean_plan(item_values(*arrays, **options))

    return make


def ratio_plan(numerator: ArrayLike, denominator: ArrayLike) -> Plan:
    """One sum over another, both (N,), such as the coverage among accepted items.

    Undefined, nan, where the denominator sums to 0.
    """
    below = vector("denominator", denominator)
    above = vector("numerator", numerator, length=len(below))
    return Plan(len(below), lambda copies: share(copies.dot(above), copies.dot(below)))


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

    def one(index: Index) -> float:
        # Drawing whole clusters may miss a small subset altogether.
        if not index.size:
            return float("nan")
        return _number(score(*(array[index] for array in held)))

    def value(copies: Copies) -> Array:
        items = np.arange(lengths[0])
        return np.array([one(np.repeat(items, row)) for row in copies.weights])

    return Plan(lengths[0], value)


def share(part: Array, whole: Array) -> Array:
    """`part` over `whole`, nan where `whole` is 0."""
    undefined = np.full(len(whole), np.nan)
    found: Array = np.divide(part, whole, out=undefined, where=whole != 0.0)
    return found


def edge_plan(
    summand: ArrayLike,
    rank: Array,
    edges: Callable[[Array], Array],
    value: Callable[[Array, Array], Array],
) -> Plan:
    """`value(sums, edges)` of the sums of `summand` up to `edges(total)` copies."""
    cells = risk_cells(summand, rank)
    (carried,) = cells.carried

    def at(copies: Copies) -> Array:
        edge = edges(copies.total())
        counts = copies.within(cells)
        return value(sums_at(counts, cells.last, carried, edge), edge)

    return Plan(len(rank), at)


def risk_cells(risk: ArrayLike, rank: Array) -> Cells:
    """Cells of `risk` (N,) by `rank`; neighbours of equal risk share a cell."""
    carried = vector("risk", risk, length=len(rank))
    return ranked_cells(rank, carried, alike=np.ones(len(rank), dtype=np.bool_))


def _number(value: object) -> float:
    if isinstance(value, float | int | np.number):
        return float(value)
    raise TypeError(
        f"the score must return one number, got {type(value).__name__}; wrap it in a "
        "function that returns the number"
    )
