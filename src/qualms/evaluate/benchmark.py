"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Nothing is trained or looked up here but predictions files, so that numbers can be made
again from them at any time, and by anyone. A run that is not there is listed and leaves
its cells empty; a repeat counts as soon as all runs of its pool are there.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from qualms.benchmarks import (
    Benchmark,
    Place,
    Preset,
    Variant,
    ensembles,
    repeats_of,
    selection_text,
    settings_text,
)
from qualms.evaluate._segmented import measuring
from qualms.evaluate.checks import checks_of
from qualms.evaluate.entry import (
    Curve,
    Histogram,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.kernel import (
    Estimated,
    estimated,
    mean_curves,
    mean_histograms,
)
from qualms.evaluate.protocols import (
    AbsentError,
    Beside,
    Protocol,
    Repeat,
    protocol_of,
)
from qualms.evaluate.ranking import Ranking, Rival, rankings
from qualms.evaluate.reading import RunReader, complete_pools
from qualms.evaluate.results import (
    BenchmarkResults,
    Cell,
    Cost,
    DrawnKey,
    Key,
    summary,
)
from qualms.predictions import Predictions, PredictionsError
from qualms.scores import Difference
from qualms.scores.inference import ConfidenceSet
from qualms.spec import RunSpec


class _Judging(NamedTuple):
    """What is judged, by what, from where."""

    benchmark: Benchmark
    preset: Preset
    protocol: Protocol
    reader: RunReader
    options: ScoreOptions


class _JudgedRow(NamedTuple):
    """One row at one place: its repeats, or why it has none."""

    place: Place
    specs: tuple[RunSpec, ...]
    repeats: Sequence[Judgement]
    why: str = ""
    damaged: bool = False
    """Whether that is because a file cannot be read."""


def judge(
    benchmark: Benchmark,
    preset: Preset,
    out: Path,
    *,
    options: ScoreOptions | None = None,
) -> BenchmarkResults:
    """Every cell of `benchmark` at `preset`, from the run folders in out/<benchmark>.

    Intervals are over items and repeats together, see `kernel.py`; `options` gives
    their level, and the number and seed of replicates where these are needed.
    """
    options = options or ScoreOptions()
    reader = RunReader(out / benchmark.name)
    found = _Gathered()
    with measuring(options) as shared:
        asked = _Judging(benchmark, preset, protocol_of(benchmark), reader, shared)
        for rows in _variants(asked):
            found.add(rows, asked)
    machines = {header.hardware or "" for header in reader.headers.values()}
    return BenchmarkResults(
        benchmark=benchmark,
        preset=preset,
        cells=found.cells,
        ties=found.ties,
        differences=found.differences,
        curves=found.curves,
        histograms=found.histograms,
        scatters=found.scatters,
        slices=found.slices,
        checks=checks_of(benchmark, preset, found.cells),
        missing=reader.unread(found.reasons()),
        absent=found.absent,
        hardware=tuple(sorted(machines - {""})),
        seconds=_seconds(reader, _trained(asked)),
        costs=found.costs,
        notes=(*found.damaged, *_notes(asked)),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What has been found so far, variant after variant."""

    cells: dict[Key, Cell] = field(default_factory=dict)
    ties: dict[Key, ConfidenceSet] = field(default_factory=dict)
    differences: dict[Key, Difference] = field(default_factory=dict)
    curves: dict[DrawnKey, Curve] = field(default_factory=dict)
    histograms: dict[DrawnKey, Histogram] = field(default_factory=dict)
    scatters: dict[DrawnKey, Scatter] = field(default_factory=dict)
    slices: dict[DrawnKey, MapSlice] = field(default_factory=dict)
    costs: dict[tuple[str, str], Cost] = field(default_factory=dict)
    absent: dict[Key, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    """Notes on rows whose files cannot be read."""

    def reasons(self) -> set[str]:
        """Why rows and cells have no numbers."""
        return {*self.absent.values(), *(cell.why for cell in self.cells.values())}

    def add(self, rows: list[_JudgedRow], asked: _Judging) -> None:
        """Estimate and rank the rows of one variant."""
        options = asked.options
        for row in rows:
            self._skip(row, asked.benchmark)
            where = row.place.variant.name, row.place.row.name
            self.costs[where] = _cost(asked.reader, row.specs)
        found = [(row, estimated(row.repeats, options)) for row in rows if row.repeats]
        for row, each in found:
            self.cells.update((_key(row.place, e), _cell(row.place, e)) for e in each)
            self.curves.update((_drawn(row, c), c) for c in mean_curves(row.repeats))
            self.histograms.update(
                (_drawn(row, h), h) for h in mean_histograms(row.repeats)
            )
            first = row.repeats[0]
            self.scatters.update((_drawn(row, s), s) for s in first.scatters)
            self.slices.update((_drawn(row, s), s) for s in first.slices)
        for key, settled in _rankings(found, options).items():
            self.ties[key] = settled.group
            for name, difference in settled.differences.items():
                self.differences[key._replace(row=name)] = difference

    def _skip(self, row: _JudgedRow, benchmark: Benchmark) -> None:
        """Say why a row has no numbers, if it has none."""
        if row.repeats:
            return
        variant, which, settings = row.place
        key = Key(variant.name, which.name, settings_text(settings), "")
        self.absent[key] = row.why
        for score in benchmark.scores:
            named = key._replace(score=score)
            self.cells[named] = Cell(key=named, why=row.why)
        if row.damaged:
            self.damaged.append(
                f"{which.label} has no number on {variant.label}: {row.why}"
            )


def _variants(asked: _Judging) -> Iterator[list[_JudgedRow]]:
    """The rows of one variant after the other."""
    # Variants that share their runs stand side by side; others need not stay in memory.
    variants = asked.preset.variants
    for _, group in groupby(variants, key=lambda variant: variant.dataset):
        for variant in group:
            yield _rows_of(asked, variant)
        asked.reader.forget()


def _rows_of(asked: _Judging, variant: Variant) -> list[_JudgedRow]:
    """Every row of a variant with its repeats, which are judged several at a time."""
    places = asked.benchmark.places(asked.preset, variant)
    waiting = [_waiting(asked, place) for place in places]
    workers = asked.options.workers
    # Rows share the threads, as many threads each as there are would mostly wait for
    # the interpreter; processes serve one file at a time, whichever row it is of.
    # Repeats of a row wait for what is fitted on all of them.
    rows = max(1, sum(bool(row.pools) for row in waiting))
    own = replace(asked.options, workers=-(-workers // rows))
    # Threads of a matrix product beside those of other repeats would mostly wait.
    spare = max(1, workers // max(1, sum(len(row.pools) for row in waiting)))
    # The kernels release the interpreter's lock, so threads really run at once.
    with ThreadPoolExecutor(workers) as pool, threadpool_limits(spare):
        judged = [
            [pool.submit(asked.protocol.judge, r) for r in _repeats(asked, row, own)]
            for row in waiting
        ]
        try:
            return [_finished(*both) for both in zip(waiting, judged, strict=True)]
        except BaseException:  # also Ctrl-C: what nobody will read is not judged
            if own.workforce is not None:
                own.workforce.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Waiting(NamedTuple):
    place: Place
    pools: Sequence[Sequence[RunSpec]]
    why: str = ""


def _waiting(asked: _Judging, place: Place) -> _Waiting:
    try:
        pools = complete_pools(asked.benchmark, asked.preset, place, asked.reader)
    except (AbsentError, PredictionsError) as error:
        return _Waiting(place, (), str(error))
    return _Waiting(place, pools)


def _repeats(asked: _Judging, row: _Waiting, options: ScoreOptions) -> list[Repeat]:
    pooled = asked.reader.pooled

    def every(split: str) -> list[Predictions]:
        return [pooled(specs, split) for specs in row.pools]

    return [
        Repeat(
            row.place,
            partial(pooled, specs),
            options,
            every,
            partial(_beside, asked, row.place.variant, [spec.seed for spec in specs]),
        )
        for specs in row.pools
    ]


def _beside(
    asked: _Judging, variant: Variant, seeds: Sequence[int], row: str
) -> list[Beside]:
    """The repeats of `row` with these seeds, one for each of its places."""
    benchmark, preset = asked.benchmark, asked.preset
    found = []
    for place in benchmark.places(preset, variant):
        if place.row.name == row:
            specs = [benchmark.spec(preset, place, seed) for seed in seeds]
            found.append(Beside(place.settings, partial(_there, asked.reader, specs)))
    return found


def _there(reader: RunReader, specs: Sequence[RunSpec], split: str) -> Predictions:
    for spec in specs:
        if not reader.present(spec):
            raise AbsentError(f"run {spec.hash} {reader.missing[spec.hash].reason}")
    return reader.pooled(specs, split)


def _finished(row: _Waiting, repeats: Sequence[Future[Judgement]]) -> _JudgedRow:
    members = {spec.hash: spec for specs in row.pools for spec in specs}
    specs = tuple(members.values())
    if row.why:
        return _JudgedRow(row.place, specs, (), row.why)
    try:
        judged = [repeat.result() for repeat in repeats]
    except (AbsentError, PredictionsError) as error:
        damaged = isinstance(error, PredictionsError)
        return _JudgedRow(row.place, specs, (), str(error), damaged)
    return _JudgedRow(row.place, specs, judged)


def _key(place: Place, found: Estimated) -> Key:
    known = settings_text({**place.settings, **found.entry.settings})
    return Key(place.variant.name, place.row.name, known, found.entry.key)


def _cell(place: Place, found: Estimated) -> Cell:
    return Cell(
        key=_key(place, found),
        values=found.values,
        as_published=found.as_published,
        low=found.interval.low,
        high=found.interval.high,
        why=found.why,
        method=found.interval.method,
        no_interval=found.interval.reason,
    )


Found = Sequence[tuple[_JudgedRow, Sequence[Estimated]]]


def _rankings(rows: Found, options: ScoreOptions) -> dict[Key, Ranking]:
    """Who may be best in each column of a variant; the row of its key is ''."""
    if not rows:
        return {}
    columns: dict[Key, list[Rival]] = {}
    for row, each in rows:
        for one in each:
            key = _key(row.place, one)
            value = summary(one.values).mean
            rival = Rival(key.row, value, one.entries, one.replicates)
            columns.setdefault(key._replace(row=""), []).append(rival)
    return rankings(columns, rows[0][0].repeats[0].design, options)


def _drawn(row: _JudgedRow, drawn: Curve | Histogram | Scatter | MapSlice) -> DrawnKey:
    place = row.place
    known = settings_text({**place.settings, **drawn.settings})
    return DrawnKey(place.variant.name, place.row.name, known, drawn.subset, drawn.name)


def _cost(reader: RunReader, specs: Sequence[RunSpec]) -> Cost:
    hashes = [spec.hash for spec in specs]
    known = [reader.headers[name].parameters for name in hashes]
    costs = [reader.costs(name) for name in hashes]
    seconds = _seconds(reader, hashes)
    epochs = sum(spec.training.get("epochs", 0) for spec in specs)
    return Cost(
        seconds=seconds,
        parameters=next((count for count in known if count is not None), None),
        per_epoch=seconds / epochs if seconds is not None and epochs else None,
        per_item=_mean(cost.per_item for cost in costs),
        per_crop=_mean(cost.per_crop for cost in costs),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _trained(asked: _Judging) -> set[str]:
    """Runs that were trained; others state the cost of the weights they were lent.

    One of those that differ in how an epoch is chosen alone: they share a training.
    """
    runs = asked.benchmark.runs(asked.preset)
    there = [spec for spec in runs if spec.hash in asked.reader.headers]
    trained = [spec for spec in there if spec.training.get("epochs") != 0]
    return {*{(spec.training_key, spec.seed): spec.hash for spec in trained}.values()}


def _seconds(reader: RunReader, hashes: Iterable[str]) -> float | None:
    """Return the seconds of all these runs together, as far as they are known."""
    seconds = [reader.costs(name).training for name in hashes]
    known = [value for value in seconds if value is not None]
    return math.fsum(known) if known else None


def _notes(asked: _Judging) -> Iterator[str]:
    """What a reader of the tables must know, of any benchmark and of this one."""
    benchmark, preset, protocol, _, options = asked
    for variant in preset.variants:
        if text := selection_text(benchmark, preset, variant):
            yield f"{variant.name}: {text}"
    yield from protocol.notes(benchmark, preset, options)
    yield from _pool_notes(benchmark, preset)
    places = (p for v in preset.variants for p in benchmark.places(preset, v))
    repeats = max((len(repeats_of(preset, place)) for place in places), default=1)
    seeds = " and other seeds would change"
    if repeats < 2:
        seeds = " would change, not what other seeds would: rows have one repeat"
    yield (
        f"{options.level:.0%} intervals cover what other items (whole clusters, such "
        f"as patients, where they are known){seeds}"
    )


def _pool_notes(benchmark: Benchmark, preset: Preset) -> Iterator[str]:
    pools = ensembles(benchmark, preset)
    if sum(map(len, pools)) > len(preset.seeds) and len(pools) > 1:
        yield (
            f"the {len(pools)} pools are drawn from {len(preset.seeds)} runs: they "
            "share some, and spread less than separate ensembles would"
        )
    elif len(pools) == 1:
        yield (
            f"the {len(preset.seeds)} runs form one pool, so pools have one repeat: "
            "their intervals do not cover what other runs would change"
        )
