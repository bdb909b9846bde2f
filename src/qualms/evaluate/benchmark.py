"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Nothing is trained or looked up here but predictions files, so that numbers can be made
again from them at any time, and by anyone. A run that is not there is listed and leaves
its cells empty; a repeat counts as soon as all runs of its pool are there.
"""

import math
from itertools import groupby
from pathlib import Path

from qualms.benchmarks import Benchmark, Preset
from qualms.evaluate._benchmark_results import (
    Band,
    BenchmarkResults,
    Cell,
    Check,
    DrawnKey,
    Key,
    Missing,
    Sides,
    Summary,
)
from qualms.evaluate._entry import Settings
from qualms.evaluate._expected import checked, tied
from qualms.evaluate._interval_judge import REGRESSION
from qualms.evaluate._judge import Asked, Judge, Judged
from qualms.evaluate._referral_judge import CLASSIFICATION
from qualms.evaluate._runs import Runs
from qualms.spec import TaskName

__all__ = [
    "Band",
    "BenchmarkResults",
    "Cell",
    "Check",
    "DrawnKey",
    "Key",
    "Missing",
    "Sides",
    "Summary",
    "judge",
]

_JUDGES: dict[TaskName, Judge] = {
    "regression": REGRESSION,
    "classification": CLASSIFICATION,
}


def judge(
    benchmark: Benchmark,
    preset: Preset,
    out: Path,
    *,
    settings: Settings | None = None,
) -> BenchmarkResults:
    """Every cell of `benchmark` at `preset`, from the run folders in out/<benchmark>.

    Intervals resample items and repeats together, see `_replicates.py`; `settings`
    gives their number, level and seed.
    """
    if benchmark.task not in _JUDGES:
        raise ValueError(
            f"benchmarks of {' and '.join(_JUDGES)} can be judged, {benchmark.name} is "
            f"one of {benchmark.task}"
        )
    by, settings = _JUDGES[benchmark.task], settings or Settings()
    runs = Runs(out / benchmark.name)
    found = _judged(by, benchmark, preset, runs, settings)
    cells = {cell.key: cell for judged in found for cell in judged.cells}
    seconds = [h.seconds for h in runs.headers.values() if h.seconds is not None]
    return BenchmarkResults(
        benchmark=benchmark,
        preset=preset,
        cells=cells,
        ties=tied(benchmark, preset, cells, by.tied, settings.level),
        bands={key: band for judged in found for key, band in judged.bands.items()},
        sides={key: side for judged in found for key, side in judged.sides.items()},
        checks=checked(benchmark, preset, cells),
        missing=tuple(runs.missing.values()),
        hardware=tuple(
            sorted({h.hardware or "" for h in runs.headers.values()} - {""})
        ),
        seconds=math.fsum(seconds) if seconds else None,
        notes=by.notes(benchmark, preset, settings),
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _judged(
    by: Judge, benchmark: Benchmark, preset: Preset, runs: Runs, settings: Settings
) -> list[Judged]:
    found = []
    # Variants that share their runs stand side by side; others need not stay in memory.
    for _, group in groupby(preset.variants, key=lambda variant: variant.dataset):
        found += [
            by.variant(Asked(benchmark, preset, variant, runs, settings))
            for variant in group
        ]
        runs.forget()
    return found
