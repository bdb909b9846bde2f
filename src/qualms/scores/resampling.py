"""A plain bootstrap: the score of items drawn anew, its interval, and differences.

Items are drawn with replacement, within strata and by clusters if these are passed. The
items of a replicate depend only on the seed, strata and clusters, so that two files
with the same items are compared on the same replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Index
from qualms.scores.arguments import by_name, called_in_order

__all__ = [
    "Difference",
    "Estimate",
    "Interval",
    "bootstrap",
    "bootstrap_interval",
    "paired_difference",
    "percentile_interval",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A percentile interval over bootstrap replicates."""

    low: float
    high: float
    undefined: float
    """Share of the replicates in which the score is undefined; they are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One score minus another, with its interval and two-sided p value."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score with its bootstrap interval."""

    value: float
    low: float
    high: float
    undefined: float
    """Share of the replicates in which the score is undefined; they are left out."""


def bootstrap(
    score: Callable[..., float],
    *arrays: ArrayLike,
    strata: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Array:
    """Return the score (replicates,) of items that are drawn anew.

    Items lie on the first axis of every array. With `strata` (N,), for example the
    target, every stratum keeps its size. With `cluster` (N,), for example the patient,
    whole clusters are drawn. A cluster belongs to the stratum of its highest class (a
    patient is positive if either eye is), and every stratum keeps its number of
    clusters. A replicate in which the score is undefined (one class only) is nan.

    >>> bootstrap(np.mean, [1, 0, 1, 1], replicates=3, seed=1).shape
    (3,)
    """
    columns = _checked_arrays(arrays)
    counts = drawn_counts(
        len(columns[0]),
        strata=strata,
        cluster=cluster,
        replicates=replicates,
        seed=seed,
    )
    return np.array([score_of_copies(score, columns, count) for count in counts])


def drawn_counts(
    items: int,
    *,
    strata: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    replicates: int,
    seed: int = 0,
) -> Iterator[Index]:
    """Yield for each replicate how often each item is drawn, (items,)."""
    if items < 1:
        raise ValueError(f"items must be at least 1, got {items}")
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1, got {replicates}")
    unit, stratum = None, _codes("strata", strata, items)
    if cluster is not None:
        unit = _codes("cluster", cluster, items)
        highest = np.zeros(int(unit.max()) + 1, dtype=np.int64)
        np.maximum.at(highest, unit, stratum)
        stratum = highest
    members = [np.flatnonzero(stratum == number) for number in np.unique(stratum)]
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, replicate])
        units = [group[rng.integers(len(group), size=len(group))] for group in members]
        count = np.bincount(np.concatenate(units), minlength=len(stratum))
        yield count if unit is None else count[unit]


def score_of_copies(
    score: Callable[..., float], arrays: list[NDArray[Any]], count: Index
) -> float:
    """Return the score of items that are repeated as `count` (N,) says.

    It is nan without any item: drawn clusters may miss a small subset.
    """
    copies = np.repeat(np.arange(len(count)), count)
    if not copies.size:
        return float("nan")
    value = called_in_order(score, *(array[copies] for array in arrays))
    if isinstance(value, float | int | np.number):
        return float(value)
    raise TypeError(
        f"the score must return one number, got {type(value).__name__}; wrap it in a "
        "function that returns the number"
    )


def percentile_interval(samples: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the central `level` of bootstrap `samples` (replicates,) (Efron, 1979).

    Undefined replicates (nan) are left out and their share is stated; the interval is
    nan where none is left.

    >>> percentile_interval(np.arange(101.0), level=0.5)
    Interval(low=25.0, high=75.0, undefined=0.0)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")
    tail = (1.0 - level) / 2.0
    array = _samples("samples", samples)
    defined = array[~np.isnan(array)]
    undefined = 1.0 - defined.size / array.size
    if not defined.size:
        return Interval(low=np.nan, high=np.nan, undefined=undefined)
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(low=float(low), high=float(high), undefined=undefined)


def bootstrap_interval(
    score: Callable[..., float],
    *arrays: ArrayLike,
    strata: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Return `score(*arrays)` with its percentile interval over `bootstrap` replicates.

    Options of a score are bound beforehand, `functools.partial(fpr_at_tpr, tpr=0.8)`.
    Most scores of the package have a better and faster interval, see
    `qualms.inference.influence_of` and `interval_of`.

    >>> bootstrap_interval(np.mean, [2.0, 2.0, 2.0], replicates=5)
    Estimate(value=2.0, low=2.0, high=2.0, undefined=0.0)
    """
    samples = bootstrap(
        score,
        *arrays,
        strata=strata,
        cluster=cluster,
        replicates=replicates,
        seed=seed,
    )
    interval = percentile_interval(samples, level=level)
    return Estimate(
        value=float(called_in_order(score, *arrays)),
        low=interval.low,
        high=interval.high,
        undefined=interval.undefined,
    )


@by_name
def paired_difference(
    *,
    a_samples: ArrayLike,
    b_samples: ArrayLike,
    a_value: float,
    b_value: float,
    level: float = 0.95,
) -> Difference:
    """Return `a_value - b_value` with interval and p value from paired replicates.

    The p value is the share of differences that cross zero, for both sides, including
    the observed one (Davison & Hinkley, 1997), so it is never 0. Replicates in which
    either score is undefined are left out; nan if none remains.

    >>> paired_difference(
    ...     a_samples=[0.7, 0.8, 0.9],
    ...     b_samples=[0.5, 0.6, 0.8],
    ...     a_value=0.8,
    ...     b_value=0.6,
    ...     level=0.5,
    ... ).p
    0.5
    """
    a, b = _samples("a_samples", a_samples), _samples("b_samples", b_samples)
    if len(a) != len(b):
        raise ValueError(
            f"paired samples must have the same length, got {len(a)} and {len(b)}; "
            "bootstrap both files with the same number of replicates and the same seed"
        )
    difference = a - b
    interval = percentile_interval(difference, level=level)
    return Difference(
        value=float(a_value - b_value),
        low=interval.low,
        high=interval.high,
        p=_two_sided(difference[~np.isnan(difference)]),
    )


def _two_sided(difference: Array) -> float:
    if not difference.size:
        return float("nan")
    below = 1 + np.count_nonzero(difference <= 0.0)
    above = 1 + np.count_nonzero(difference >= 0.0)
    return float(min(1.0, 2.0 * min(below, above) / (difference.size + 1)))


def _checked_arrays(arrays: tuple[ArrayLike, ...]) -> list[NDArray[Any]]:
    """Return the arrays; raise unless their first axes have the same items."""
    columns = [np.asarray(array) for array in arrays]
    if not columns or any(array.ndim == 0 for array in columns):
        raise TypeError(
            "arrays must have items on their first axis; bind other arguments with "
            "functools.partial"
        )
    lengths = [len(array) for array in columns]
    if len(set(lengths)) > 1:
        raise ValueError(
            "arrays must have the same items on their first axis, got lengths "
            f"{lengths}; pass draws (M, N) as (N, M) and transpose inside the score"
        )
    return columns


def _codes(name: str, values: ArrayLike | None, items: int) -> Index:
    """Return the ranks 0, 1, ... of the distinct `values`; all 0 where None."""
    if values is None:
        return np.zeros(items, dtype=np.int64)
    array = np.asarray(values)
    if array.shape != (items,):
        raise ValueError(f"{name} must have shape ({items},), got {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(f"{name} must be given for every item, row {row} is nan")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _samples(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"{name} must have shape (replicates,) with at least one, got {array.shape}"
        )
    return array
