"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Nothing but predictions files is read, so that anyone can make the numbers again from
them at any time. A run without predictions is listed, and its results stay empty; a
repeat counts as soon as all runs of its pool have predictions.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from qualms.evaluate._dead_uncertainty import name_dead
from qualms.evaluate._estimates import (
    Estimated,
    Pools,
    estimated,
    mean_curves,
    mean_histograms,
    needs_left_out,
)
from qualms.evaluate._ranking import Ranking, Rival, pair_differences, rankings
from qualms.evaluate._reading import RunReader, complete_pools
from qualms.evaluate.benchmark_results import BenchmarkResults, Check, Cost
from qualms.evaluate.entry import (
    Curve,
    Histogram,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.pairs import PairedScore, paired_score
from qualms.evaluate.protocol import (
    AbsentError,
    Beside,
    Protocol,
    Repeat,
    protocol_of,
)
from qualms.evaluate.segmented import measuring
from qualms.inference import Design, few_seeds, seed_spread
from qualms.labels import Label, Labelled, Labels
from qualms.predictions import Predictions, PredictionsError
from qualms.results import Result, ResultsTable, result, summary
from qualms.spec import RunSpec
from qualms.study import Line, RunPlan, Variant

Shape = TypeVar("Shape", Curve, Histogram, Scatter, MapSlice)


class _Judging(NamedTuple):
    """A plan, with its protocol, predictions and options."""

    plan: RunPlan
    protocol: Protocol
    reader: RunReader
    options: ScoreOptions


class _JudgedLine(NamedTuple):
    """The judged repeats of one line, or why it has none."""

    line: Line
    specs: tuple[RunSpec, ...]
    repeats: Sequence[Judgement]
    pools: Pools = Pools(())
    why: str = ""
    damaged: bool = False
    """Whether it has none because a file cannot be read."""


def judge_plan(
    plan: RunPlan, out: Path, *, options: ScoreOptions | None = None
) -> BenchmarkResults:
    """Judge every line of a plan, from the run folders in out/<benchmark>.

    Intervals are over items and repeats together (`evaluate._estimates`).

    Args:
        plan: The part of a benchmark that is judged.
        out: Folder of runs.
        options: Level of the intervals, and number and seed of replicates where these
            are needed.
    """
    options = options or ScoreOptions()
    reader = RunReader(out / plan.benchmark.name)
    gathered = _Gathered()
    with measuring(options) as shared:
        judging = _Judging(plan, protocol_of(plan.benchmark), reader, shared)
        for lines in _by_variant(judging):
            gathered.add(lines, judging)
    machines = {header.hardware or "" for header in reader.headers.values()}
    results = BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(gathered.results),
        curves=Labelled.of(gathered.curves),
        histograms=Labelled.of(gathered.histograms),
        scatters=Labelled.of(gathered.scatters),
        slices=Labelled.of(gathered.slices),
        pairs=tuple(gathered.pairs),
        missing=reader.unread({result.why for result in gathered.results}),
        hardware=tuple(sorted(machines - {""})),
        seconds=_seconds(reader, _trained(judging)),
        costs=gathered.costs,
        notes=(*gathered.damaged, *gathered.warnings, *_notes(judging)),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )
    return replace(results, checks=checks_of(results))


def checks_of(results: BenchmarkResults) -> tuple[Check, ...]:
    """Decide by the results whether the benchmark's expected effects hold."""
    expectations = results.benchmark.expectations.get(results.preset.name, ())
    checks = (Check.of(expectation, results) for expectation in expectations)
    return tuple(check for check in checks if check.values)


@dataclass(frozen=True, slots=True)
class _Gathered:
    """Results and drawings so far, variant after variant."""

    results: list[Result] = field(default_factory=list)
    curves: list[tuple[Labels, Curve]] = field(default_factory=list)
    histograms: list[tuple[Labels, Histogram]] = field(default_factory=list)
    scatters: list[tuple[Labels, Scatter]] = field(default_factory=list)
    slices: list[tuple[Labels, MapSlice]] = field(default_factory=list)
    pairs: list[PairedScore] = field(default_factory=list)
    costs: dict[tuple[str, str], Cost] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    """Notes on lines whose files cannot be read."""
    warned: dict[str, dict[str, None]] = field(default_factory=dict)
    """The lines that each warning is about, in order."""

    @property
    def warnings(self) -> Iterator[str]:
        """Every warning with its lines."""
        for warning, lines in self.warned.items():
            yield f"{warning}: {', '.join(lines)}"

    def add(self, lines: list[_JudgedLine], judging: _Judging) -> None:
        """Estimate and rank the lines of one variant."""
        options = judging.options
        for judged in lines:
            self._skip(judged)
            variant, row = judged.line.variant, judged.line.row
            self._warn(judged, *(w for r in judged.repeats for w in r.warnings))
            self.costs[variant.name, row.name] = _cost(judging.reader, judged.specs)
        numbers = []
        for judged in (line for line in lines if line.repeats):
            named, dead = name_dead(
                estimated(judged.repeats, options, judged.pools),
                judged.repeats[0].design,
                level=options.level,
            )
            numbers.append((judged, named))
            self._warn(judged, *dead)
        ranked = _rankings(numbers, options)
        self.pairs.extend(_pairs(numbers, options))
        for judged, each in numbers:
            for number in each:
                ranking = ranked.get(_column(judged.line, number))
                self.results.append(_result(judged.line, number, ranking))
            self._draw(judged)

    def _warn(self, judged: _JudgedLine, *warnings: str) -> None:
        for warning in warnings:
            name = f"{judged.line.row.label} on {judged.line.variant.label}"
            self.warned.setdefault(warning, {})[name] = None

    def _draw(self, judged: _JudgedLine) -> None:
        line, repeats = judged.line, judged.repeats
        self.curves.extend(_labelled(line, mean_curves(repeats)))
        self.histograms.extend(_labelled(line, mean_histograms(repeats)))
        self.scatters.extend(_labelled(line, repeats[0].scatters))
        self.slices.extend(_labelled(line, repeats[0].slices))

    def _skip(self, judged: _JudgedLine) -> None:
        """Keep the reason why a line has no numbers, if it has none."""
        if judged.repeats:
            return
        line = judged.line
        self.results.append(Result(labels=line.labels, why=judged.why))
        if judged.damaged:
            self.damaged.append(
                f"{line.row.label} has no number on {line.variant.label}: {judged.why}"
            )


def _by_variant(judging: _Judging) -> Iterator[list[_JudgedLine]]:
    """Yield the lines of one variant after the other."""
    # Variants that share their runs stand side by side; others need not stay in memory.
    variants = judging.plan.variants
    for _, group in groupby(variants, key=lambda variant: variant.dataset):
        for variant in group:
            yield _judged_lines(judging, variant)
        judging.reader.forget()


def _judged_lines(judging: _Judging, variant: Variant) -> list[_JudgedLine]:
    """Judge the repeats of every line of a variant, several at a time."""
    waiting = [_waiting(judging, line) for line in judging.plan.lines_of(variant)]
    workers = judging.options.workers
    # Lines share the threads, as many threads each as there are would mostly wait for
    # the interpreter; processes serve one file at a time, whichever line it is of.
    # Repeats of a line wait for what is fitted on all of them.
    count = max(1, sum(bool(line.pools) for line in waiting))
    options = replace(judging.options, workers=-(-workers // count))
    # Threads of a matrix product beside those of other repeats would mostly wait.
    spare = max(1, workers // max(1, sum(len(line.pools) for line in waiting)))
    # The kernels release the interpreter's lock, so threads really run at once.
    with ThreadPoolExecutor(workers) as pool, threadpool_limits(spare):
        judge = judging.protocol.judge
        repeats = [
            [
                pool.submit(judge, _repeat(judging, line, runs, options))
                for runs in line.pools
            ]
            for line in waiting
        ]
        left_out = [
            [
                [
                    pool.submit(judge, part)
                    for part in _parts(judging, line, place, options)
                ]
                for place in range(len(line.pools) * _leaves_out(line))
            ]
            for line in waiting
        ]
        try:
            return [
                _finished(*each)
                for each in zip(waiting, repeats, left_out, strict=True)
            ]
        except BaseException:  # also Ctrl-C: nobody will read the rest
            if options.workforce is not None:
                options.workforce.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _WaitingLine(NamedTuple):
    line: Line
    pools: Sequence[Sequence[RunSpec]]
    why: str = ""


def _waiting(judging: _Judging, line: Line) -> _WaitingLine:
    try:
        pools = complete_pools(line, judging.plan.preset, judging.reader)
    except (AbsentError, PredictionsError) as error:
        return _WaitingLine(line, (), str(error))
    return _WaitingLine(line, pools)


def _repeat(
    judging: _Judging,
    waiting: _WaitingLine,
    specs: Sequence[RunSpec],
    options: ScoreOptions,
) -> Repeat:
    """Return what judges the pool of these runs, or a part of a pool."""
    pooled = judging.reader.pooled

    def every(split: str) -> list[Predictions]:
        return [pooled(each, split) for each in waiting.pools]

    return Repeat(
        waiting.line,
        partial(pooled, specs),
        options,
        every,
        partial(_beside, judging, waiting.line, [spec.seed for spec in specs]),
    )


def _leaves_out(waiting: _WaitingLine) -> bool:
    """Return whether its pools are judged without each of their runs as well."""
    runs = [tuple(spec.hash for spec in pool) for pool in waiting.pools]
    return bool(runs) and needs_left_out(runs)


def _parts(
    judging: _Judging, waiting: _WaitingLine, place: int, options: ScoreOptions
) -> Iterator[Repeat]:
    """Yield what judges a pool without each of its runs in turn."""
    runs = waiting.pools[place]
    for run in range(len(runs)):
        rest = (*runs[:run], *runs[run + 1 :])
        yield _repeat(judging, waiting, rest, options)._replace(part_of=place)


def _beside(
    judging: _Judging, line: Line, seeds: Sequence[int], row: str
) -> list[Beside]:
    """Find the repeats of `row` with these seeds, one for each of its lines."""
    repeats = []
    for other in judging.plan.lines_of(line.variant):
        if other.row.name == row:
            runs = {run.seed: run for run in other.runs}
            specs = [runs[seed] for seed in seeds]
            read = partial(_read_pooled, judging.reader, specs)
            repeats.append(Beside(other.at, read))
    return repeats


def _read_pooled(
    reader: RunReader, specs: Sequence[RunSpec], split: str
) -> Predictions:
    """Read pooled predictions; raise `AbsentError` where a run is missing."""
    for spec in specs:
        if not reader.present(spec):
            raise AbsentError(f"run {spec.hash} {reader.missing[spec.hash].reason}")
    return reader.pooled(specs, split)


def _finished(
    waiting: _WaitingLine,
    repeats: Sequence[Future[Judgement]],
    left_out: Sequence[Sequence[Future[Judgement]]],
) -> _JudgedLine:
    members = {spec.hash: spec for specs in waiting.pools for spec in specs}
    specs = tuple(members.values())
    if waiting.why:
        return _JudgedLine(waiting.line, specs, (), why=waiting.why)
    try:
        judged = [repeat.result() for repeat in repeats]
        parts = [[_part(part) for part in pool] for pool in left_out]
    except (AbsentError, PredictionsError) as error:
        damaged = isinstance(error, PredictionsError)
        return _JudgedLine(waiting.line, specs, (), why=str(error), damaged=damaged)
    runs = [tuple(spec.hash for spec in pool) for pool in waiting.pools]
    return _JudgedLine(waiting.line, specs, judged, Pools(runs, parts))


def _part(judged: Future[Judgement]) -> Judgement:
    """Return the judgement of a part of a pool; one without numbers if it has none."""
    try:
        return judged.result()
    except (AbsentError, PredictionsError):
        return Judgement(entries=(), design=Design(items=1))


Column = tuple[tuple[str, Label], ...]
"""Labels that numbers of different rows must share to be ranked, as pairs."""


def _column(line: Line, number: Estimated) -> Column:
    return tuple({**line.at, **_own_labels(number)}.items())


def _own_labels(number: Estimated) -> Labels:
    """Return the labels of a number that decide which others it is ranked with."""
    entry = number.entry
    return {**entry.settings, "subset": entry.subset, "score": entry.score_name}


def _result(line: Line, number: Estimated, ranking: Ranking | None) -> Result:
    interval = number.interval
    row = result(
        {**line.labels, **number.entry.labels, **_own_labels(number)},
        number.values,
        released_values=number.as_published,
        low=interval.low,
        high=interval.high,
        interval_method=interval.method,
        no_interval=interval.reason,
        covers=_covers(number),
        why=number.why,
    )
    if ranking is None:
        return row
    difference = ranking.differences.get(line.row.name)
    if difference is not None:
        row = replace(
            row,
            difference=difference.value,
            difference_low=difference.low,
            difference_high=difference.high,
        )
    return replace(
        row,
        best=ranking.group.best,
        tied=line.row.name in ranking.group.members,
        no_winner=ranking.group.reason,
    )


def _covers(number: Estimated) -> str:
    """Return what the interval of a number is about; '' where it says nothing."""
    if number.few:
        return "these runs"
    if not math.isfinite(number.interval.low):
        return ""
    return "items" if number.seeds.units < 2 else "items and seeds"


def _rankings(
    numbers: Sequence[tuple[_JudgedLine, Sequence[Estimated]]], options: ScoreOptions
) -> dict[Column, Ranking]:
    """Find out who may be best in each column of a variant."""
    if not numbers:
        return {}
    return rankings(_rivals(numbers), numbers[0][0].repeats[0].design, options)


def _pairs(
    numbers: Sequence[tuple[_JudgedLine, Sequence[Estimated]]], options: ScoreOptions
) -> Iterator[PairedScore]:
    """Yield the difference of every two rows in each column of a variant."""
    if not numbers:
        return
    first = numbers[0][0]
    columns, design = _rivals(numbers), first.repeats[0].design
    for key, pairs in pair_differences(columns, design, options).items():
        values = {rival.name: rival.value for rival in columns[key]}
        labels = {"variant": first.line.variant.name, **dict(key)}
        yield paired_score(labels, columns[key][0].entries[0], values, pairs)


def _rivals(
    numbers: Sequence[tuple[_JudgedLine, Sequence[Estimated]]],
) -> dict[Column, list[Rival]]:
    """Return the rows with a number in each column of a variant."""
    columns: dict[Column, list[Rival]] = {}
    for judged, each in numbers:
        for number in each:
            value = summary(number.values).mean
            rival = Rival(
                judged.line.row.name,
                value,
                number.entries,
                number.replicates,
                number.seeds,
                number.few,
            )
            columns.setdefault(_column(judged.line, number), []).append(rival)
    return columns


def _labelled(line: Line, shapes: Iterable[Shape]) -> Iterator[tuple[Labels, Shape]]:
    """Yield what figures draw, with the labels of its line and its own."""
    for shape in shapes:
        labels = {"subset": shape.subset, "name": shape.name}
        yield {**line.labels, **shape.settings, **labels}, shape


def _cost(reader: RunReader, specs: Sequence[RunSpec]) -> Cost:
    hashes = [spec.hash for spec in specs]
    parameters = [reader.headers[name].parameters for name in hashes]
    costs = [reader.costs(name) for name in hashes]
    seconds = _seconds(reader, hashes)
    epochs = sum(spec.training.get("epochs", 0) for spec in specs)
    return Cost(
        seconds=seconds,
        parameters=next((count for count in parameters if count is not None), None),
        per_epoch=seconds / epochs if seconds is not None and epochs else None,
        per_item=_mean(cost.per_item for cost in costs),
        per_crop=_mean(cost.per_crop for cost in costs),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that were recorded."""
    recorded = [value for value in values if value is not None]
    return math.fsum(recorded) / len(recorded) if recorded else None


def _trained(judging: _Judging) -> set[str]:
    """Return the runs that were trained; others have the cost of borrowed weights.

    Runs that differ only in how an epoch is chosen share a training: one of them.
    """
    headers = judging.reader.headers
    present = [spec for spec in judging.plan.runs if spec.hash in headers]
    trained = [spec for spec in present if spec.training.get("epochs") != 0]
    return {*{(spec.training_key, spec.seed): spec.hash for spec in trained}.values()}


def _seconds(reader: RunReader, hashes: Iterable[str]) -> float | None:
    """Return the seconds of all these runs together, as far as recorded."""
    seconds = [reader.costs(name).training for name in hashes]
    recorded = [value for value in seconds if value is not None]
    return math.fsum(recorded) if recorded else None


def _notes(judging: _Judging) -> Iterator[str]:
    """Yield what a reader of the tables must know, the most important first."""
    plan, options = judging.plan, judging.options
    yield from _pool_notes(plan)
    yield _interval_note(plan, options.level)
    yield from judging.protocol.notes(plan, options)
    for variant in plan.variants:
        if text := plan.selection_text(variant):
            yield f"{variant.name}: {text}"


def _interval_note(plan: RunPlan, level: float) -> str:
    """Say what intervals cover, and which rows have none."""
    kinds = {_kind(line) for line in plan.lines if line.pools}
    items = "other items (whole clusters, such as patients, where they are known)"
    parts = []
    if "seeds" in kinds:
        parts.append(f"{items} and other seeds, which are taken to vary about normally")
    if "one run" in kinds:
        alone = "of rows of one run other items alone" if parts else items
        parts.append(f"{alone}, not other seeds")
    text = f"{level:.0%} intervals cover {'; '.join(parts)}" if parts else ""
    if "few" in kinds:
        few = (
            "rows of 2 runs have no interval and no winner, since 2 do not show how "
            "far others may lie: their numbers are of these runs"
        )
        text = f"{text}; {few}" if text else few
    return text or f"{level:.0%} intervals cover {items}"


def _kind(line: Line) -> str:
    """Return whether a line has one run, too few to say how others lie, or enough."""
    runs = [tuple(spec.hash for spec in pool) for pool in line.pools]
    if len(runs) == len(runs[0]) == 1:
        return "one run"
    several = len(runs) > 1 and not few_seeds(seed_spread(range(len(runs)), runs))
    return "seeds" if several or needs_left_out(runs) else "few"


def _pool_notes(plan: RunPlan) -> Iterator[str]:
    pools, seeds = plan.ensembles, plan.seeds
    if sum(map(len, pools)) > len(seeds) and len(pools) > 1:
        yield (
            f"the {len(pools)} pools are drawn from {len(seeds)} runs: they "
            "share some, and spread less than separate ensembles would; intervals "
            "allow for that"
        )
    elif len(pools) == 1 and len(pools[0]) > 2:
        yield (
            f"the {len(seeds)} runs form one pool: what other runs would change is "
            "estimated by leaving out one at a time"
        )
