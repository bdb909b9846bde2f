"""Judging the lines of one variant: numbers with intervals, rankings, and drawings.

A variant is the unit of judging: only its own rows are compared with one another, so
that variants may be judged in any order, in any process, and stored separately.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from qualms.evaluate._dead_uncertainty import name_dead
from qualms.evaluate._ranking import Ranking, Rival, pair_differences, rankings
from qualms.evaluate._reading import RunReader, complete_pools
from qualms.evaluate.benchmark_results import Cost, Missing
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Histogram,
    Judgement,
    MapSlice,
    Scatter,
    ScoreOptions,
)
from qualms.evaluate.estimates import (
    Estimated,
    Pools,
    estimated,
    mean_curves,
    mean_histograms,
    needs_left_out,
)
from qualms.evaluate.pairs import PairedScore, paired_score
from qualms.evaluate.protocol import AbsentError, Beside, Protocol, Repeat
from qualms.evaluate.uncertainty_ranking import (
    UncertaintyRanking,
    uncertainty_rankings,
)
from qualms.inference import Design
from qualms.labels import Label, Labels, labels_text
from qualms.predictions import Predictions, PredictionsError
from qualms.results import Result, result, summary
from qualms.spec import RunSpec
from qualms.study import Line, RunPlan, Variant

Shape = TypeVar("Shape", Curve, Histogram, Scatter, MapSlice)


class Judging(NamedTuple):
    """A plan, with its protocol, predictions and options."""

    plan: RunPlan
    protocol: Protocol
    reader: RunReader
    options: ScoreOptions


class _JudgedLine(NamedTuple):
    """The judged repeats of one line, or the reason for having none."""

    line: Line
    specs: tuple[RunSpec, ...]
    repeats: Sequence[Judgement]
    pools: Pools = Pools(())
    why: str = ""
    damaged: bool = False
    """True if it has none because a file cannot be read."""


class RunFacts(NamedTuple):
    """Facts that a run states about itself."""

    hardware: str
    training: float | None
    """Seconds of its training; None if unknown."""


@dataclass(frozen=True, slots=True)
class JudgedVariant:
    """Results and drawings of one variant, as records of numbers only."""

    results: list[Result] = field(default_factory=list)
    curves: list[tuple[Labels, Curve]] = field(default_factory=list)
    histograms: list[tuple[Labels, Histogram]] = field(default_factory=list)
    scatters: list[tuple[Labels, Scatter]] = field(default_factory=list)
    slices: list[tuple[Labels, MapSlice]] = field(default_factory=list)
    pairs: list[PairedScore] = field(default_factory=list)
    uncertainties: list[UncertaintyRanking] = field(default_factory=list)
    costs: dict[tuple[str, str], Cost] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    """Notes on lines whose files cannot be read."""
    warned: dict[str, dict[str, None]] = field(default_factory=dict)
    """The lines that each warning is about, in order."""
    missing: dict[str, Missing] = field(default_factory=dict)
    """Runs without readable predictions, by their hash."""
    unread: dict[str, Missing] = field(default_factory=dict)
    """Runs that are present, but have maps that cannot be read."""
    facts: dict[str, RunFacts] = field(default_factory=dict)
    """Facts about the runs that were read, by their hash."""
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    """Scores of runs that are repeats by themselves, by hash and name of the score."""


def judge_variant(judging: Judging, variant: Variant) -> JudgedVariant:
    """Judge the lines of one variant, and rank them."""
    judged = JudgedVariant()
    _add_lines(judged, _judged_lines(judging, variant), judging)
    reader = judging.reader
    runs = {r.hash: r for line in judging.plan.lines_of(variant) for r in line.runs}
    for name in runs:
        if name in reader.missing:
            judged.missing[name] = reader.missing[name]
        if name in reader.headers:
            hardware = reader.headers[name].hardware or ""
            judged.facts[name] = RunFacts(hardware, reader.costs(name).training)
    reasons = {result.why for result in judged.results}
    judged.unread.update(reader.unread(runs.values(), reasons))
    return judged


def _add_lines(
    variant: JudgedVariant, lines: Sequence[_JudgedLine], judging: Judging
) -> None:
    """Estimate and rank the lines of one variant."""
    options = judging.options
    for judged in lines:
        _skip(variant, judged)
        place = judged.line.variant.name, judged.line.row.name
        _warn(variant, judged, *(w for r in judged.repeats for w in r.warnings))
        variant.costs[place] = _cost(judging.reader, judged.specs)
    numbers = []
    for judged in (line for line in lines if line.repeats):
        named, dead = name_dead(
            estimated(judged.repeats, options, judged.pools),
            judged.repeats[0].design,
            level=options.level,
        )
        numbers.append((judged, named))
        _warn(variant, judged, *dead)
    ranked = _rankings(numbers, options)
    if all(judged.line.variant.listed for judged in lines):
        variant.pairs.extend(_pairs(numbers, options))
    variant.uncertainties.extend(_uncertainties(numbers, options))
    for judged, each in numbers:
        for number in each:
            ranking = ranked.get(_column(judged.line, number))
            variant.results.append(_result(judged.line, number, ranking))
        _keep_scores(variant, judged, each)
        _draw(variant, judged)


def _keep_scores(
    variant: JudgedVariant, judged: _JudgedLine, numbers: Sequence[Estimated]
) -> None:
    """Store the scores of single runs, from the first line that shows each of them."""
    names = _score_names([number.entry for number in numbers])
    for place, pool in enumerate(judged.pools.runs):
        if len(pool) > 1 or pool[0] in variant.scores:
            continue
        variant.scores[pool[0]] = {
            name: number.values[place]
            for name, number in zip(names, numbers, strict=True)
            if len(number.values) == len(judged.pools.runs)
        }


def _score_names(entries: Sequence[Entry]) -> list[str]:
    """Return a name for each entry; the first, main one has the name of its score."""
    names: dict[str, None] = {}
    for entry in entries:
        on_subset = f"{entry.score_name}.{entry.subset}"
        precise = f"{on_subset}[{labels_text(entry.settings)}]"
        choices = (entry.score_name, on_subset, precise, f"{precise}.{len(names)}")
        names[next(name for name in choices if name not in names)] = None
    return list(names)


def _warn(variant: JudgedVariant, judged: _JudgedLine, *warnings: str) -> None:
    for warning in warnings:
        name = f"{judged.line.row.label} on {judged.line.variant.label}"
        variant.warned.setdefault(warning, {})[name] = None


def _draw(variant: JudgedVariant, judged: _JudgedLine) -> None:
    line, repeats = judged.line, judged.repeats
    variant.curves.extend(_labelled(line, mean_curves(repeats)))
    variant.histograms.extend(_labelled(line, mean_histograms(repeats)))
    variant.scatters.extend(_labelled(line, repeats[0].scatters))
    variant.slices.extend(_labelled(line, repeats[0].slices))


def _skip(variant: JudgedVariant, judged: _JudgedLine) -> None:
    """Store the reason why a line has no numbers, if it has none."""
    if judged.repeats:
        return
    line = judged.line
    variant.results.append(Result(labels=line.labels, why=judged.why))
    if judged.damaged:
        variant.damaged.append(
            f"{line.row.label} has no number on {line.variant.label}: {judged.why}"
        )


def _judged_lines(judging: Judging, variant: Variant) -> list[_JudgedLine]:
    """Judge the repeats of every line of a variant, several at a time."""
    waiting = [_waiting(judging, line) for line in judging.plan.lines_of(variant)]
    workers = judging.options.workers
    # Lines share the threads: with all threads for each line, most would wait for the
    # interpreter. Processes serve one file at a time, of any line. Repeats of a line
    # wait for fits on all of them.
    count = max(1, sum(bool(line.pools) for line in waiting))
    options = replace(judging.options, workers=-(-workers // count))
    # More threads of matrix products than this would mostly wait for other repeats.
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


def _waiting(judging: Judging, line: Line) -> _WaitingLine:
    try:
        pools = complete_pools(line, judging.plan.preset, judging.reader)
    except (AbsentError, PredictionsError) as error:
        return _WaitingLine(line, (), str(error))
    return _WaitingLine(line, pools)


def _repeat(
    judging: Judging,
    waiting: _WaitingLine,
    specs: Sequence[RunSpec],
    options: ScoreOptions,
) -> Repeat:
    """Return the repeat of the pool of these runs, or of a part of a pool."""
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
    """Return whether pools are also judged without each of their runs in turn."""
    runs = [tuple(spec.hash for spec in pool) for pool in waiting.pools]
    return bool(runs) and needs_left_out(runs)


def _parts(
    judging: Judging, waiting: _WaitingLine, place: int, options: ScoreOptions
) -> Iterator[Repeat]:
    """Yield the repeats of a pool without each of its runs in turn."""
    runs = waiting.pools[place]
    for run in range(len(runs)):
        rest = (*runs[:run], *runs[run + 1 :])
        yield _repeat(judging, waiting, rest, options)._replace(part_of=place)


def _beside(
    judging: Judging, line: Line, seeds: Sequence[int], row: str
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
    """Return the judgement of a part of a pool; an empty one if it has no numbers."""
    try:
        return judged.result()
    except (AbsentError, PredictionsError):
        return Judgement(entries=(), design=Design(items=1))


Column = tuple[tuple[str, Label], ...]
"""Labels, as pairs, that numbers of different rows must share to be ranked."""


def _column(line: Line, number: Estimated) -> Column:
    return tuple({**line.at, **_own_labels(number)}.items())


def _own_labels(number: Estimated) -> Labels:
    """Return the labels that a number shares with those it is ranked with."""
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
    """Return the source of variation in an interval; '' without an interval."""
    if number.few:
        return "these runs"
    if not math.isfinite(number.interval.low):
        return ""
    return "items" if number.seeds.units < 2 else "items and seeds"


def _rankings(
    numbers: Sequence[tuple[_JudgedLine, Sequence[Estimated]]], options: ScoreOptions
) -> dict[Column, Ranking]:
    """Rank the rows of each column of a variant."""
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


def _uncertainties(
    numbers: Sequence[tuple[_JudgedLine, Sequence[Estimated]]], options: ScoreOptions
) -> list[UncertaintyRanking]:
    """Rank the uncertainties of all rows of a variant together."""
    if not numbers:
        return []
    lines = [(judged.line, each) for judged, each in numbers]
    return uncertainty_rankings(lines, numbers[0][0].repeats[0].design, options)


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
                number.far,
            )
            columns.setdefault(_column(judged.line, number), []).append(rival)
    return columns


def _labelled(line: Line, shapes: Iterable[Shape]) -> Iterator[tuple[Labels, Shape]]:
    """Yield the shapes of figures with the labels of their line and their own."""
    for shape in shapes:
        labels = {"subset": shape.subset, "name": shape.name}
        yield {**line.labels, **shape.settings, **labels}, shape


def _cost(reader: RunReader, specs: Sequence[RunSpec]) -> Cost:
    hashes = [spec.hash for spec in specs]
    parameters = [reader.headers[name].parameters for name in hashes]
    costs = [reader.costs(name) for name in hashes]
    seconds = total_seconds(cost.training for cost in costs)
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


def total_seconds(seconds: Iterable[float | None]) -> float | None:
    """Return the seconds of all runs together, as far as recorded."""
    recorded = [value for value in seconds if value is not None]
    return math.fsum(recorded) if recorded else None
