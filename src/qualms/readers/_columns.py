"""Columns of tables of other programs, by their names.

A column is a 1-d array of numbers, truth values or text. Columns with names of our
schema (`item`, `group`, `uncertainty/<name>` ...) are used unchanged.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import PredictionsError, array_field, read_array
from qualms.readers import ForeignContents
from qualms.wording import cluster_hint, plural

TABLES = (".csv", ".parquet")
Columns = Mapping[str, NDArray[Any]]
_PROB = re.compile(r"(?:y_)?prob(?:a|ability|abilities)?")
_OWN = ("item", "group", "cluster", "shifted", "known")
_TEXT = _OWN[:1]


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a table, or of the arrays of an .npz file.

    () if none can be read; the error of reading the file then says why.
    """
    ending = path.suffix.lower()
    try:
        if ending == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return tuple(name.strip() for name in next(csv.reader(file), []))
        if ending == ".parquet":
            return tuple(_parquet_file(path).schema_arrow.names)
        if ending == ".npz":
            import zipfile

            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            return tuple(name.removesuffix(".npy") for name in names)
    # The bytes of a file may be anything.
    except Exception:
        return ()
    return ()


def stored_columns(
    path: Path, *, separator: str = ",", decimal: str = ".", text: Sequence[str] = _TEXT
) -> Columns:
    """Read the columns of a table, or the arrays of an .npz file.

    The columns of a .csv file named in `text` stay text, such as 007.
    """
    ending = path.suffix.lower()
    if ending == ".csv":
        rows = _csv_rows(path, separator)
        return {name: _parsed(cells, decimal, name in text) for name, cells in rows}
    if ending == ".parquet":
        return columns_of_table(_parquet_file(path).read())
    return {name: read_array(path, name) for name in column_names(path)}


def columns_of_table(table: Any) -> Columns:
    """Return the columns of a pyarrow table; lists of numbers form an array (N, K)."""
    from pyarrow import types

    columns: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise PredictionsError(
                f"column '{name}', row {row} is empty (null); fill it or leave the row"
                " out"
            )
        if types.is_nested(column.type):
            values = column.to_pylist()
            if len({len(value) for value in values}) > 1 or not _is_list(column.type):
                raise PredictionsError(
                    f"column '{name}' must hold as many numbers in every row; split it,"
                    " or leave it out"
                )
            columns[name] = np.array(values)
        elif types.is_dictionary(column.type) or _is_text(column.type):
            columns[name] = np.array(column.to_pylist())
        else:
            columns[name] = np.asarray(column.to_numpy())
    return columns


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_kind(kind) for is_kind in tests)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_kind(kind) for is_kind in tests)


def _parquet_file(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise PredictionsError(
            ".parquet files need pyarrow: pip install 'qualms-bench[tables]'"
        ) from error
    return parquet.ParquetFile(path)


def _csv_rows(path: Path, separator: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the cells of each column."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            lines = csv.reader(file, delimiter=separator, strict=True)
            rows = [row for row in lines if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise PredictionsError(
                f"is not a readable .csv file ({error}); save it as UTF-8 with commas"
            ) from error
    names, rows = [name.strip() for name in next(iter(rows), [])], rows[1:]
    if not rows:
        raise PredictionsError("has no rows below the names of the columns")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PredictionsError(f"column '{twice}' is there twice; rename one")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise PredictionsError(
                f"row {number} has {len(row)} {plural(len(row), 'cell')}, the first"
                f" line names {len(names)} columns; correct the row"
            )
    cells = zip(*rows, strict=True)
    return list(zip(names, cells, strict=True))


def _parsed(cells: Sequence[str], decimal: str, is_text: bool) -> NDArray[Any]:
    texts = [cell.strip() for cell in cells]
    if is_text:
        return np.array(texts)
    for kind in (int, float):
        try:
            return np.array([kind(with_point(text, decimal)) for text in texts])
        except (ValueError, OverflowError):
            continue
    flags = {"true": True, "false": False}
    if all(text.lower() in flags for text in texts):
        return np.array([flags[text.lower()] for text in texts])
    return np.array(texts)


def with_point(text: str, decimal: str) -> str:
    """Return a number with a decimal point; raise ValueError if it has another one."""
    if decimal != "." and "." in text:
        raise ValueError(text)  # 1.000 may be a thousand
    return text.replace(decimal, ".")


def is_prob(name: str) -> bool:
    """Return whether the name is that of a column with P(y=1) or all probabilities."""
    return name.startswith("y_") and _PROB.fullmatch(name) is not None


def class_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the columns with the probability of a class, by the name of the class.

    >>> class_columns(["y_true", "y_prob_cat", "y_proba_dog", "y_prob"])
    {'cat': 'y_prob_cat', 'dog': 'y_proba_dog'}
    """
    matches = {name: re.fullmatch(r"y_proba?_(.+)", name) for name in names}
    return {match[1]: name for name, match in matches.items() if match}


def as_class_names(values: NDArray[Any]) -> list[str]:
    """Return labels of classes as text: 3 for 3.0, because programs write both."""
    if values.dtype.kind == "f" and np.all(values == np.floor(values)):
        values = values.astype(np.int64)
    return [str(value) for value in values.tolist()]


def own_columns(columns: Columns, task: str) -> dict[str, NDArray[Any]]:
    """Return the columns named like an array of `task`."""
    return {
        name: values
        for name, values in columns.items()
        if name in _OWN or ("/" in name and array_field(task, name) is not None)
    }


def unread_note(columns: Columns, used: Sequence[str]) -> tuple[str, ...]:
    """Return a note on unused columns; () if all were used."""
    unread = [name for name in columns if name not in used]
    if not unread:
        return ()
    listed = ", ".join(unread[:6]) + (" ..." if len(unread) > 6 else "")
    hint = "" if "cluster" in columns else cluster_hint(unread)
    return (f"{plural(len(unread), 'column')} not read: {listed}{hint}",)


def class_contents(
    probs: NDArray[Any], classes: Sequence[str], target: NDArray[Any] | None
) -> ForeignContents:
    """Return contents with class probabilities (N, C) and targets, which may be names.

    Raises:
        PredictionsError: If a target is none of the classes.
    """
    numbers = [str(number) for number in range(len(classes))]
    header: dict[str, Any] = {} if list(classes) == numbers else {"classes": classes}
    arrays: dict[str, Any] = {"probs": probs}
    if target is not None:
        places = {name: number for number, name in enumerate(classes)}
        named = as_class_names(target)
        row = next((r for r, name in enumerate(named) if name not in places), None)
        if row is not None:
            raise PredictionsError(
                f"the true class of row {row} is {named[row]!r:.60}, which is none of"
                f" the classes with a probability: {', '.join(classes)}; name the"
                " columns or classes as the true classes are named"
            )
        arrays["target"] = np.array([places[name] for name in named])
    return ForeignContents(arrays=arrays, header=header)
