"""Facts about the cases of a folder: `items.csv` beside its predictions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qualms.predictions import PredictionsError
from qualms.readers._columns import stored_columns

FILE = "items.csv"
_KEPT = ("group", "cluster", "shifted", "known")


def item_columns(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return group, cluster, shifted and known of the cases `names`, if stated.

    `items.csv` has a column `item` with the names of cases; rows of other cases are
    ignored. The result is {} without such a file.

    Raises:
        PredictionsError: If it has no column `item`, or lacks a case.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    columns = stored_columns(path)
    if "item" not in columns:
        raise PredictionsError(
            f"{path} must have a column 'item' with the names of the cases, got"
            f" {', '.join(columns)}; add it"
        )
    rows = {str(name): row for row, name in enumerate(columns["item"].tolist())}
    missing = next((name for name in names if name not in rows), None)
    if missing is not None:
        raise PredictionsError(
            f"{path} must have a row for every case, and has none for {missing}; add it"
        )
    order = [rows[name] for name in names]
    return {
        name: values[order]
        for name, values in columns.items()
        if name in _KEPT or name.startswith("group/")
    }
