"""Judging regression benchmarks: calibrated intervals, row by row."""

from collections.abc import Iterator

from qualms.benchmarks import Benchmark, Preset
from qualms.benchmarks._benchmark import ensembles
from qualms.evaluate._benchmark_results import Cell
from qualms.evaluate._entry import Settings
from qualms.evaluate._judge import Asked, Judge, Judged
from qualms.evaluate._row_cells import Shared, cells_of, empty_cells, repeat_of
from qualms.evaluate._runs import AbsentError, complete_pools
from qualms.predictions import PredictionsError


def _variant(asked: Asked) -> Judged:
    return Judged(tuple(_cells(asked)))


def _cells(asked: Asked) -> Iterator[Cell]:
    benchmark, preset, variant, runs, settings = asked
    shared = Shared(runs, settings, {}, {})
    for place in benchmark.places(preset, variant):
        try:
            repeats = [
                repeat_of(place, specs, shared)
                for specs in complete_pools(benchmark, preset, place, runs)
            ]
        except (AbsentError, PredictionsError) as error:
            yield from empty_cells(place, str(error))
            continue
        yield from cells_of(place, repeats, shared)


def _notes(benchmark: Benchmark, preset: Preset, settings: Settings) -> tuple[str, ...]:
    notes = [
        "ours: finite-sample rank; beside the paper: the rank of its released code",
        "test scores are of the items that are predicted",
    ]
    if len(ensembles(benchmark, preset)) == 1:
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


REGRESSION = Judge(
    variant=_variant,
    # Of the other scores, more is better or worse only together with these.
    tied={
        "val_mae": "lower",
        "val_interval_length": "lower",
        "test_coverage": "nominal",
    },
    notes=_notes,
)
