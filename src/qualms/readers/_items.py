"""Facts about the cases of a folder: `items.csv` beside its predictions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qualms.predictions import PredictionsError, stored_columns

FILE = "items.csv"
_KEPT = ("group", "cluster", "shifted", "known")


def item_columns(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return group, cluster, shifted and known of the cases `names`, if stated.

    `items.csv` has a column `item` with the names of cases; rows of other cases are
    ignored. The result is {} without such a file.

    Raises:
        PredictionsError: If it has no column `item`, lacks a case or has one twice.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        columns = stored_columns(path)
    except PredictionsError as error:
        raise PredictionsError(f"{path.name}: {error}") from error
    if "item" not in columns:
        raise PredictionsError(
            f"{path} must have a column 'item' with the names of the cases, got"
            f" {', '.join(columns)}; add it"
        )
    rows: dict[str, int] = {}
    for row, name in enumerate(columns["item"].tolist()):
        if rows.setdefault(name, row) != row:
            raise PredictionsError(
                f"{path} must have one row for every case, rows {rows[name]} and {row}"
                f" are both {name!r:.60}; remove one"
            )
    missing = next((name for name in names if name not in rows), None)
    if missing is not None:
        raise PredictionsError(
            f"{path} must have a row for every case, and has none for {missing}; add it"
        )
    order = [rows[name] for name in names]
    return {
        name: columns[name][order]
        for name in columns
        if name in _KEPT or name.startswith("group/")
    }
