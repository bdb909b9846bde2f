"""Datasets and simulators, one file or folder each; the folder is the registry."""

from qualms.datasets._cache import cache_folder
from qualms.datasets._corrupted import Corrupted, is_ragged
from qualms.datasets._encoded import Encoded
from qualms.datasets._open import open_dataset, verify_dataset
from qualms.datasets._prepare import Prepared, Progress, prepare
from qualms.datasets._publish import Skipped
from qualms.datasets._ragged import Ragged, ragged
from qualms.datasets._ranges import (
    GRADED_COUNTS,
    GRADED_YAWS,
    trained_counts,
    trained_tenths,
)
from qualms.datasets._recipe import (
    Card,
    Dataset,
    DatasetError,
    Divide,
    Labels,
    LoadedItems,
    Recipe,
    Shown,
    Split,
    Subset,
    Unit,
)
from qualms.datasets._retina.splits import rebalanced_rows, retina_splits
from qualms.datasets._shared_rows import SharedRows
from qualms.processes import cores

__all__ = [
    "GRADED_COUNTS",
    "GRADED_YAWS",
    "Card",
    "Corrupted",
    "Dataset",
    "DatasetError",
    "Divide",
    "Encoded",
    "Labels",
    "LoadedItems",
    "Prepared",
    "Progress",
    "Ragged",
    "Recipe",
    "SharedRows",
    "Shown",
    "Skipped",
    "Split",
    "Subset",
    "Unit",
    "cache_folder",
    "cores",
    "is_ragged",
    "open_dataset",
    "prepare",
    "ragged",
    "rebalanced_rows",
    "retina_splits",
    "trained_counts",
    "trained_tenths",
    "verify_dataset",
]
