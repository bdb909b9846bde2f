"""The carrier .csv: one row per item, in UTF-8, columns separated by commas."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, parsing
from qualms.predictions._normal import RawArrays
from qualms.predictions._schema import Kind
from qualms.predictions._tables import field_of, gathered

_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def read_csv(path: Path) -> RawArrays:
    """The arrays of a .csv file, and the header of its sidecar."""
    # Spreadsheets put a byte order mark before the first column.
    with parsing(path), path.open(encoding="utf-8-sig", newline="") as file:
        cells = _cells(csv.reader(file, strict=True))
    columns = {}
    for name in cells:
        if (about := field_of(name)) is not None:
            columns[name] = _PARSERS[about.kind](name, cells[name])
    unread = tuple(name for name in cells if name not in columns)
    return gathered(path, columns, unread)


def write_csv_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns as a .csv file; numbers come back with the same bits."""
    cells = [
        np.where(values, "true", "false").tolist()
        if values.dtype.kind == "b"
        else values.tolist()
        for values in columns.values()
    ]
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))


def _cells(reader: Iterator[list[str]]) -> dict[str, list[str]]:
    lines = filter(None, reader)
    names = _names(next(lines, []))
    cells: list[list[str]] = [[] for _ in names]
    # Few rows at a time: a list per row for the whole file keeps the collector busy.
    while rows := list(islice(lines, 256)):
        for row, found in enumerate(rows):
            if len(found) != len(names):
                raise PredictionsError(
                    f"row {row + len(cells[0])} has {len(found)} cells, the first line "
                    f"names {len(names)} columns; correct the row"
                )
        for column, part in zip(cells, zip(*rows, strict=True), strict=True):
            column.extend(part)
    if not cells[0]:
        raise PredictionsError(
            "has no rows below the line with the names of the columns; there must be "
            "at least one"
        )
    return dict(zip(names, cells, strict=True))


def _names(first: Sequence[str]) -> list[str]:
    names = [name.strip() for name in first]
    if not names:
        raise PredictionsError(
            "is empty; there must be a line with the names of the columns and at least "
            "one row below it"
        )
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise PredictionsError(
            f"columns must be separated by commas, the first line is {names[0]!r:.60}; "
            "save it again as comma-separated"
        )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise PredictionsError(f"column '{twice}' is there twice; rename one")
    return names


def _numbers(name: str, cells: Sequence[str]) -> NDArray[Any]:
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return _first_refused(name, cells, _number)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _first_refused(
    name: str, cells: Sequence[str], parse: Callable[[str], Any]
) -> NDArray[Any]:
    row = next(row for row, cell in enumerate(cells) if parse(cell) is None)
    wanted = "true or false (1 or 0)" if parse is _flag else "a number"
    got = f"{cells[row]!r:.60}" if cells[row].strip() else "empty"
    raise PredictionsError(
        f"column '{name}', row {row} must be {wanted}, it is {got}; correct the cell "
        "or leave the row out"
    )


def _flags(name: str, cells: Sequence[str]) -> NDArray[Any]:
    flags = list(map(_flag, cells))
    return _first_refused(name, cells, _flag) if None in flags else np.array(flags)


def _flag(cell: str) -> bool | None:
    return _FLAGS.get(cell.strip().lower())


def _texts(_: str, cells: Sequence[str]) -> NDArray[Any]:
    return np.array(cells, dtype=np.str_)


def _group_names(name: str, cells: Sequence[str]) -> NDArray[Any]:
    # '3' is a number here and '03' a name; only what prints the same again is taken.
    if all(cell.isdecimal() and cell.isascii() and len(cell) < 19 for cell in cells):
        whole = list(map(int, cells))
        if list(map(str, whole)) == list(cells):
            return np.array(whole)
    return _texts(name, cells)


_PARSERS: dict[Kind, Callable[[str, Sequence[str]], NDArray[Any]]] = {
    "real": _numbers,
    "class": _numbers,
    "byte": _numbers,
    "flag": _flags,
    "item": _texts,
    "name": _group_names,
}
