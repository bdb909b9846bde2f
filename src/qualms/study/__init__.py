"""The records of a benchmark: what is trained, what is judged, and what is expected.

A `Benchmark` is declared in `qualms.benchmarks`; a `RunPlan` is the part of it that a
user asks for. A plan gives the `Line`s of its results: a row of a table on one variant
at some settings, with the labels that all its numbers carry and the runs behind it.
"""

from qualms.study._benchmark import Benchmark, Expectation, Preset
from qualms.study._data import USUAL_SEEDS as USUAL_SEEDS
from qualms.study._data import GivenData, Selection, Variant
from qualms.study._plan import Line, Overrides, RunPlan
from qualms.study._rows import (
    GUEST,
    Config,
    Named,
    Range,
    Stage,
    TableRow,
)

__all__ = [
    "GUEST",
    "Benchmark",
    "Config",
    "Expectation",
    "GivenData",
    "Line",
    "Named",
    "Overrides",
    "Preset",
    "Range",
    "RunPlan",
    "Selection",
    "Stage",
    "TableRow",
    "Variant",
]
