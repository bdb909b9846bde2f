"""Reads arrays and columns of files that other programs wrote."""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import safe_open

from qualms.predictions._binary import archived_array
from qualms.predictions._errors import (
    PredictionsError,
    listed,
    naming,
    parsing,
    remedy_of_ending,
    shortened,
)
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import loads
from qualms.predictions._limits import refuse_unpacking
from qualms.predictions._opened import OpenedFile, opened
from qualms.predictions._tables import parquet_column, parquet_names
from qualms.predictions._text_table import as_floats, table_rows
from qualms.predictions._values import text_array
from qualms.wording import plural

ARRAY_FILES = (".npz", ".npy", ".safetensors")
"""Endings of files whose arrays are read without unpickling anything."""

_FLAGS = {"true": True, "false": False}


class StoredColumns(Mapping[str, NDArray[Any]]):
    """Columns of a table, or arrays of an .npz file, which are read when taken."""

    def __init__(
        self, names: Sequence[str], load: Callable[[str], NDArray[Any]]
    ) -> None:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise PredictionsError(
                f"column '{shortened(twice)}' is there twice; rename one"
            )
        self._names = dict.fromkeys(names)
        self._load = load
        self._taken: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._taken and name in self._names:
            self._taken[name] = self._load(name)
        return self._taken[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def array_names(path: Path, *, separator: str = ",") -> tuple[str, ...]:
    """Return the names of the columns of a table, or of the arrays of an .npz file.

    () if none can be read; the error of reading the file then says why.
    """
    try:
        with opened(path) as source:
            if path.suffix.lower() == ".csv":
                return tuple(
                    name.strip() for name in next(table_rows(source, separator))
                )
            return tuple(_NAMES[path.suffix.lower()](source))
    # The bytes of a file may be anything.
    except Exception:
        return ()


def stored_columns(
    path: Path,
    *,
    separator: str = ",",
    decimal: str = ".",
    text: Sequence[str] = ("item",),
) -> Mapping[str, NDArray[Any]]:
    """Read the columns of a .csv or .parquet file, or the arrays of an .npz file.

    The columns of a .csv file named in `text` stay text, such as 007; others become
    numbers, truth values or text.

    Raises:
        PredictionsError: If the file is no such file; taking a column may raise it,
            too.
    """
    ending = path.suffix.lower()
    if ending == ".csv":
        with opened(path) as source, parsing(path):
            names, *rows = _rows(table_rows(source, separator))
        cells = dict(zip(names, zip(*rows, strict=True), strict=True))
        return StoredColumns(
            names, lambda name: _parsed(name, cells[name], decimal, name in text)
        )
    if ending == ".parquet":
        with opened(path) as source:
            names, state = parquet_names(source), source.state

        def column(name: str) -> NDArray[Any]:
            with opened(path, state) as source:
                return parquet_column(source, name)

        return StoredColumns(names, column)
    if ending not in _NAMES:
        raise PredictionsError(
            f"must end in .csv, .parquet or .npz, it ends in '{path.suffix}';"
            f" {remedy_of_ending(path) or 'give text the ending .csv'}"
        )
    with opened(path) as source, parsing(path):
        names = _NAMES[ending](source)
    return StoredColumns(names, partial(read_array, path))


def _rows(rows: Iterator[list[str]]) -> list[list[str]]:
    """Return the names of the columns and the cells of all rows."""
    names = [name.strip() for name in next(rows, [])]
    below = list(rows)
    for number, row in enumerate(below):
        if len(row) != len(names):
            raise PredictionsError(
                f"row {number} has {len(row)} {plural(len(row), 'cell')}, the first"
                f" line names {len(names)} columns; correct the row"
            )
    if not below:
        raise PredictionsError("has no rows below the names of the columns")
    return [names, *below]


def _parsed(
    name: str, cells: Sequence[str], decimal: str, is_text: bool
) -> NDArray[Any]:
    """Return the cells of a column; 01 is a name, as no program prints numbers so."""
    texts = [cell.strip() for cell in cells]
    if is_text:
        return text_array(name, texts)
    numbers = as_floats(texts, decimal=decimal, padded=False)
    if numbers is not None:
        try:
            return np.array(list(map(int, texts)), dtype=np.int64)
        except ValueError:
            return np.array(numbers)
        except OverflowError:
            return text_array(name, texts)
    flags = [_FLAGS.get(text.lower()) for text in texts]
    return text_array(name, texts) if None in flags else np.array(flags)


def read_array(path: Path, name: str = "") -> NDArray[Any]:
    """Read an array of an .npz, .npy or .safetensors file; nothing is unpickled.

    Without a name, the file must hold exactly one array.

    Raises:
        PredictionsError: If the file is no such file, or has no such array.
    """
    with naming(str(path)):
        if not path.is_file():
            raise PredictionsError("there is no such file; check the path")
        if path.suffix.lower() not in ARRAY_FILES:
            raise PredictionsError(
                f"must end in {', '.join(ARRAY_FILES)}, since nothing is ever"
                " unpickled; save the array with numpy.savez_compressed or safetensors"
            )
        with opened(path) as source, parsing(path):
            return _READERS[path.suffix.lower()](source, name)


def read_json(path: Path, form: str = "{...}") -> dict[str, Any]:
    """Read a file that holds a JSON object, whose `form` errors show.

    Raises:
        PredictionsError: If it holds none.
    """
    with opened(path) as source:
        return loads(source.content(), str(path), form=form)


def _from_npz(source: OpenedFile, name: str) -> NDArray[Any]:
    archive = zipfile.ZipFile(source.file)
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    return archived_array(source, archive, members[_chosen(name, list(members))])


def _from_npy(source: OpenedFile, name: str) -> NDArray[Any]:
    _chosen(name, [name])
    return numpy_array(name, npy.read_array(source.file, allow_pickle=False))


def _from_safetensors(source: OpenedFile, name: str) -> NDArray[Any]:
    with safe_open(source.path, framework="np") as file:
        array = file.get_tensor(_chosen(name, list(file.keys())))
    refuse_unpacking(array.nbytes, source.size)
    return numpy_array(name, np.asarray(array))


def _chosen(name: str, names: list[str]) -> str:
    """Return the name of the array to read; raise unless there is one."""
    if name in names:
        return name
    if name or len(names) != 1:
        wanted = f"an array '{name}'" if name else "one array alone"
        raise PredictionsError(
            f"must hold {wanted}, found {listed(names)}; write the file again"
        )
    return names[0]


_READERS = {".npz": _from_npz, ".npy": _from_npy, ".safetensors": _from_safetensors}


def _npz_names(source: OpenedFile) -> list[str]:
    names = zipfile.ZipFile(source.file).namelist()
    return [name.removesuffix(".npy") for name in names]


_NAMES = {".parquet": parquet_names, ".npz": _npz_names}
