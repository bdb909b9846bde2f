"""The carrier .parquet: the columns of .csv, typed. Needs pyarrow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError
from qualms.predictions._foreign import plain
from qualms.predictions._normal import Raw
from qualms.predictions._npz import memory
from qualms.predictions._tables import field_of, gathered
from qualms.predictions._unreadable import parsing


def read_parquet(path: Path) -> Raw:
    """The arrays of a .parquet file, and the header of its sidecar."""
    parquet = _parquet()
    with parsing(path), parquet.ParquetFile(path) as file:
        names = list(file.schema_arrow.names)
        wanted = [name for name in names if field_of(name) is not None]
        _refuse(names, file.metadata.num_rows * len(wanted) * 8)
        # A dot in a name would be taken for a path into a nested column.
        nested = any("." in name for name in wanted)
        table = file.read(columns=None if nested else wanted)
        columns = {name: _column(name, table.column(name)) for name in wanted}
    return gathered(path, columns, tuple(n for n in names if n not in columns))


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns as a .parquet file, numbers as they are in memory."""
    parquet = _parquet()
    from pyarrow import array, table

    held = {
        name: array(np.ascontiguousarray(values)) for name, values in columns.items()
    }
    parquet.write_table(table(held), path)


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise PredictionsError(
            ".parquet files need pyarrow: pip install 'qualms[tables]'"
        ) from error
    return parquet


def _refuse(names: list[str], size: int) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise PredictionsError(f"column '{twice}' is there twice; rename one")
    if size > memory():
        raise PredictionsError(
            f"unpacks to {size / 2**30:.0f} GiB, more than this machine's memory; "
            "split it into several files"
        )


def _column(name: str, column: Any) -> NDArray[Any]:
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise PredictionsError(
            f"column '{name}', row {row} is empty (null); fill it or leave the row out"
        )
    kind = str(column.type)
    if kind.startswith("dictionary") or "string" in kind:
        return plain(name, np.array(column.to_pylist(), dtype=object))
    return plain(name, np.asarray(column.to_numpy()))
