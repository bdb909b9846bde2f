"""Files .csv: one row per item, in UTF-8, columns separated by commas."""

import csv
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, parsing, shortened
from qualms.predictions._normal import RawArrays
from qualms.predictions._opened import OpenedFile
from qualms.predictions._tables import (
    field_of,
    kinds_of,
    raw_table,
    wanted_columns,
)
from qualms.predictions._text_table import as_floats, table_rows
from qualms.predictions._values import text_array
from qualms.predictions.schema import Kind
from qualms.results import harmless, unquoted
from qualms.wording import plural

_FLAGS = {"1": True, "true": True, "0": False, "false": False}
# First line, before the names of the columns, in files of other programs.
_BEFORE_NAMES = re.compile(r"sep=|#[^,]")
_EMBEDDING = "embedding_0"
"""First column of a table of embeddings, whose classes may be names."""
_REMEDIES = (
    (
        re.compile(r" *[+-]?[0-9,]+,[0-9,.]* *"),
        "numbers have a decimal point and no comma",
    ),
    (re.compile(r" *[0-9.,]+ *% *"), "write a share, such as 0.25 for 25%"),
    (re.compile(r" *(true|yes) *", re.IGNORECASE), "write 1"),
    (re.compile(r" *(false|no) *", re.IGNORECASE), "write 0"),
)
"""Remedies for cells that are no numbers, by their appearance."""


def read_csv(source: OpenedFile) -> RawArrays:
    """Read the arrays of a .csv file, and the header beside it."""
    with parsing(source.path):
        lines = table_rows(source)
        names = _names(next(lines, []))
        wanted = wanted_columns(names)
        kinds = kinds_of(wanted)
        embedded = _EMBEDDING in wanted
        columns = [_CsvColumn(name, kinds[name], named=embedded) for name in wanted]
        rows = _read_rows(lines, names, columns)
    by_name = {column.name: column for column in columns}
    return raw_table(
        source, names, rows, lambda wanted: (by_name[name].values() for name in wanted)
    )


def write_csv_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns as a .csv file; reading returns numbers with the same bits.

    Text that a spreadsheet would take for a formula is written with a leading quote,
    which reading removes.
    """
    cells = [_cells(values) for values in columns.values()]
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))


def _cells(values: NDArray[Any]) -> list[Any]:
    cells: list[Any] = values.tolist()
    if values.dtype.kind == "b":
        return ["true" if cell else "false" for cell in cells]
    if values.dtype.kind == "U":
        return list(map(harmless, cells))
    return cells


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
    _refuse_headless(names)
    return names


def _refuse_headless(names: Sequence[str]) -> None:
    """Raise if the first line does not hold the names of the columns."""
    named = any(field_of(name) is not None for name in names)
    if named or not (as_floats(names) or _BEFORE_NAMES.match(names[0])):
        return
    raise PredictionsError(
        "the first line must name the columns, as 'target,prob' does, it is "
        f"{','.join(names)!r:.60}; write their names there"
    )


def _read_rows(
    lines: Iterator[list[str]], names: Sequence[str], columns: Sequence["_CsvColumn"]
) -> int:
    positions = {name: position for position, name in enumerate(names)}
    count = 0
    # Few rows at a time: with a list per row of the whole file, the garbage collector
    # would take most of the time.
    while rows := list(islice(lines, 256)):
        for row, cells in enumerate(rows):
            if len(cells) != len(names):
                raise PredictionsError(
                    f"row {count + row} has {len(cells)} "
                    f"{plural(len(cells), 'cell')}, the first line names {len(names)} "
                    f"{plural(len(names), 'column')}; correct the row"
                )
        parts = list(zip(*rows, strict=True))
        for column in columns:
            column.extend(parts[positions[column.name]])
        count += len(rows)
    if not count:
        raise PredictionsError(
            "has no rows below the line with the names of the columns; there must be "
            "at least one"
        )
    return count


class _CsvColumn:
    """The cells of one column; numbers are parsed at once, text at the end."""

    def __init__(self, name: str, kind: Kind, *, named: bool = False) -> None:
        self.name = name
        self._kind = kind
        self._named = named and self._kind == "class"
        self._numbers = array("d")
        self._texts: list[str] = []

    def extend(self, cells: Sequence[str]) -> None:
        if self._named or self._kind not in ("real", "class", "byte"):
            self._texts.extend(cells)
            return
        numbers = self._as_numbers(cells)
        if numbers is None:
            row = next(
                r for r, cell in enumerate(cells) if not self._as_numbers([cell])
            )
            self._refuse(len(self._numbers) + row, cells[row], "a number")
        else:
            self._numbers.extend(numbers)

    def values(self) -> NDArray[Any]:
        if self._named:
            return self.classes()
        if self._kind in ("real", "class", "byte"):
            return np.frombuffer(self._numbers, dtype=np.float64)
        return _PARSERS[self._kind](self)

    def flags(self) -> NDArray[Any]:
        flags = [_FLAGS.get(cell.strip().lower()) for cell in self._texts]
        if None in flags:
            row = flags.index(None)
            self._refuse(row, self._texts[row], "true or false (1 or 0)")
        return np.array(flags)

    def texts(self) -> NDArray[Any]:
        texts = list(map(unquoted, self._texts))
        return text_array(self.name, texts)

    def names(self) -> NDArray[Any]:
        # '3' is a number; '03' is a name because no number is printed like this.
        cells = self._texts
        if all(c.isdecimal() and c.isascii() and len(c) < 19 for c in cells):
            integers = list(map(int, cells))
            if list(map(str, integers)) == cells:
                return np.array(integers)
        return self.texts()

    def classes(self) -> NDArray[Any]:
        """Return classes as numbers, or as names if few of them are numbers."""
        numbers = self._as_numbers(self._texts)
        if numbers is not None:
            return np.array(numbers)
        odd = [r for r, cell in enumerate(self._texts) if not self._as_numbers([cell])]
        if 2 * len(odd) < len(self._texts):
            self._refuse(odd[0], self._texts[odd[0]], "a number as most of them are")
        return self.texts()

    def guessed(self) -> NDArray[Any]:
        if set(self._texts) <= {"true", "false"}:
            return self.flags()
        names = self.names()
        if names.dtype.kind == "i":
            return names
        numbers = as_floats(self._texts, padded=False)
        return names if numbers is None else np.array(numbers)

    def _as_numbers(self, cells: Sequence[str]) -> list[float] | None:
        return as_floats(cells, padded=self._kind != "class")

    def _refuse(self, row: int, cell: str, wanted: str) -> None:
        content = f"{cell!r:.60}" if cell.strip() else "empty"
        raise PredictionsError(
            f"column '{shortened(self.name)}', row {row} must be {wanted}, it is "
            f"{content}; {self._remedy(cell)}"
        )

    def _remedy(self, cell: str) -> str:
        if cell.strip() == self.name:
            return "that is the name of the column: leave the row out"
        if self._kind in ("real", "class", "byte"):
            for form, remedy in _REMEDIES:
                if form.fullmatch(cell):
                    return remedy
            if self._kind == "class" and cell.strip().isidentifier():
                return "number the classes from 0"
            if self._kind == "class" and cell.strip().isdecimal():
                return "a number of a class has no zero in front: number them 0, 1, ..."
        return "correct the cell or leave the row out"


_PARSERS: dict[Kind, Callable[[_CsvColumn], NDArray[Any]]] = {
    "flag": _CsvColumn.flags,
    "item": _CsvColumn.texts,
    "name": _CsvColumn.names,
    "any": _CsvColumn.guessed,
}
