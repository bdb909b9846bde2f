"""Which rows are best and their equals, and whether the promised effects showed."""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from qualms.benchmarks import Benchmark, Expectation, Preset
from qualms.benchmarks._benchmark import Place
from qualms.evaluate._benchmark_results import Cell, Check, Key
from qualms.evaluate._judge import Direction
from qualms.scores import TieGroup, replicates_needed, tie_group

Array = NDArray[np.float64]


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
    def mean(variant: str, row: str, score: str) -> float:
        key = Key(variant, expectation.alpha, row, score)
        return cells[key].ours.mean if key in cells else math.nan

    own = expectation.variant, row, expectation.score
    other = (
        expectation.minus or expectation.variant,
        expectation.pairs[row],
        expectation.minus_score or expectation.score,
    )
    return mean(*own) - (mean(*other) if other != own else 0.0)


def tied(
    benchmark: Benchmark,
    preset: Preset,
    cells: Mapping[Key, Cell],
    directions: Mapping[str, Direction],
    level: float,
) -> dict[Key, TieGroup]:
    """The best row of each dataset, alpha and score, and those not told apart."""
    groups = {}
    for variant in preset.variants:
        places = list(benchmark.places(preset, variant))
        for alpha in variant.alphas:
            for score, direction in directions.items():
                there = [cells[_key(p, score)] for p in places if p.alpha == alpha]
                selects = {p.row.name for p in places if p.row.select}
                # A selection leaves validation scores as they are: only the base row
                # counts.
                left_out = selects if direction != "nominal" else set()
                rivals = dict(_rivals(there, left_out, direction))
                if _enough(rivals, level):
                    groups[Key(variant.name, alpha, "", score)] = tie_group(
                        {row: value for row, (value, _) in rivals.items()},
                        {row: samples for row, (_, samples) in rivals.items()},
                        better="higher" if direction == "higher" else "lower",
                        level=level,
                    )
    return groups


def _key(place: Place, score: str) -> Key:
    return Key(place.variant.name, place.alpha, place.row.name, score)


def _enough(rivals: Mapping[str, tuple[float, Array]], level: float) -> bool:
    """Whether there are rivals, and enough replicates to tell them apart."""
    if len(rivals) < 2:
        return False
    replicates = min(len(samples) for _, samples in rivals.values())
    return replicates >= replicates_needed(len(rivals) - 1, level=level)


def _rivals(
    cells: Iterable[Cell], left_out: set[str], direction: Direction
) -> Iterator[tuple[str, tuple[float, Array]]]:
    """By row, what is compared: value and samples, or their distance from nominal."""
    for cell in cells:
        if cell.key.row in left_out or cell.samples is None:
            continue
        value, samples = cell.ours.mean, cell.samples
        if direction == "nominal":
            aim = 1 - (cell.key.alpha or 0.0)
            value, samples = abs(value - aim), np.abs(samples - aim)
        if math.isfinite(value) and np.isfinite(samples).all():
            yield cell.key.row, (value, samples)
