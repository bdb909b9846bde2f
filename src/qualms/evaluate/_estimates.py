"""From judged repeats to numbers with intervals, for files and benchmarks alike.

A file is one repeat. A row of a benchmark has several: its runs or pools with other
seeds, judged on the same items. Intervals come from the influence of each item on the
score, summed over clusters, with what the seeds of repeats add (`docs/intervals.md`).
Scores whose influence is not known are resampled: items or whole clusters are drawn
within each sample, and repeats with them.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from qualms.arrays import Array, Index
from qualms.evaluate.drawings import RELIABILITY_BINS
from qualms.evaluate.entry import Curve, Entry, Histogram, Judgement, ScoreOptions
from qualms.inference import (
    ConfidenceInterval,
    Design,
    Influence,
    interval_of,
    no_interval,
)
from qualms.scores import percentile_interval, shared_sorts
from qualms.scores.calibration import equal_width_bin
from qualms.scores.resampling import drawn_counts

K = TypeVar("K", bound=Hashable)

AT_A_TIME = 1 << 24
"""Items whose influences are worked on at a time, in all threads together."""
UNKNOWN = "no interval is known to hold for this score"
ALIKE = "all items are alike: nothing tells how the score varies"
FEW = "without replicates this score has no interval; ask for resamples"


class Estimated(NamedTuple):
    """One entry over all repeats, with its interval."""

    entries: tuple[Entry, ...]
    """One per repeat."""
    values: tuple[float, ...]
    """One per repeat; () where it is undefined in all."""
    as_published: tuple[float, ...]
    """One per repeat by the released code's rule; () where that has none."""
    interval: ConfidenceInterval
    """Of the mean over repeats."""
    replicates: Array | None
    """(replicates,) of the mean over repeats, where the interval needed them."""
    why: str
    """Why the value is undefined, in all or in some repeats."""

    @property
    def entry(self) -> Entry:
        """Return the entry of the first repeat, which has the labels of all."""
        return self.entries[0]


def estimated(repeats: Sequence[Judgement], options: ScoreOptions) -> list[Estimated]:
    """Return every entry of the first repeat, with its values in all of them."""
    columns = _columns(repeats)
    designs = Designs(repeats[0].design)
    with shared_sorts():
        intervals = _intervals(columns, designs, options)
    resampled = {
        number: entries
        for number, entries in enumerate(columns)
        if intervals[number] is None and len(entries) == len(repeats)
    }
    replicates = replicates_of(resampled, repeats[0].design, options)
    return [
        _estimated(
            entries,
            intervals[number]
            or _by_replicates(entries, replicates.get(number), options),
            replicates.get(number),
        )
        for number, entries in enumerate(columns)
    ]


def _intervals(
    columns: Sequence[tuple[Entry, ...]], designs: "Designs", options: ScoreOptions
) -> list[ConfidenceInterval | None]:
    """Return the intervals that influences give, several at a time."""
    by_influence = partial(_by_influence, designs=designs, level=options.level)
    # Each takes memory for several numbers per item.
    threads = min(options.workers, max(1, AT_A_TIME // designs.items))
    if threads == 1:
        return list(map(by_influence, columns))
    with ThreadPoolExecutor(threads) as pool:
        # Every thread shares the sorts of this one.
        futures = [
            pool.submit(copy_context().run, by_influence, column) for column in columns
        ]
        return [future.result() for future in futures]


def _columns(repeats: Sequence[Judgement]) -> list[tuple[Entry, ...]]:
    """Return each entry of the first repeat with its like in every repeat."""
    by_identity = [{_identity(e): e for e in repeat.entries} for repeat in repeats]
    return [
        tuple(
            entries[_identity(entry)]
            for entries in by_identity
            if _identity(entry) in entries
        )
        for entry in repeats[0].entries
    ]


def _identity(entry: Entry) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    settings = tuple((name, str(value)) for name, value in entry.settings.items())
    return entry.subset, entry.score_name, settings


def _estimated(
    entries: tuple[Entry, ...], interval: ConfidenceInterval, replicates: Array | None
) -> Estimated:
    values = tuple(entry.value for entry in entries)
    undefined = [e.why for e, v in zip(entries, values, strict=True) if math.isnan(v)]
    return Estimated(
        entries=entries,
        values=_none_if_undefined(values),
        as_published=_none_if_undefined(tuple(entry.as_published for entry in entries)),
        interval=interval,
        replicates=replicates,
        why=undefined[0] if undefined else "",
    )


def _none_if_undefined(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return all of `values`, or none where all are undefined."""
    return () if all(map(math.isnan, values)) else values


class Designs:
    """The design of every subset of a judgement's items, each made once."""

    def __init__(self, design: Design) -> None:
        self._whole = design
        self._known: dict[int, tuple[Index, Design]] = {}

    @property
    def items(self) -> int:
        """Return the number of all items."""
        return self._whole.items

    def of(self, index: Index) -> Design:
        """Return the design of the items at `index`."""
        # The index is kept as well, so that no other array can get its address.
        if id(index) not in self._known:
            self._known[id(index)] = index, self._made(index)
        return self._known[id(index)][1]

    def _made(self, index: Index) -> Design:
        full = self._whole
        if len(index) == full.items and (index == np.arange(full.items)).all():
            return full
        design = full.of(index)
        if design.sample is not None and (design.sample == design.sample[0]).all():
            # Items of one sample are judged like a file without samples.
            return replace(design, sample=None)
        return design


def influences_of(entries: Sequence[Entry]) -> list[Influence]:
    """Return the influence of the items in every repeat; [] where it is not known."""
    influences = []
    for entry in entries:
        influence = None if entry.influence is None else entry.influence()
        if influence is None:
            return []
        influences.append(influence)
    return influences


def _by_influence(
    entries: Sequence[Entry], designs: Designs, level: float
) -> ConfidenceInterval | None:
    if not all(math.isfinite(entry.value) for entry in entries):
        return no_interval("")
    if entries[0].no_interval:
        return no_interval(entries[0].no_interval)
    influences = influences_of(entries)
    if not influences:
        return None
    return interval_of(influences, design=designs.of(entries[0].index), level=level)


def _by_replicates(
    entries: Sequence[Entry], replicates: Array | None, options: ScoreOptions
) -> ConfidenceInterval:
    if replicates is None:
        resampled = entries[0].resampled is not None
        return no_interval(FEW if resampled and not options.resamples else UNKNOWN)
    interval = percentile_interval(replicates, level=options.level)
    if interval.low == interval.high:
        return no_interval(ALIKE)
    return ConfidenceInterval(
        low=interval.low,
        high=interval.high,
        method=f"percentiles of {options.resamples} bootstrap replicates",
        undefined=interval.undefined,
    )


def replicates_of(
    columns: Mapping[K, Sequence[Entry]], design: Design, options: ScoreOptions
) -> dict[K, Array]:
    """Return replicates (B,) of the mean over repeats of columns without influence.

    All columns, of all rows and files with this design, see the same items. Repeats are
    themselves drawn anew in every replicate.
    """
    resampled = {
        key: entries
        for key, entries in columns.items()
        if all(entry.resampled is not None for entry in entries)
    }
    if not resampled or not options.resamples:
        return {}
    samples = {
        key: np.empty((len(e), options.resamples)) for key, e in resampled.items()
    }
    counts = drawn_counts(
        design.items,
        strata=design.sample,
        cluster=design.cluster,
        replicates=options.resamples,
        seed=options.seed,
    )
    for replicate, count in enumerate(counts):
        for key, entries in resampled.items():
            for repeat, entry in enumerate(entries):
                assert entry.resampled is not None
                value = entry.resampled(count[entry.index])
                samples[key][repeat, replicate] = value
        if options.progress is not None:
            options.progress(replicate + 1, options.resamples)
    return {key: _mean_of_repeats(sample, options) for key, sample in samples.items()}


def _mean_of_repeats(samples: Array, options: ScoreOptions) -> Array:
    if len(samples) == 1:
        only: Array = samples[0]
        return only
    rng = np.random.default_rng([options.seed, len(samples)])
    repeats = rng.integers(len(samples), size=samples.shape)
    mean: Array = np.take_along_axis(samples, repeats, axis=0).mean(axis=0)
    return mean


def mean_curves(repeats: Sequence[Judgement]) -> list[Curve]:
    """Return each curve of the first repeat as the mean over repeats, with its error.

    A curve that has other points in other repeats has no mean and is left out. Of a
    reliability diagram, repeats count in those bins where they have items.
    """
    columns = zip(*(repeat.curves for repeat in repeats), strict=True)
    binned = (_binned(c) if c[0].name == "reliability" else c for c in columns)
    return [_mean_curve(c) for c in binned if len({len(curve.x) for curve in c}) == 1]


def _binned(curves: Sequence[Curve]) -> list[Curve]:
    """Return reliability diagrams with all bins, nan where one is empty."""
    binned = []
    for curve in curves:
        x, y = np.full((2, RELIABILITY_BINS), np.nan)
        index = equal_width_bin(curve.x, RELIABILITY_BINS)
        x[index], y[index] = curve.x, curve.y
        binned.append(replace(curve, x=x, y=y))
    return binned


def mean_histograms(repeats: Sequence[Judgement]) -> list[Histogram]:
    """Return each histogram of the first repeat as the mean over all repeats.

    One that has other bins in other repeats has no mean and is left out.
    """
    means = []
    for histograms in zip(*(repeat.histograms for repeat in repeats), strict=True):
        first = histograms[0]
        if all(
            np.array_equal(histogram.edges, first.edges) for histogram in histograms
        ):
            counts = [
                [histogram.parts[name] for histogram in histograms]
                for name in first.parts
            ]
            averages = (np.mean(count, axis=0) for count in counts)
            parts = dict(zip(first.parts, averages, strict=True))
            means.append(replace(first, parts=parts))
    return means


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return mean over repeats, and the standard error of that mean by their deviation.

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
    placed = ~np.isnan(places)
    x = _over(np.where(placed, places, 0.0).sum(axis=0), placed.sum(axis=0))
    visible = ~np.isnan(x)
    stderr = _over(spread, np.sqrt(count))
    return replace(
        curves[0],
        x=x[visible],
        y=mean[visible],
        stderr=stderr[visible],
        low=None,
        high=None,
    )


def _over(total: Array, count: Array | Index) -> Array:
    """Return `total` / `count`, nan where there is nothing to divide by."""
    below = np.asarray(count, np.float64)
    ratio: Array = np.divide(
        total, below, out=np.full(len(below), np.nan), where=below > 0
    )
    return ratio
