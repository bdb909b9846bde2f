"""From judged repeats to numbers with intervals: the one place that resamples.

A file is one repeat. A row of a benchmark has several: its runs or pools with other
seeds, judged on the same items. Items (or whole clusters of them) are drawn anew within
each sample, all entries see the same items, and repeats are drawn anew with them, so
that an interval covers what other items and other seeds would change.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from qualms.evaluate.entry import (
    Array,
    Curve,
    Entry,
    Histogram,
    Index,
    Judgement,
    Sample,
    ScoreOptions,
)
from qualms.scores import Copies, Plan, Resampling, bootstrap, percentile_interval

Weights = NDArray[np.int32]


class Estimated(NamedTuple):
    """One entry over all repeats, with its interval."""

    entry: Entry
    """That of the first repeat."""
    values: tuple[float, ...]
    """One per repeat; () where it is undefined in all."""
    as_published: tuple[float, ...]
    """One per repeat by the released code's rule; () where that has none."""
    low: float
    high: float
    replicates: Array | None
    """(replicates,) of the mean over repeats; None where nothing was resampled."""
    why: str
    """Why there is no value, or why some repeats have none."""


def estimated(repeats: Sequence[Judgement], options: ScoreOptions) -> list[Estimated]:
    """Every entry of the first repeat, with its values in all of them.

    Raises:
        ValueError: If a repeat lacks an entry that the first one has.
    """
    columns = _columns(repeats)
    replicates = _replicates(repeats, columns, options)
    return [
        _estimated(entries, replicates.get(place), options.level)
        for place, entries in enumerate(columns)
    ]


def _columns(repeats: Sequence[Judgement]) -> list[tuple[Entry, ...]]:
    """For each entry of the first repeat, the same entry of every repeat."""
    found = [{_identity(entry): entry for entry in one.entries} for one in repeats]
    return [
        tuple(known[_identity(entry)] for known in found if _identity(entry) in known)
        for entry in repeats[0].entries
    ]


def _identity(entry: Entry) -> tuple[str, tuple[tuple[str, str], ...]]:
    return entry.key, tuple((name, str(v)) for name, v in entry.settings.items())


def _estimated(
    entries: Sequence[Entry], replicates: Array | None, level: float
) -> Estimated:
    values = tuple(entry.exact() for entry in entries)
    low, high = _interval(replicates, values, level)
    undefined = [e.why for e, v in zip(entries, values, strict=True) if math.isnan(v)]
    return Estimated(
        entry=entries[0],
        values=_known(values),
        as_published=_known(tuple(entry.as_published for entry in entries)),
        low=low,
        high=high,
        replicates=replicates,
        why=undefined[0] if undefined else "",
    )


def _known(values: tuple[float, ...]) -> tuple[float, ...]:
    """All of `values`, or none where all are undefined."""
    return () if all(map(math.isnan, values)) else values


def _interval(
    replicates: Array | None, values: Sequence[float], level: float
) -> tuple[float, float]:
    # An infinite conformal offset makes every replicate infinite too.
    if replicates is None or any(map(math.isinf, values)):
        return math.nan, math.nan
    if np.isinf(replicates).any():
        # Between a number and infinity there is nothing to interpolate.
        ends = np.array([1 - level, 1 + level]) / 2
        low, high = np.quantile(replicates, ends, method="closest_observation")
        return float(low), float(high)
    interval = percentile_interval(replicates, level=level)
    return interval.low, interval.high


def _replicates(
    repeats: Sequence[Judgement],
    columns: Sequence[Sequence[Entry]],
    options: ScoreOptions,
) -> dict[int, Array]:
    """(replicates,) of each entry that has plans, by its place in the first repeat."""
    if options.resamples == 0:
        return {}
    weights = _Joint(repeats[0].samples, options.seed)
    plans = {
        f"{place}/{repeat}": _on_all(entry, weights.n)
        for place, entries in enumerate(columns)
        for repeat, entry in enumerate(entries)
        if entry.plan is not None and len(entries) == len(repeats)
    }
    if not plans:
        return {}
    found = bootstrap(
        plans,
        cast(Resampling, weights),
        replicates=options.resamples,
        progress=options.progress,
        workers=options.workers,
    )
    chosen = _chosen(len(repeats), options)
    return {
        place: _mean_of_repeats([found[f"{place}/{r}"] for r in chosen.rows], chosen)
        for place in range(len(columns))
        if f"{place}/0" in plans
    }


class _RepeatsDrawn(NamedTuple):
    """Which repeats each replicate draws."""

    rows: range
    drawn: Index
    """(repeats, replicates)"""


def _chosen(repeats: int, options: ScoreOptions) -> _RepeatsDrawn:
    rng = np.random.default_rng([options.seed, repeats])
    size = repeats, options.resamples
    return _RepeatsDrawn(range(repeats), rng.integers(repeats, size=size))


def _mean_of_repeats(each: Sequence[Array], chosen: _RepeatsDrawn) -> Array:
    if len(each) == 1:
        return each[0]
    mean: Array = np.stack(each)[chosen.drawn, np.arange(len(each[0]))].mean(axis=0)
    return mean


class _Joint:
    """The weights of all samples side by side, each sample drawn by itself."""

    def __init__(self, samples: Sequence[Sample], seed: int) -> None:
        self.n = sum(sample.n for sample in samples)
        self._samples = [
            Resampling(
                sample.n,
                strata=sample.strata,
                cluster=sample.cluster,
                seed=len(samples) * seed + place,
            )
            for place, sample in enumerate(samples)
        ]

    def block(self, replicates: range) -> Weights:
        """(replicates, n) how often each item counts."""
        blocks = [sample.block(replicates) for sample in self._samples]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _on_all(entry: Entry, n: int) -> Plan:
    """The entry's plan as one over all `n` items of the judgement."""
    index, plan = entry.index, entry.plan
    assert plan is not None
    if len(index) == n and (index == np.arange(n)).all():
        return plan

    def value(copies: Copies) -> Array:
        chosen = copies.of(index)
        # Drawing whole clusters may miss a small subset altogether.
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(chosen.total() > 0, plan.value(chosen), np.nan)

    return Plan(n, value)


def mean_curves(repeats: Sequence[Judgement]) -> list[Curve]:
    """Each curve of the first repeat as the mean over repeats, with its error."""
    return [
        _mean_curve([repeat.curves[place] for repeat in repeats])
        for place in range(len(repeats[0].curves))
    ]


def mean_histograms(repeats: Sequence[Judgement]) -> list[Histogram]:
    """Each histogram of the first repeat as the mean over repeats of the same items."""
    found = []
    for place, first in enumerate(repeats[0].histograms):
        each = [repeat.histograms[place] for repeat in repeats]
        parts = {
            name: np.mean([one.parts[name] for one in each], axis=0)
            for name in first.parts
        }
        found.append(replace(first, parts=parts))
    return found


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    """Mean over repeats, and the standard error of that mean by their deviation.

    Where some repeats are undefined the others count; nan where all are.
    """
    heights = np.stack([curve.y for curve in curves])
    defined = ~np.isnan(heights)
    count = defined.sum(axis=0)
    mean = _over(np.where(defined, heights, 0.0).sum(axis=0), count)
    off = np.where(defined, heights - mean, 0.0)
    # One repeat says nothing about how far repeats lie apart.
    spread = np.sqrt(_over(np.square(off).sum(axis=0), count - 1))
    places = np.stack([curve.x for curve in curves])
    there = ~np.isnan(places)
    x = _over(np.where(there, places, 0.0).sum(axis=0), there.sum(axis=0))
    kept = ~np.isnan(x)
    stderr = _over(spread, np.sqrt(count))
    return replace(
        curves[0], x=x[kept], y=mean[kept], stderr=stderr[kept], low=None, high=None
    )


def _over(total: Array, count: Array | Index) -> Array:
    """`total` / `count`, nan where there is nothing to divide by."""
    below = np.asarray(count, np.float64)
    found: Array = np.divide(
        total, below, out=np.full(len(below), np.nan), where=below > 0
    )
    return found
