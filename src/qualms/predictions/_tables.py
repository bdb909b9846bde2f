"""Tables: the columns of .csv and .parquet files and of frames, and .parquet itself.

An array (N,) is a column of the same name; (N, K) is K columns `name_0` to
`name_{K-1}`, and `probs` is `prob_0`, `prob_1`, ... A table holds one draw. Its header
may be in a file beside it with `.json` added to the name: `preds.csv.json`.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, parsing, shortened
from qualms.predictions._limits import refuse_unpacking, refuse_wide_text
from qualms.predictions._names import matching_tasks
from qualms.predictions._normal import RawArrays
from qualms.predictions._opened import OpenedFile
from qualms.predictions._sidecar import read_header, sidecar
from qualms.predictions.schema import Field, Kind, array_field, schemas

# Yields the columns of the given names in turn.
_ReadColumns = Callable[[Sequence[str]], Iterator[NDArray[Any]]]
_NUMBERED = re.compile(r"(.+)_(0|[1-9][0-9]{0,8})")


def field_of(column: str) -> Field | None:
    """Return the field that a column belongs to in any task."""
    return _field(_array_of(column))


@lru_cache(maxsize=1024)
def _field(name: str) -> Field | None:
    fields = (array_field(task, name) for task in schemas())
    return next((field for field in fields if field is not None), None)


def kinds_of(columns: Sequence[str]) -> dict[str, Kind]:
    """Return the kind of each column, in the task that the names of all show."""
    arrays = {column: _array_of(column) for column in columns}
    matching = matching_tasks(arrays.values())
    kinds: dict[str, Kind] = {}
    for column, array in arrays.items():
        fields = [array_field(task, array) for task in matching or schemas()]
        field = next((each for each in fields if each is not None), field_of(column))
        kinds[column] = "any" if field is None else field.kind
    return kinds


def wanted_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that belong to arrays of the task that the names match."""
    counts = Counter(names)
    if len(counts) < len(names):
        twice = next(name for name in names if counts[name] > 1)
        raise PredictionsError(
            f"column '{shortened(twice)}' is there twice; rename one"
        )
    arrays = {name: _array_of(name) for name in names}
    matching = matching_tasks(arrays.values())
    tasks = matching if len(matching) == 1 else list(schemas())
    return [
        name
        for name, array in arrays.items()
        if any(array_field(task, array) is not None for task in tasks)
    ]


def raw_table(
    source: OpenedFile,
    names: Collection[str],
    rows: int,
    stored_columns: _ReadColumns,
) -> RawArrays:
    """Return the arrays and the header of a table, columns read by `stored_columns`."""
    columns = _columns_by_array(wanted_columns(tuple(names)))
    _refuse_unsplit(columns)
    used = {column for parts in columns.values() for column in parts}
    return RawArrays(
        shapes={
            name: (rows,) if parts == [name] else (rows, len(parts))
            for name, parts in columns.items()
        },
        load=partial(_joined, columns, stored_columns),
        header=read_header(source),
        header_at=f"a file '{sidecar(source.path).name}' beside it (JSON)",
        unread=tuple(name for name in names if name not in used),
    )


def _refuse_unsplit(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise if one column holds an array of several numbers per item."""
    for name, parts in columns.items():
        field = field_of(name)
        if parts != [name] or field is None or not field.axes or "N" in field.axes:
            continue
        head = "prob" if name == "probs" else name
        hint = f"; {field.hint}" if field.hint else ""
        raise PredictionsError(
            f"column '{name}' must be several columns of one number each, {head}_0, "
            f"{head}_1, ...{hint}"
        )


@runtime_checkable
class Frame(Protocol):
    """A table in memory, such as a DataFrame of pandas or polars."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: str, /) -> Any: ...


def frame_arrays(frame: Frame) -> dict[str, Any]:
    """Return the arrays of a frame whose columns are named as in a .csv file.

    `y_true`, `y_prob`, `y_prob_0`, ... are the target and the probabilities.
    """
    wrong = next((name for name in frame.columns if not isinstance(name, str)), None)
    if wrong is not None:
        raise PredictionsError(f"the name of a column must be text, got {wrong!r:.60}")
    given = {_renamed(name, frame): name for name in frame.columns}
    wanted = wanted_columns(list(given))
    arrays = arrays_of_columns(wanted, lambda name: frame[given[name]])
    others = {name: frame[given[name]] for name in given if name not in wanted}
    return arrays | others


def _renamed(name: str, frame: Frame) -> str:
    """Return our name of a column of scikit-learn, where no other column has it."""
    own = re.sub(r"^y_(?=prob(_[0-9]+)?$)", "", name)
    own = "target" if name == "y_true" else own
    return name if own in frame.columns else own


def arrays_of_columns(
    names: Sequence[str], take: Callable[[str], Any]
) -> dict[str, Any]:
    """Return the arrays that columns form, each column taken by its name."""
    return {
        name: take(parts[0])
        if parts == [name]
        else np.stack([np.asarray(take(part)) for part in parts], axis=1)
        for name, parts in _columns_by_array(names).items()
    }


def table_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays in normal form without the axis of draws, for a table."""
    return {name: _one_draw(name, array) for name, array in arrays.items()}


def columns_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of arrays that `table_arrays` made."""
    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
            continue
        head = "prob" if name == "probs" else name
        columns |= {f"{head}_{k}": array[:, k] for k in range(array.shape[1])}
    return columns


def _array_of(column: str) -> str:
    # Families have no numbered columns: users choose the name after the slash.
    numbered = None if "/" in column else _NUMBERED.fullmatch(column)
    if numbered is None:
        return column
    name = "probs" if numbered[1] == "prob" else numbered[1]
    kind = _numbered_kind(name)
    if kind == "draws":
        raise PredictionsError(
            f"column '{column}': a table holds one draw of '{name}'; write several "
            "draws as .npz or .safetensors"
        )
    return name if kind == "wide" else column


@lru_cache(maxsize=1024)
def _numbered_kind(name: str) -> str:
    forms = [
        axes for task in schemas() if (f := array_field(task, name)) for axes in f.axes
    ]
    if any(len(axes) == 2 and axes[0] == "N" for axes in forms):
        return "wide"
    return "draws" if "MN" in forms else ""


def _columns_by_array(names: Sequence[str]) -> dict[str, list[str]]:
    wide: dict[str, dict[int, str]] = {}
    columns: dict[str, list[str]] = {}
    for column in names:
        name = _array_of(column)
        if name == column:
            columns[name] = [column]
        else:
            wide.setdefault(name, {})[int(column.rpartition("_")[2])] = column
    for name, parts in wide.items():
        head = "prob" if name == "probs" else name
        missing = next((k for k in range(len(parts)) if k not in parts), None)
        if missing is not None:
            raise PredictionsError(
                f"column '{head}_{missing}' is missing, though there is "
                f"'{head}_{max(parts)}'; columns must be numbered {head}_0, {head}_1, "
                "..."
            )
        if name in columns:
            raise PredictionsError(
                f"columns '{name}' and '{head}_0' say the same thing twice; keep one"
            )
        columns[name] = [parts[k] for k in range(len(parts))]
    return columns


def _joined(
    columns: Mapping[str, Sequence[str]], stored_columns: _ReadColumns, name: str
) -> NDArray[Any]:
    parts = columns[name]
    arrays = stored_columns(parts)
    first = next(arrays)
    if parts == [name]:
        return first
    joined = np.empty((len(first), len(parts)), dtype=np.float64)
    for k, values in enumerate(chain([first], arrays)):
        if values.dtype.kind not in "fiub":
            raise PredictionsError(
                f"column '{parts[k]}' must be numbers, got {values.dtype}; convert it"
            )
        if len(values) != len(first):
            raise PredictionsError(
                f"column '{parts[k]}' has {len(values)} rows and '{parts[0]}' has "
                f"{len(first)}; the file is damaged: write it again"
            )
        joined[:, k] = values
    return joined


def _one_draw(name: str, array: NDArray[Any]) -> NDArray[Any]:
    field = field_of(name)
    if field is not None and field.draws:
        if len(array) > 1:
            raise PredictionsError(
                f"array '{name}' has {len(array)} draws, a table holds one; write "
                ".safetensors or .npz"
            )
        array = array[0]
    if array.ndim > (2 if field is None or field.axes else 1) or array.ndim == 0:
        raise PredictionsError(
            f"array '{name}' of shape {array.shape} does not fit into a table; leave "
            "it out, or write .safetensors or .npz"
        )
    return array


def read_parquet(source: OpenedFile) -> RawArrays:
    """Read the arrays of a .parquet file, and the header beside it."""
    with parsing(source.path), _parquet_file(source) as file:
        names = list(file.schema_arrow.names)
        rows = int(file.metadata.num_rows)
        wanted = wanted_columns(names)
        refuse_unpacking(rows * len(wanted) * 8, source.size)
        texts = {
            name
            for name, kind in zip(names, file.schema_arrow.types, strict=True)
            if _is_text(kind)
        }
    return raw_table(source, names, rows, partial(_read_columns, source, texts))


def parquet_names(source: OpenedFile) -> list[str]:
    """Return the names of the columns of a .parquet file."""
    with parsing(source.path), _parquet_file(source) as file:
        return list(file.schema_arrow.names)


def parquet_column(source: OpenedFile, name: str) -> NDArray[Any]:
    """Return one column of a .parquet file, all of which must fit into memory."""
    with parsing(source.path), _parquet_file(source) as file:
        sizes = file.metadata.num_rows * file.metadata.num_columns * 8
        refuse_unpacking(sizes, source.size)
        texts = [name] if _is_text(file.schema_arrow.field(name).type) else []
    return next(_read_columns(source, texts, [name]))


def write_parquet_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns as a .parquet file; numbers keep their types."""
    parquet = _parquet()
    from pyarrow import array, table

    arrays = {
        name: array(np.ascontiguousarray(values)) for name, values in columns.items()
    }
    parquet.write_table(table(arrays), path, write_page_checksum=True)


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise PredictionsError(
            ".parquet files need pyarrow: pip install 'qualms-bench[tables]'"
        ) from error
    return parquet


def _parquet_file(source: OpenedFile, texts: Sequence[str] = ()) -> Any:
    # A dictionary stores repeated text once; unpacked it could fill the memory.
    return _parquet().ParquetFile(
        source.file, page_checksum_verification=True, read_dictionary=list(texts)
    )


def _read_columns(
    source: OpenedFile, texts: Collection[str], names: Sequence[str]
) -> Iterator[NDArray[Any]]:
    wanted_texts = [name for name in names if name in texts]
    with parsing(source.path), _parquet_file(source, wanted_texts) as file:
        # A dot in a name would be taken for a path into a nested column.
        dotted = any("." in name for name in names)
        table = file.read(columns=None if dotted else list(names))
        positions = {name: position for position, name in enumerate(table.column_names)}
        for name in names:
            column = table.column(positions[name])
            _refuse_nulls(name, column)
            if name in texts:
                yield _texts(name, column, source.size)
            else:
                yield _numbers(name, column)


def _refuse_nulls(name: str, column: Any) -> None:
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise PredictionsError(
            f"column '{name}', row {row} is empty (null); fill it or leave the row out"
        )


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    values = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_kind(values) for is_kind in tests)


def _numbers(name: str, column: Any) -> NDArray[Any]:
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.asarray(column.to_numpy())
    raise PredictionsError(
        f"column '{name}' must be numbers, true and false, or text, got "
        f"{shortened(str(kind))}; convert it"
    )


def _texts(name: str, column: Any, packed: int) -> NDArray[Any]:
    from pyarrow import compute

    rows, longest, characters = len(column), 0, 0
    for chunk in column.chunks:
        lengths = compute.utf8_length(chunk.dictionary)
        longest = max(longest, compute.max(lengths).as_py() or 0)
        characters += compute.sum(lengths.take(chunk.indices)).as_py() or 0
    refuse_unpacking(4 * rows * longest, packed)
    refuse_wide_text(name, rows=rows, longest=longest, characters=characters)
    parts = [
        np.array(chunk.dictionary.to_pylist(), dtype=np.str_)[chunk.indices.to_numpy()]
        for chunk in column.chunks
    ]
    return np.concatenate([np.empty(0, dtype=np.str_), *parts])
