"""Protocols as declared objects: they name everything and compute nothing.

The folder is the registry: `qualms.shelf.find("benchmarks", "regression")()` is the
benchmark. Parts are named by text, so that judging never imports what makes
predictions.
"""

from qualms.benchmarks._benchmark import (
    Benchmark,
    ensembles,
    pools_of,
    repeats_of,
    seeds_of,
    selection_text,
    settings_text,
    settings_values,
    trained,
    variant_of,
)
from qualms.benchmarks._records import (
    Config,
    Expectation,
    GivenData,
    Place,
    Preset,
    Range,
    Selection,
    Settings,
    Stage,
    TableRow,
    Variant,
)

__all__ = [
    "Benchmark",
    "Config",
    "Expectation",
    "GivenData",
    "Place",
    "Preset",
    "Range",
    "Selection",
    "Settings",
    "Stage",
    "TableRow",
    "Variant",
    "ensembles",
    "pools_of",
    "repeats_of",
    "seeds_of",
    "selection_text",
    "settings_text",
    "settings_values",
    "trained",
    "variant_of",
]
