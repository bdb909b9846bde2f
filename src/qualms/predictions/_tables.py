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

from qualms.predictions._error import PredictionsError
from qualms.predictions._header import loads
from qualms.predictions._normal import Raw
from qualms.predictions._schema import TASKS, Field, field, known

_NUMBERED = re.compile(r"(.+)_(0|[1-9][0-9]{0,8})")


def sidecar(path: Path) -> Path:
    """Where the header of the table at `path` stands."""
    return path.with_name(f"{path.name}.json")


def field_of(column: str) -> Field | None:
    """The field a column belongs to, whatever the task."""
    name = _array_of(column)
    found = (field(task, name) for task in TASKS)
    return next((f for f in found if f is not None), None)


def gathered(
    path: Path, columns: Mapping[str, NDArray[Any]], unread: tuple[str, ...]
) -> Raw:
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
    return Raw(
        arrays=arrays,
        header=_header(sidecar(path)),
        header_at=f"a file '{sidecar(path).name}' beside it (JSON)",
        unread=unread,
    )


def spread(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
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
    if known(column) or numbered is None:
        return column
    name = "probs" if numbered[1] == "prob" else numbered[1]
    forms = [axes for task in TASKS if (f := field(task, name)) for axes in f.axes]
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
