"""What judges the variants of a benchmark, one for each task."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from qualms.benchmarks import Benchmark, Preset, Variant
from qualms.evaluate._benchmark_results import Band, Cell, DrawnKey, Sides
from qualms.evaluate._entry import Settings
from qualms.evaluate._runs import Runs

Direction = Literal["lower", "higher", "nominal"]
"""Which value of a score is best; "nominal" is the one nearest to 1 - alpha."""


class Asked(NamedTuple):
    """What a judge is given: a variant, and where its predictions are."""

    benchmark: Benchmark
    preset: Preset
    variant: Variant
    runs: Runs
    settings: Settings


class Judged(NamedTuple):
    """What is found about one variant."""

    cells: Iterable[Cell]
    bands: Mapping[DrawnKey, Band] = {}
    sides: Mapping[DrawnKey, Sides] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """How the benchmarks of one task are judged."""

    variant: Callable[[Asked], Judged]
    tied: Mapping[str, Direction]
    """Scores whose best rows are sought, and which value is best."""
    notes: Callable[[Benchmark, Preset, Settings], tuple[str, ...]]
    """What a reader of the tables must know."""
