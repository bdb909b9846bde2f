"""From judged repeats to numbers with intervals, for files and benchmarks alike.

A file is one repeat. A row of a benchmark has several: its runs or pools with other
seeds, judged on the same items. Intervals come from the influence of each item on the
score, summed over clusters, plus the variance between seeds (`docs/intervals.md`).
Scores without a known influence are resampled: items or whole clusters are drawn
within each sample.
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
    FEW_SEEDS,
    ONE_RUN,
    ConfidenceInterval,
    Design,
    Influence,
    Spread,
    far_apart,
    far_seeds,
    few_seeds,
    interval_of,
    left_out_spread,
    no_interval,
    reach,
    seed_spread,
)
from qualms.results import summary
from qualms.scores import about, percentile_interval, shared_sorts
from qualms.scores.calibration import equal_width_bin
from qualms.scores.resampling import drawn_counts

K = TypeVar("K", bound=Hashable)

AT_A_TIME = 1 << 24
"""Items whose influences are in memory at a time, in all threads together."""
UNKNOWN = "no interval is known to hold for this score"
ALIKE = "all items are alike: nothing tells how the score varies"
FEW_MEMBERS = (
    "a pool of {} runs does not show how far others may lie: one of 3 or more would"
)
FEW_POOLS = (
    "these pools do not show how far others may lie: 3 pools of other runs would"
)
NOT_LEFT_OUT = (
    "how far other pools may lie is not known: without one of its runs this pool has "
    "no such number"
)
FEW = "without replicates this score has no interval; ask for resamples"


class Estimated(NamedTuple):
    """One entry over all repeats, with its interval."""

    entries: tuple[Entry, ...]
    """One entry per repeat."""
    values: tuple[float, ...]
    """One value per repeat; () if undefined in all."""
    as_published: tuple[float, ...]
    """One value per repeat by the rule of the released code; () if that has none."""
    interval: ConfidenceInterval
    """Interval of the mean over repeats."""
    replicates: Array | None
    """(replicates,) means over repeats; None unless the interval needed them."""
    why: str
    """Reason why the value is undefined in all or in some repeats."""
    seeds: Spread = ONE_RUN
    """Spread of the mean over repeats due to seeds."""
    few: str = ""
    """Reason why the runs do not show this spread; '' if they do, or for one run."""
    far: bool = False
    """True if they do not since some of them lie far from the others."""

    @property
    def entry(self) -> Entry:
        """The entry of the first repeat, which has the labels of all."""
        return self.entries[0]


class Pools(NamedTuple):
    """The runs behind the repeats of a row."""

    runs: Sequence[tuple[str, ...]]
    """Runs of each repeat."""
    left_out: Sequence[Sequence[Judgement]] = ()
    """Judgements of each repeat without each of its runs in turn; () if not needed."""


def needs_left_out(runs: Sequence[tuple[str, ...]]) -> bool:
    """Return whether the spread of pools must be estimated by leaving runs out."""
    if min(map(len, runs)) < 3 or len(set().union(*runs)) < sum(map(len, runs)):
        return False
    return len(runs) == 1 or few_seeds(seed_spread(range(len(runs)), runs))


def estimated(
    repeats: Sequence[Judgement], options: ScoreOptions, pools: Pools | None = None
) -> list[Estimated]:
    """Return every entry of the first repeat, with its values in all of them.

    `pools` are the runs of each repeat; without them every repeat is a run.
    """
    columns = _columns(repeats)
    designs = Designs(repeats[0].design)
    seeds = _seeds_of_columns(columns, pools)
    with shared_sorts():
        seeds = [
            _without_far(*each, designs) for each in zip(columns, seeds, strict=True)
        ]
        intervals = _intervals(columns, seeds, designs, options)
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
            or _by_replicates(
                entries, replicates.get(number), seeds[number].spread, designs, options
            ),
            replicates.get(number),
            seeds[number],
        )
        for number, entries in enumerate(columns)
    ]


class _Seeds(NamedTuple):
    spread: Spread
    few: str = ""
    far: bool = False
    """True if some seeds lie far from the others, rather than being too few."""
    runs: Sequence[float] = ()
    """The values of single runs that a pool, judged without each of them, stands for;
    () where its values are those of the repeats."""


_FEW = Spread(0.0, 1.0, 2)


def _seeds_of_columns(
    columns: Sequence[tuple[Entry, ...]], pools: Pools | None
) -> list[_Seeds]:
    """Return the spread of each entry due to seeds."""
    if pools is None:
        spreads = (seed_spread([e.value for e in entries]) for entries in columns)
        return [_Seeds(s, FEW_SEEDS if few_seeds(s) else "") for s in spreads]
    left_out = [_columns_like(judged, columns) for judged in pools.left_out]
    return [
        _seeds(entries, pools.runs, [values[number] for values in left_out])
        for number, entries in enumerate(columns)
    ]


def _columns_like(
    judged: Sequence[Judgement], columns: Sequence[tuple[Entry, ...]]
) -> list[list[float]]:
    """Return the values of each entry in every judgement; nan where it is missing."""
    by_identity = [{_identity(e): e.value for e in one.entries} for one in judged]
    return [
        [values.get(_identity(entries[0]), math.nan) for values in by_identity]
        for entries in columns
    ]


def _seeds(
    entries: tuple[Entry, ...],
    runs: Sequence[tuple[str, ...]],
    left_out: Sequence[Sequence[float]],
) -> _Seeds:
    values = [entry.value for entry in entries]
    size = len(runs[0])
    if not all(map(math.isfinite, values)):
        return _Seeds(ONE_RUN)
    if len(values) < len(runs):  # some repeats lack it
        return _Seeds(_FEW, FEW_POOLS)
    if left_out:
        if all(math.isfinite(value) for pool in left_out for value in pool):
            # The jackknife's pseudo-values, but for a constant.
            pool = left_out[0] if len(left_out) == 1 else ()
            by_run = [(1 - len(pool)) * value for value in pool]
            return _Seeds(left_out_spread(left_out), runs=by_run)
        return _Seeds(_FEW, NOT_LEFT_OUT)
    if len(runs) == 1:
        return _Seeds(ONE_RUN) if size == 1 else _Seeds(_FEW, FEW_MEMBERS.format(size))
    spread = seed_spread(values, runs)
    if few_seeds(spread):
        return _Seeds(spread, FEW_SEEDS if size == 1 else FEW_POOLS)
    return _Seeds(spread)


def _without_far(
    entries: tuple[Entry, ...], seeds: _Seeds, designs: "Designs"
) -> _Seeds:
    """Return `seeds` with a reason for no interval where some lie far from others."""
    values = seeds.runs or [entry.value for entry in entries]
    if seeds.few or len(values) < 3 or not all(map(math.isfinite, values)):
        return seeds
    if not far_seeds(values, 0.0):
        return seeds
    design = designs.of(entries[0].index)
    reason = far_apart(values, influences_of(entries), design)
    return seeds._replace(few=reason, far=bool(reason))


def _intervals(
    columns: Sequence[tuple[Entry, ...]],
    seeds: Sequence[_Seeds],
    designs: "Designs",
    options: ScoreOptions,
) -> list[ConfidenceInterval | None]:
    """Return the intervals that influences give, several at a time."""
    by_influence = partial(_by_influence, designs=designs, level=options.level)
    # Each thread needs memory for several numbers per item.
    threads = min(options.workers, max(1, AT_A_TIME // designs.items))
    if threads == 1:
        return list(map(by_influence, columns, seeds))
    with ThreadPoolExecutor(threads) as pool:
        # All threads share the sorts of this one.
        futures = [
            pool.submit(copy_context().run, by_influence, column, each)
            for column, each in zip(columns, seeds, strict=True)
        ]
        return [future.result() for future in futures]


def _columns(repeats: Sequence[Judgement]) -> list[tuple[Entry, ...]]:
    """Return each entry of the first repeat with its counterparts in all repeats."""
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
    entries: tuple[Entry, ...],
    interval: ConfidenceInterval,
    replicates: Array | None,
    seeds: _Seeds,
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
        seeds=seeds.spread,
        few=seeds.few,
        far=seeds.far,
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
        """Number of all items."""
        return self._whole.items

    def of(self, index: Index) -> Design:
        """Return the design of the items at `index`."""
        # The index is stored as well, so that no other array gets its address.
        if id(index) not in self._known:
            self._known[id(index)] = index, self._made(index)
        return self._known[id(index)][1]

    def _made(self, index: Index) -> Design:
        full = self._whole
        if len(index) == full.items and (index == np.arange(full.items)).all():
            return full
        design = full.of(index)
        if design.sample is not None and (design.sample == design.sample[0]).all():
            # Items of a single sample are like a file without samples.
            return replace(design, sample=None)
        return design


def influences_of(entries: Sequence[Entry]) -> list[Influence]:
    """Return the influence of the items in every repeat; [] if it is not known."""
    influences = []
    for entry in entries:
        influence = None if entry.influence is None else entry.influence()
        if influence is None:
            return []
        influences.append(influence)
    return influences


def _by_influence(
    entries: Sequence[Entry], seeds: _Seeds, designs: Designs, level: float
) -> ConfidenceInterval | None:
    if not all(math.isfinite(entry.value) for entry in entries):
        return no_interval("")
    if entries[0].no_interval:
        return no_interval(entries[0].no_interval)
    if seeds.few:
        return no_interval(seeds.few)
    influences = influences_of(entries)
    if not influences:
        return None
    design = designs.of(entries[0].index)
    return interval_of(influences, design=design, level=level, seeds=seeds.spread)


def _by_replicates(
    entries: Sequence[Entry],
    replicates: Array | None,
    seeds: Spread,
    designs: Designs,
    options: ScoreOptions,
) -> ConfidenceInterval:
    few = designs.of(entries[0].index).why_too_few()
    if few:
        return no_interval(few)
    if replicates is None:
        resampled = entries[0].resampled is not None
        return no_interval(FEW if resampled and not options.resamples else UNKNOWN)
    interval = percentile_interval(replicates, level=options.level)
    if interval.low == interval.high:
        return no_interval(ALIKE)
    low, high, words = interval.low, interval.high, ""
    if seeds.variance > 0.0:
        value, extra = (
            summary([e.value for e in entries]).mean,
            reach(options.level, [seeds]),
        )
        range_of = about(entries[0].score)
        low = max(range_of.low, value - math.hypot(value - low, extra))
        high = min(range_of.high, value + math.hypot(high - value, extra))
        words = ", widened by what seeds add"
    return ConfidenceInterval(
        low=low,
        high=high,
        method=f"percentiles of {options.resamples} bootstrap replicates{words}",
        undefined=interval.undefined,
    )


def replicates_of(
    columns: Mapping[K, Sequence[Entry]], design: Design, options: ScoreOptions
) -> dict[K, Array]:
    """Return replicates (B,) of the mean over repeats of columns without influence.

    All columns, of all rows and files with this design, use the same draws of items.
    The variance between seeds is not included.
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
    return {
        key: sample[0] if len(sample) == 1 else sample.mean(axis=0)
        for key, sample in samples.items()
    }


def mean_curves(repeats: Sequence[Judgement]) -> list[Curve]:
    """Return each curve of the first repeat as the mean over repeats, with its error.

    A curve whose points differ between repeats has no mean and is left out. In a
    reliability diagram, a repeat counts in those bins where it has items.
    """
    columns = zip(*(repeat.curves for repeat in repeats), strict=True)
    binned = (_binned(c) if c[0].name == "reliability" else c for c in columns)
    return [_mean_curve(c) for c in binned if len({len(curve.x) for curve in c}) == 1]


def _binned(curves: Sequence[Curve]) -> list[Curve]:
    """Return reliability diagrams with all bins; empty bins are nan."""
    binned = []
    for curve in curves:
        x, y = np.full((2, RELIABILITY_BINS), np.nan)
        index = equal_width_bin(curve.x, RELIABILITY_BINS)
        x[index], y[index] = curve.x, curve.y
        binned.append(replace(curve, x=x, y=y))
    return binned


def mean_histograms(repeats: Sequence[Judgement]) -> list[Histogram]:
    """Return each histogram of the first repeat as the mean over all repeats.

    A histogram whose bins differ between repeats has no mean and is left out.
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
    """Return the mean over repeats with its standard error from their deviations.

    Undefined repeats are left out; the mean is nan where all are undefined.
    """
    heights = np.stack([curve.y for curve in curves])
    defined = ~np.isnan(heights)
    count = defined.sum(axis=0)
    mean = _over(np.where(defined, heights, 0.0).sum(axis=0), count)
    off = np.where(defined, heights - mean, 0.0)
    # One repeat has no spread.
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
    """Return `total` / `count`; nan where `count` is 0."""
    below = np.asarray(count, np.float64)
    ratio: Array = np.divide(
        total, below, out=np.full(len(below), np.nan), where=below > 0
    )
    return ratio
