"""Bootstrap replicates of scores over items; intervals and differences from them.

Items are drawn with replacement, within strata and by clusters where given. All scores
are computed on the same replicates. Two files are compared on the same replicates, too,
so that the chance in drawing items cancels.
"""

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.scores.resampling._cells import Copies
from qualms.scores.resampling._plan import Plan, plan_of
from qualms.scores.resampling._weights import Resampling

Progress = Callable[[int, int], None]

MOST_AT_ONCE = 8
"""Replicates that are worked on together, in each thread."""
WEIGHTS_AT_ONCE = 1 << 22
"""Fewer where their weights would be more than this."""


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
    plans: Mapping[str, Plan],
    resampling: Resampling,
    *,
    replicates: int = 1000,
    progress: Progress | None = None,
    workers: int = 1,
) -> dict[str, Array]:
    """The value of every plan in every replicate, an array (replicates,) per plan.

    All plans get the same weights. `progress(done, replicates)` is called after every
    replicate. The number of threads, `workers`, does not change the values. Where a
    score is undefined (one class only) its value is nan.

    >>> from qualms.scores import mean_plan
    >>> plans = {"accuracy": mean_plan([1, 0, 1, 1])}
    >>> bootstrap(plans, Resampling(4, seed=1), replicates=3)["accuracy"].shape
    (3,)
    """
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1, got {replicates}")
    for name, plan in plans.items():
        if plan.items != resampling.n:
            raise ValueError(
                f"plan {name!r} is for {plan.items} items, the resampling for "
                f"{resampling.n}; make both from the same file"
            )
    samples = {name: np.empty(replicates) for name in plans}
    done = itertools.count(1)

    def replay(chosen: range) -> None:
        copies = Copies(resampling.block(chosen))
        for name, plan in plans.items():
            samples[name][chosen.start : chosen.stop] = plan.value(copies)
        if progress is not None:
            for _ in chosen:
                progress(next(done), replicates)

    # Plans share sums over a few replicates at a time, so that memory stays bounded.
    width = max(1, min(MOST_AT_ONCE, WEIGHTS_AT_ONCE // resampling.n))
    starts = range(0, replicates, width)
    # The kernels release the interpreter's lock, so threads really run at once.
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda i: replay(range(i, min(i + width, replicates))), starts))
    return samples


def percentile_interval(samples: ArrayLike, *, level: float = 0.95) -> Interval:
    """The central `level` of bootstrap `samples` (replicates,) (Efron, 1979).

    Undefined replicates (nan) are left out and their share is stated; the interval is
    nan where none is left.

    >>> percentile_interval(np.arange(101.0), level=0.5)
    Interval(low=25.0, high=75.0, undefined=0.0)
    """
    tail = (1.0 - check_level(level)) / 2.0
    array = np.asarray(samples, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"samples must have shape (replicates,), at least one, got {array.shape}"
        )
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
    """`score(*arrays)` with its bootstrap interval over the items.

    Items lie on the first axis of every array. Options of a score are bound beforehand,
    `functools.partial(fpr_at_tpr, tpr=0.8)`. Most classification, ranking, selective
    and retrieval scores are presorted and cost O(N) per replicate; any other function
    is called on the resampled arrays. For a progress report, call `bootstrap` with
    `plan_of(score, *arrays)`.

    >>> bootstrap_interval(np.mean, [2.0, 2.0, 2.0], replicates=5)
    Estimate(value=2.0, low=2.0, high=2.0, undefined=0.0)
    """
    plan = plan_of(score, *arrays)
    resampling = Resampling(plan.items, strata=strata, cluster=cluster, seed=seed)
    samples = bootstrap({"score": plan}, resampling, replicates=replicates)["score"]
    interval = percentile_interval(samples, level=level)
    return Estimate(
        value=float(score(*arrays)),
        low=interval.low,
        high=interval.high,
        undefined=interval.undefined,
    )


def check_level(level: float) -> float:
    """`level`, refused unless it lies strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")
    return level


def paired_difference(
    a_samples: ArrayLike,
    b_samples: ArrayLike,
    a_value: float,
    b_value: float,
    *,
    level: float = 0.95,
) -> Difference:
    """`a_value - b_value` with the percentile interval and p value of its replicates.

    The p value counts how often the difference crosses zero, both sides, with the
    observed one counted in (Davison & Hinkley, 1997), so it is never 0. Replicates in
    which either score is undefined are left out; nan where none remains.

    >>> paired_difference([0.7, 0.8, 0.9], [0.5, 0.6, 0.8], 0.8, 0.6, level=0.5).p
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


def _samples(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"{name} must have shape (replicates,) with at least one, got {array.shape}"
        )
    return array
