"""Columns and arrays: what .csv and .parquet share.

An array (N,) is a column of its name; (N, K) is K columns `name_0` to `name_{K-1}`, and
`probs` is `prob_0`, `prob_1`, ... A table holds one draw. Its header, where it has one,
stands beside it under the same name with `.json` added: `preds.csv.json`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._binary import machine_memory
from qualms.predictions._errors import PredictionsError, parsing
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import loads
from qualms.predictions._normal import RawArrays
from qualms.predictions._schema import TASKS, Field, array_field, is_array_name

_NUMBERED = re.compile(r"(.+)_(0|[1-9][0-9]{0,8})")


def sidecar(path: Path) -> Path:
    """Where the header of the table at `path` stands."""
    return path.with_name(f"{path.name}.json")


def field_of(column: str) -> Field | None:
    """The field a column belongs to, whatever the task."""
    name = _array_of(column)
    found = (array_field(task, name) for task in TASKS)
    return next((f for f in found if f is not None), None)


def gathered(
    path: Path, columns: Mapping[str, NDArray[Any]], unread: tuple[str, ...]
) -> RawArrays:
    """Columns as arrays, with the header of the sidecar."""
    wide: dict[str, dict[int, NDArray[Any]]] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for column, values in columns.items():
        name = _array_of(column)
        if name == column:
            arrays[name] = values
        else:
            wide.setdefault(name, {})[int(column.rpartition("_")[2])] = values
    for name, parts in wide.items():
        arrays[name] = _joined(name, parts, arrays)
    return RawArrays(
        arrays=arrays,
        header=_header(sidecar(path)),
        header_at=f"a file '{sidecar(path).name}' beside it (JSON)",
        unread=unread,
    )


def table_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays in normal form as those a table can hold: without the axis of draws."""
    return {name: _one_draw(name, array) for name, array in arrays.items()}


def columns_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns of `arrays` that `spread` made."""
    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
            continue
        head = "prob" if name == "probs" else name
        columns |= {f"{head}_{k}": array[:, k] for k in range(array.shape[1])}
    return columns


def _array_of(column: str) -> str:
    numbered = _NUMBERED.fullmatch(column)
    if is_array_name(column) or numbered is None:
        return column
    name = "probs" if numbered[1] == "prob" else numbered[1]
    forms = [
        axes for task in TASKS if (f := array_field(task, name)) for axes in f.axes
    ]
    if any(len(axes) == 2 and axes[0] == "N" for axes in forms):
        return name
    if "MN" in forms:
        raise PredictionsError(
            f"column '{column}': a table holds one draw of '{name}'; write several "
            "draws as .npz or .safetensors"
        )
    return column


def _joined(
    name: str, parts: Mapping[int, NDArray[Any]], arrays: Mapping[str, Any]
) -> NDArray[Any]:
    head = "prob" if name == "probs" else name
    missing = next((k for k in range(len(parts)) if k not in parts), None)
    if missing is not None:
        raise PredictionsError(
            f"column '{head}_{missing}' is missing, though there is "
            f"'{head}_{max(parts)}'; columns must be numbered {head}_0, {head}_1, ..."
        )
    if name in arrays:
        raise PredictionsError(
            f"columns '{name}' and '{head}_0' say the same thing twice; keep one"
        )
    return np.stack([parts[k] for k in range(len(parts))], axis=1)


def _header(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    return loads(path.read_bytes(), f"the file '{path.name}' beside it")


def _one_draw(name: str, array: NDArray[Any]) -> NDArray[Any]:
    about = field_of(name)
    if about is not None and about.draws:
        if len(array) > 1:
            raise PredictionsError(
                f"array '{name}' has {len(array)} draws, a table holds one; write "
                ".safetensors or .npz"
            )
        array = array[0]
    if array.ndim > 2:
        raise PredictionsError(
            f"array '{name}' of shape {array.shape} does not fit into a table; leave "
            "it out, or write .safetensors or .npz"
        )
    return array


def read_parquet(path: Path) -> RawArrays:
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


def write_parquet_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
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
    if size > machine_memory():
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
        return numpy_array(name, np.array(column.to_pylist(), dtype=object))
    return numpy_array(name, np.asarray(column.to_numpy()))
