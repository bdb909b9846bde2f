"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Nothing is trained or looked up here but predictions files, so that numbers can be made
again from them at any time, and by anyone. A run that is not there is listed and leaves
its cells empty; a repeat counts as soon as all runs of its pool are there.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from qualms.benchmarks import (
    Benchmark,
    Place,
    Preset,
    Settings,
    Variant,
    ensembles,
    selection_text,
    settings_text,
)
from qualms.evaluate.entry import Curve, Histogram, Judgement, ScoreOptions
from qualms.evaluate.kernel import (
    Estimated,
    estimated,
    mean_curves,
    mean_histograms,
)
from qualms.evaluate.protocols import AbsentError, Protocol, Repeat, protocol_of
from qualms.evaluate.ranking import checked, ranking_of
from qualms.evaluate.reading import RunReader, complete_pools
from qualms.evaluate.results import (
    BenchmarkResults,
    Cell,
    Cost,
    DrawnKey,
    Key,
)
from qualms.predictions import PredictionsError
from qualms.spec import RunSpec


class _Asked(NamedTuple):
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


def judge(
    benchmark: Benchmark,
    preset: Preset,
    out: Path,
    *,
    options: ScoreOptions | None = None,
) -> BenchmarkResults:
    """Every cell of `benchmark` at `preset`, from the run folders in out/<benchmark>.

    Intervals resample items and repeats together, see `kernel.py`; `options` gives
    their number, level and seed.
    """
    options = options or ScoreOptions()
    reader = RunReader(out / benchmark.name)
    asked = _Asked(benchmark, preset, protocol_of(benchmark), reader, options)
    cells: dict[Key, Cell] = {}
    curves: dict[DrawnKey, Curve] = {}
    histograms: dict[DrawnKey, Histogram] = {}
    costs: dict[tuple[str, str], Cost] = {}
    for row in _rows(asked):
        cells |= {cell.key: cell for cell in _cells(asked, row)}
        costs[row.place.variant.name, row.place.row.name] = _cost(reader, row.specs)
        if row.repeats:
            curves |= {_drawn(row, c): c for c in mean_curves(row.repeats)}
            histograms |= {_drawn(row, h): h for h in mean_histograms(row.repeats)}
    ties, differences = ranking_of(cells.values(), options.level)
    machines = {header.hardware or "" for header in reader.headers.values()}
    return BenchmarkResults(
        benchmark=benchmark,
        preset=preset,
        cells=cells,
        ties=ties,
        differences=differences,
        curves=curves,
        histograms=histograms,
        checks=checked(benchmark, preset, cells),
        missing=tuple(reader.missing.values()),
        hardware=tuple(sorted(machines - {""})),
        seconds=_seconds(reader, reader.headers),
        costs=costs,
        notes=tuple(_notes(asked)),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )


def _rows(asked: _Asked) -> Iterator[_JudgedRow]:
    # Variants that share their runs stand side by side; others need not stay in memory.
    variants = asked.preset.variants
    for _, group in groupby(variants, key=lambda variant: variant.dataset):
        for variant in group:
            yield from _rows_of(asked, variant)
        asked.reader.forget()


def _rows_of(asked: _Asked, variant: Variant) -> list[_JudgedRow]:
    """Every row of a variant with its repeats, which are judged several at a time."""
    places = asked.benchmark.places(asked.preset, variant)
    # The kernels release the interpreter's lock, so threads really run at once.
    with ThreadPoolExecutor(asked.options.workers) as pool:
        waiting = [_submitted(asked, place, pool) for place in places]
        return [_finished(row) for row in waiting]


class _Waiting(NamedTuple):
    place: Place
    specs: tuple[RunSpec, ...]
    repeats: list[Future[Judgement]]
    why: str = ""


def _submitted(asked: _Asked, place: Place, pool: ThreadPoolExecutor) -> _Waiting:
    try:
        pools = complete_pools(asked.benchmark, asked.preset, place, asked.reader)
    except (AbsentError, PredictionsError) as error:
        return _Waiting(place, (), [], str(error))
    repeats = [
        Repeat(place, partial(asked.reader.pooled, specs), asked.options)
        for specs in pools
    ]
    members = {spec.hash: spec for specs in pools for spec in specs}
    judged = [pool.submit(asked.protocol.judge, repeat) for repeat in repeats]
    return _Waiting(place, tuple(members.values()), judged)


def _finished(row: _Waiting) -> _JudgedRow:
    if row.why:
        return _JudgedRow(row.place, row.specs, (), row.why)
    try:
        repeats = [repeat.result() for repeat in row.repeats]
    except (AbsentError, PredictionsError) as error:
        return _JudgedRow(row.place, row.specs, (), str(error))
    return _JudgedRow(row.place, row.specs, repeats)


def _cells(asked: _Asked, row: _JudgedRow) -> Iterator[Cell]:
    """A cell for each entry; for each declared score where the row has no repeat."""
    at = partial(_key, row.place)
    if not row.repeats:
        for score in asked.benchmark.scores:
            yield Cell(key=at(score, {}), why=row.why)
        return
    for found in estimated(row.repeats, asked.options):
        yield _cell(at(found.entry.key, found.entry.settings), found)


def _key(place: Place, score: str, settings: Settings) -> Key:
    known = settings_text({**place.settings, **settings})
    return Key(place.variant.name, place.row.name, known, score)


def _cell(key: Key, found: Estimated) -> Cell:
    return Cell(
        key=key,
        values=found.values,
        as_published=found.as_published,
        low=found.low,
        high=found.high,
        replicates=found.replicates,
        why=found.why,
        better=found.entry.better,
        aim=found.entry.aim,
        ranked=found.entry.ranked,
    )


def _drawn(row: _JudgedRow, drawn: Curve | Histogram) -> DrawnKey:
    place = row.place
    known = settings_text({**place.settings, **drawn.settings})
    return DrawnKey(place.variant.name, place.row.name, known, drawn.subset, drawn.name)


def _cost(reader: RunReader, specs: Sequence[RunSpec]) -> Cost:
    headers = [reader.headers[spec.hash] for spec in specs]
    known = [h.parameters for h in headers if h.parameters is not None]
    seconds = _seconds(reader, [spec.hash for spec in specs])
    return Cost(seconds, known[0] if known else None)


def _seconds(reader: RunReader, hashes: Iterable[str]) -> float | None:
    stated = [reader.headers[name].seconds for name in hashes]
    known = [seconds for seconds in stated if seconds is not None]
    return math.fsum(known) if known else None


def _notes(asked: _Asked) -> Iterator[str]:
    """What a reader of the tables must know, of any benchmark and of this one."""
    benchmark, preset, protocol, _, options = asked
    for variant in preset.variants:
        if text := selection_text(benchmark, preset, variant):
            yield f"{variant.name}: {text}"
    yield from protocol.notes(benchmark, preset, options)
    yield from _pool_notes(benchmark, preset)
    if options.resamples:
        yield (
            f"{options.level:.0%} intervals resample items (whole clusters, such as "
            f"patients, where they are known) and repeats together, "
            f"{options.resamples} times"
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
