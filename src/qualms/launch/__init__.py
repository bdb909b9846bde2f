"""Launching runs: which of a benchmark, on which data, in which processes."""

from qualms.launch._choice import Choice, Wish, everything, without
from qualms.launch._data import (
    Needed,
    card_of,
    default_cache,
    is_simulated,
    key,
    needed,
    prepared,
    recipe_of,
)
from qualms.launch._devices import check_installed, default_workers
from qualms.launch._options import options_of, parse, written
from qualms.launch.here import Outcome, lacking, run_all

__all__ = [
    "Choice",
    "Needed",
    "Outcome",
    "Wish",
    "card_of",
    "check_installed",
    "default_cache",
    "default_workers",
    "everything",
    "is_simulated",
    "key",
    "lacking",
    "needed",
    "options_of",
    "parse",
    "prepared",
    "recipe_of",
    "run_all",
    "without",
    "written",
]
