"""Which rows are best and their equals, and whether the promised effects showed."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Benchmark, Expectation, Preset
from qualms.benchmarks._benchmark import Place
from qualms.evaluate._benchmark_results import Cell, Check, Key
from qualms.scores import TieGroup, draws_needed, tie_group

Array = NDArray[np.float64]

# Of the other scores, more is better or worse only together with these.
_TIED = ("val_mae", "val_interval_length", "test_coverage")


def checked(
    benchmark: Benchmark, preset: Preset, cells: Mapping[Key, Cell]
) -> tuple[Check, ...]:
    """The benchmark's expectations at this preset, with our numbers."""
    known = {variant.name for variant in preset.variants}
    return tuple(
        Check(
            expectation=expectation,
            values={row: _value(expectation, row, cells) for row in expectation.rows},
        )
        for expectation in benchmark.expectations.get(preset.name, ())
        if {expectation.variant, expectation.minus} - {""} <= known
    )


def _value(expectation: Expectation, row: str, cells: Mapping[Key, Cell]) -> float:
    def mean(variant: str) -> float:
        key = Key(variant, expectation.alpha, row, expectation.score)
        return cells[key].ours.mean if key in cells else math.nan

    value = mean(expectation.variant)
    if expectation.minus:
        value -= mean(expectation.minus)
    return value


def tied(
    benchmark: Benchmark, preset: Preset, cells: Mapping[Key, Cell], level: float
) -> dict[Key, TieGroup]:
    """The best row of each dataset, alpha and score, and those not told apart."""
    groups = {}
    for variant in preset.variants:
        places = list(benchmark.places(preset, variant))
        for alpha in variant.alphas:
            for score in _TIED:
                rivals = dict(_rivals(places, alpha, score, cells))
                if _enough(rivals, level):
                    key = Key(variant.name, alpha, "", score)
                    groups[key] = tie_group(
                        {row: value for row, (value, _) in rivals.items()},
                        {row: samples for row, (_, samples) in rivals.items()},
                        better="lower",
                        level=level,
                    )
    return groups


def _enough(rivals: Mapping[str, tuple[float, Array]], level: float) -> bool:
    """Whether there is something to compare, with draws enough to tell it apart."""
    if len(rivals) < 2:
        return False
    draws = min(len(samples) for _, samples in rivals.values())
    return draws >= draws_needed(len(rivals) - 1, level=level)


def _rivals(
    places: list[Place], alpha: float, score: str, cells: Mapping[Key, Cell]
) -> Iterator[tuple[str, tuple[float, Array]]]:
    for variant, at, row in places:
        cell = cells[Key(variant.name, at, row.name, score)]
        # A selection leaves validation scores as they are: only the base row counts.
        repeated = bool(row.select) and score != "test_coverage"
        if at != alpha or repeated or cell.samples is None:
            continue
        value, samples = cell.ours.mean, cell.samples
        if score == "test_coverage":
            value, samples = abs(value - (1 - alpha)), np.abs(samples - (1 - alpha))
        if math.isfinite(value) and np.isfinite(samples).all():
            yield row.name, (value, samples)
