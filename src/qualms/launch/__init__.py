"""Launching: plan the runs of benchmarks, prepare their data, make and judge them."""

from qualms.launch._devices import check_installed, default_workers
from qualms.launch._extra_rows import MEMBERS, POOLED, default_method
from qualms.launch._new_part import KINDS, new_part
from qualms.launch._own_data import given_text, with_data
from qualms.launch.data import (
    RequiredDataset,
    card_of,
    data_key,
    data_root,
    is_simulated,
    prepare_datasets,
    recipe_of,
    required_datasets,
)
from qualms.launch.engine import Engine
from qualms.launch.local import RunOutcome, datasets_of, pending_runs, run_all
from qualms.launch.options import (
    check_options,
    option_texts,
    options_of,
    parse_options,
)
from qualms.launch.plan import (
    RunRequest,
    parse_names,
    parse_seeds,
    plan_of,
    plans_of,
    without_datasets,
)

__all__ = [
    "KINDS",
    "MEMBERS",
    "POOLED",
    "Engine",
    "RequiredDataset",
    "RunOutcome",
    "RunRequest",
    "card_of",
    "check_installed",
    "check_options",
    "data_key",
    "data_root",
    "datasets_of",
    "default_method",
    "default_workers",
    "given_text",
    "is_simulated",
    "new_part",
    "option_texts",
    "options_of",
    "parse_names",
    "parse_options",
    "parse_seeds",
    "pending_runs",
    "plan_of",
    "plans_of",
    "prepare_datasets",
    "recipe_of",
    "required_datasets",
    "run_all",
    "with_data",
    "without_datasets",
]
