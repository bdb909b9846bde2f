"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Nothing is trained or looked up here but predictions files, so that numbers can be made
again from them at any time, and by anyone. A run that is not there is listed and leaves
its cells empty; a repeat counts as soon as all runs of its pool are there.
"""

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from qualms.benchmarks import Benchmark, Preset, Variant
from qualms.benchmarks._benchmark import Place, pools_of, trained
from qualms.evaluate._benchmark_results import (
    BenchmarkResults,
    Cell,
    Check,
    Key,
    Missing,
    Summary,
)
from qualms.evaluate._entry import Settings
from qualms.evaluate._expected import checked, tied
from qualms.evaluate._row_cells import Shared, cells_of, empty_cells, repeat_of
from qualms.evaluate._runs import AbsentError, Runs
from qualms.predictions import PredictionsError
from qualms.spec import RunSpec

__all__ = ["BenchmarkResults", "Cell", "Check", "Key", "Missing", "Summary", "judge"]


def judge(
    benchmark: Benchmark,
    preset: Preset,
    out: Path,
    *,
    settings: Settings | None = None,
) -> BenchmarkResults:
    """Every cell of `benchmark` at `preset`, from the run folders in out/<benchmark>.

    Intervals resample validation items, test items and repeats together, see
    `_replicates.py`; `settings` gives their number, level and seed.
    """
    if benchmark.task != "regression":
        raise ValueError(
            f"only regression benchmarks can be judged, {benchmark.name} is one of "
            f"{benchmark.task}"
        )
    settings = settings or Settings()
    runs = Runs(out / benchmark.name)
    cells: dict[Key, Cell] = {}
    # Variants that share their runs stand side by side; others need not stay in memory.
    for _, group in groupby(preset.variants, key=lambda variant: variant.dataset):
        for variant in group:
            for cell in _variant_cells(benchmark, preset, variant, runs, settings):
                cells[cell.key] = cell
        runs.forget()
    seconds = [h.seconds for h in runs.headers.values() if h.seconds is not None]
    return BenchmarkResults(
        benchmark=benchmark,
        preset=preset,
        cells=cells,
        ties=tied(benchmark, preset, cells, settings.level),
        checks=checked(benchmark, preset, cells),
        missing=tuple(runs.missing.values()),
        hardware=tuple(
            sorted({h.hardware or "" for h in runs.headers.values()} - {""})
        ),
        seconds=math.fsum(seconds) if seconds else None,
        notes=_notes(preset, settings),
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _variant_cells(
    benchmark: Benchmark,
    preset: Preset,
    variant: Variant,
    runs: Runs,
    settings: Settings,
) -> Iterator[Cell]:
    shared = Shared(runs, settings, {}, {})
    for place in benchmark.places(preset, variant):
        try:
            repeats = [
                repeat_of(place, specs, shared)
                for specs in _pools(benchmark, preset, place, runs)
            ]
        except (AbsentError, PredictionsError) as error:
            yield from empty_cells(place, str(error))
            continue
        yield from cells_of(place, repeats, shared)


def _pools(
    benchmark: Benchmark, preset: Preset, place: Place, runs: Runs
) -> list[tuple[RunSpec, ...]]:
    """The runs of each repeat that is complete; pools of the same runs count once."""
    if not trained(preset, place):
        raise AbsentError(
            f"preset {preset.name} trains {place.row.method.name} for alpha "
            f"{', '.join(map(str, preset.trained_alphas))} only"
        )
    wanted = pools_of(preset, place.row)
    specs = {
        seed: benchmark.spec(preset, place, seed)
        for seed in dict.fromkeys(seed for pool in wanted for seed in pool)
    }
    present = {seed for seed, spec in specs.items() if runs.present(spec)}
    complete = [pool for pool in wanted if present.issuperset(pool)]
    if not complete:
        lacking = next(spec for seed, spec in specs.items() if seed not in present)
        raise AbsentError(
            f"{len(specs) - len(present)} of {len(specs)} runs of "
            f"{lacking.method.name} are missing; {lacking.hash} "
            f"{runs.missing[lacking.hash].reason}"
        )
    return [tuple(specs[seed] for seed in pool) for pool in complete]


def _notes(preset: Preset, settings: Settings) -> tuple[str, ...]:
    notes = [
        "ours: finite-sample rank; beside the paper: the rank of its released code",
        "test scores are of the items that are predicted",
    ]
    if len({frozenset(pool) for pool in preset.pools}) == 1:
        notes.append(
            f"the {len(preset.seeds)} runs form one pool, so ensembles have one repeat "
            "and no spread over repeats"
        )
    if settings.resamples:
        notes.append(
            f"{settings.level:.0%} intervals resample validation items, test items and "
            f"repeats together, {settings.resamples} times; weighted calibration is "
            "held fixed"
        )
    return tuple(notes)
