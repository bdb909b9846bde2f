"""From predictions of a row to intervals, selection scores, and the scores of a cell.

The protocol of Gustafsson et al. (2023, arXiv:2302.03679), section 3.2: intervals by
the row's rule, one offset from all validation items, a threshold that keeps 95 % of
them, and test scores of the items that are predicted.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.benchmarks import TableRow, Variant
from qualms.evaluate._runs import AbsentError
from qualms.predictions import Predictions
from qualms.scores.as_published import regression as published

Array = NDArray[np.float64]

RATE = 0.95
"""Share of validation items that a selection score lets pass."""
SCORES = (
    "val_mae",
    "val_interval_length",
    "test_coverage",
    "test_prediction_rate",
    "test_mae",
    "test_interval_length",
    "test_inverted_fraction",
    "test_unbounded_fraction",
)


class Items(NamedTuple):
    """What a row says about the items of one split, before calibration, all (N,)."""

    point: Array
    lower: Array
    upper: Array
    target: Array
    select: Array
    """Larger for items to leave out; all 0 where the row selects none."""


class Measured(NamedTuple):
    """One repeat of a row: what it says about validation and test items."""

    val: Items
    test: Items


class Calibration(NamedTuple):
    """How far intervals are widened, one number or one per item, and who passes."""

    val_offset: float | Array
    test_offset: float | Array
    threshold: float


def restricted(predictions: Predictions, variant: Variant) -> Predictions:
    """The items whose target lies in one of the variant's ranges."""
    if not variant.within:
        return predictions
    target = predictions.arrays["target"]
    inside = [(low <= target) & (target <= high) for low, high in variant.within]
    keep = np.flatnonzero(np.any(inside, axis=0))
    if not keep.size:
        raise AbsentError(f"no test item has a target in {variant.within}")
    draws = ("mean", "var", "select/")
    arrays = {
        name: array[:, keep] if name.startswith(draws) else array[keep]
        for name, array in predictions.arrays.items()
    }
    return replace(predictions, arrays=arrays, n=len(keep))


def items_of(predictions: Predictions, row: TableRow, alpha: float) -> Items:
    """Points, intervals and selection scores by the rule of `row`."""
    target = predictions.arrays["target"]
    if row.rule == "quantile":
        lower, upper = _quantiles(predictions, alpha)
        select = _select(predictions, row.select)
        return Items((lower + upper) / 2, lower, upper, target, select)
    mean = predictions.get("mean")
    if mean is None:
        raise AbsentError(f"the predictions of {row.method.name} have no 'mean'")
    moments = scores.pool_gaussian(mean, predictions.get("var"))
    point, select = moments.mean, _select(predictions, row.select)
    if row.rule == "point":
        return Items(point, point, point, target, select)
    lower, upper = scores.gaussian_interval(point, moments.var, alpha=alpha)
    return Items(point, lower, upper, target, select)


def _quantiles(predictions: Predictions, alpha: float) -> tuple[Array, Array]:
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is None or upper is None:
        raise AbsentError("the predictions have no 'lower' and 'upper'")
    stated = predictions.header.alpha
    if stated is not None and not np.isclose(stated, alpha):
        raise AbsentError(f"the predictions are for alpha {stated}, not {alpha}")
    return lower, upper


def _select(predictions: Predictions, name: str) -> Array:
    """One value per item; deviations are taken from the draws, others from the file."""
    if not name:
        return np.zeros(predictions.n)
    mean, var = predictions.get("mean"), predictions.get("var")
    if name == "variance" and mean is not None:
        return np.sqrt(scores.pool_gaussian(mean, var).var)
    if name == "ensemble_variance" and mean is not None:
        return np.sqrt(scores.pool_gaussian(mean).var)
    found = predictions.named("select").get(name)
    if found is None:
        raise AbsentError(f"the predictions have no 'select/{name}'")
    values: Array = found[0]
    return values


def calibrate(measured: Measured, alpha: float) -> Calibration:
    """With the ranks that give the guarantee (Romano et al., 2019)."""
    offset = scores.conformal_offset(*_ends(measured.val), alpha=alpha)
    threshold = scores.selection_threshold(measured.val.select, rate=RATE)
    return Calibration(offset, offset, threshold)


def calibrate_as_published(measured: Measured, alpha: float) -> Calibration:
    """With the floor indices of the paper's released code."""
    offset = published.conformal_offset(*_ends(measured.val), alpha=alpha)
    threshold = published.selection_threshold(measured.val.select, rate=RATE)
    return Calibration(offset, offset, threshold)


def scores_of(measured: Measured, calibration: Calibration) -> tuple[float, ...]:
    """The scores of a cell, in the order of `SCORES`."""
    val, test = measured
    keep = scores.accept(test.select, calibration.threshold)
    known = _widened(val, calibration.val_offset)
    lower, upper = _widened(test, calibration.test_offset)
    ends = lower[keep], upper[keep]
    return (
        scores.mae(val.point, val.target),
        scores.interval_length(*known),
        _defined(scores.coverage, *ends, test.target[keep]),
        float(keep.mean()),
        _defined(scores.mae, test.point[keep], test.target[keep]),
        _defined(scores.interval_length, *ends),
        _defined(scores.inverted_fraction, *ends),
        _defined(_unbounded_fraction, *ends),
    )


def _ends(items: Items) -> tuple[Array, Array, Array]:
    return items.lower, items.upper, items.target


def _widened(items: Items, offset: float | Array) -> tuple[Array, Array]:
    return items.lower - offset, items.upper + offset


def _defined(score: Callable[..., float], *arrays: Array) -> float:
    """`score`, or nan where no item is accepted."""
    return score(*arrays) if len(arrays[0]) else float("nan")


def _unbounded_fraction(lower: Array, upper: Array) -> float:
    return float(np.isinf(upper - lower).mean())
