"""Datasets and simulators, one file each; the folder is the registry."""

from qualms.datasets._cache import cache_folder, open_dataset
from qualms.datasets._prepare import Prepared, Progress, prepare
from qualms.datasets._publish import Skipped
from qualms.datasets._recipe import Card, Dataset, DatasetError, Labels, Recipe, Split
from qualms.datasets._retina_splits import rebalanced_rows, retina_splits

__all__ = [
    "Card",
    "Dataset",
    "DatasetError",
    "Labels",
    "Prepared",
    "Progress",
    "Recipe",
    "Skipped",
    "Split",
    "cache_folder",
    "open_dataset",
    "prepare",
    "rebalanced_rows",
    "retina_splits",
]
