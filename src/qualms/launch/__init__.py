"""Launching: choose the runs of a benchmark, prepare their data, and make them."""

from qualms.launch.choice import Choice, Wish, check_data, everything, without
from qualms.launch.data import (
    Needed,
    card_of,
    data_key,
    data_root,
    is_simulated,
    needed,
    prepared,
    recipe_of,
)
from qualms.launch.devices import check_installed, default_workers
from qualms.launch.here import RunOutcome, lacking, parts_of, run_all
from qualms.launch.new import KINDS, new_part
from qualms.launch.options import check_options, options_of, parse_options, written
from qualms.launch.own import given_text, with_data

__all__ = [
    "KINDS",
    "Choice",
    "Needed",
    "RunOutcome",
    "Wish",
    "card_of",
    "check_data",
    "check_installed",
    "check_options",
    "data_key",
    "data_root",
    "default_workers",
    "everything",
    "given_text",
    "is_simulated",
    "lacking",
    "needed",
    "new_part",
    "options_of",
    "parse_options",
    "parts_of",
    "prepared",
    "recipe_of",
    "run_all",
    "with_data",
    "without",
    "written",
]
