"""Columns as files hold them: the cells of CSV, written and read, and Parquet."""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qualms.arrays import Array, Flags
from qualms.atomic import replacing
from qualms.labels import Label
from qualms.regular import read_file
from qualms.results._columns import CodedColumn, SeriesColumn
from qualms.results._result import NUMBERS, PROVENANCE, SERIES, TEXTS, TIED

OTHER_COLUMNS = frozenset((*NUMBERS, *TEXTS, *SERIES, TIED, *PROVENANCE))
"""Columns of a file of results that hold no label."""
MOST_BYTES = 1 << 30
"""Most bytes of a table that is read."""
LABEL_PREFIX = "label "
"""Begins the column of a label that has the name of another column."""
_BEGINS = r"(^\s*|[;\t\r\n][\s\"]*)"
"""Where a spreadsheet may let a cell begin: many split at semicolons."""
_SIGNS = "[=+@\uff1d\uff0b\uff0d\uff20-]"
"""Characters with which a formula begins, also as wide as Chinese ones."""
_FORMULA = re.compile(rf"{_BEGINS}('*)({_SIGNS}[^;\t\r\n]*)")
_QUOTED = re.compile(rf"{_BEGINS}'('*{_SIGNS})")
_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Label]], ...] = (
    (re.compile(r"-?[0-9]+"), int),
    (re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"), float),
)
"""Patterns of the texts of numbers, such as 20, 0.1 and 1e-05."""
_BETWEEN = re.compile(r"[ ,;]+")
"""Separator between several numbers of a cell."""


def write_columns(columns: Mapping[str, Sequence[Any]], path: Path) -> Path:
    """Write columns of the same length as CSV, and return the path."""
    cells = map(_cells, columns.values())
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", errors="replace", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))
    return path


def read_lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the first line of a CSV file, the names of columns, and the others."""
    try:
        text = read_file(path, MOST_BYTES).decode("utf-8-sig")
        names, *lines = csv.reader(io.StringIO(text, newline=""))
    except (csv.Error, ValueError) as error:
        raise ValueError(
            f"{path} must be a table of results in CSV and UTF-8, as qualms writes it,"
            f" and cannot be read as one: {error}"
        ) from error
    for number, line in enumerate(lines, 2):
        if len(line) != len(names):
            raise ValueError(
                f"{path} must have {len(names)} cells in every line, got {len(line)} in"
                f" line {number}; was it saved with another separator?"
            )
    return names, lines


def column_name(label: str) -> str:
    """Return the name of the column of a label in files; `read_results` undoes it.

    >>> column_name("alpha"), column_name("epochs"), column_name("label epochs")
    ('alpha', 'label epochs', 'label label epochs')
    """
    ambiguous = label in OTHER_COLUMNS or label.startswith(LABEL_PREFIX)
    return f"{LABEL_PREFIX}{label}" if ambiguous else label


def exact_labels(labels: Sequence[Label]) -> list[Label]:
    """Return labels for a file, numbers with all digits so that they are found."""
    # A float64 of NumPy is a float, but its repr names its type.
    return [repr(float(v)) if isinstance(v, float) else v for v in labels]


def _cells(column: Sequence[Any]) -> list[str]:
    """Return the cells of a column; texts, of which few differ, are formatted once."""
    if set(map(type, column)) == {str}:
        texts = {text: csv_text(text) for text in set(column)}
        return [texts[text] for text in column]
    return [csv_text(value) for value in column]


def csv_text(value: Any) -> str:
    """Return a value as a cell of CSV; numbers with eight significant digits.

    >>> csv_text(0.1 + 0.2), csv_text(None), csv_text((1.0, 0.5)), csv_text("=1+1")
    ('0.3', '', '1 0.5', "'=1+1")
    """
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.8g}"
    if isinstance(value, tuple):
        return " ".join([f"{number:.8g}" for number in value])
    return "" if value is None else str(harmless(value))


def harmless(value: Any) -> Any:
    """Put quotes before what a spreadsheet would run; `unquoted` takes them away.

    Numbers are none, also several with spaces, commas or semicolons between them.

    >>> harmless("=1+1"), harmless("-0.5 -0.2"), harmless("map"), harmless("a;=1")
    ("'=1+1", '-0.5 -0.2', 'map', "a;'=1")
    """
    return _FORMULA.sub(_as_text, value) if isinstance(value, str) else value


def _as_text(part: re.Match[str]) -> str:
    if not part[2] and _is_numbers(part[3]):
        return part[0]
    return f"{part[1]}'{part[2]}{part[3]}"


def _is_numbers(text: str) -> bool:
    try:
        numbers = [float(part) for part in _BETWEEN.split(text.strip())]
    except ValueError:
        return False
    return bool(numbers) and text.isascii()


def unquoted(cell: str) -> str:
    """Return a cell without the quotes of `harmless`.

    >>> unquoted("a;'=1"), unquoted("''-x"), unquoted("'a")
    ('a;=1', "'-x", "'a")
    """
    return _QUOTED.sub(r"\1\2", cell)


def typed_labels(texts: Sequence[str]) -> list[Label | None]:
    """Return the labels of a column of CSV: numbers if all of them read as such."""
    distinct = {text for text in texts if text}
    if distinct <= {"True", "False"}:
        return [text == "True" if text else None for text in texts]
    for pattern, kind in _KINDS:
        if all(pattern.fullmatch(text) for text in distinct):
            labels = {text: kind(text) for text in distinct}
            return [labels.get(text) for text in texts]
    return [*cell_texts(texts)]


def cell_texts(cells: Sequence[str]) -> list[str | None]:
    """Return the texts of a column of CSV; None for ''."""
    texts = {cell: unquoted(cell) or None for cell in set(cells)}
    return [texts[cell] for cell in cells]


def cell_number(cell: str) -> float:
    """Return the number in a cell of CSV; nan for ''."""
    return float(cell) if cell else math.nan


def cell_numbers(cell: str) -> tuple[float, ...]:
    """Return the numbers in a cell of CSV."""
    return tuple(map(float, cell.split()))


def write_parquet(
    coded_columns: Mapping[str, CodedColumn],
    numbers: Mapping[str, Array | Flags],
    series: Mapping[str, SeriesColumn],
    path: Path,
) -> Path:
    """Write columns of the same length as Parquet, and return the path.

    Raises:
        ImportError: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            "Parquet needs pyarrow, which is not installed; install it with pip"
            " install 'qualms-bench[tables]', or use .to_csv(path)"
        ) from error
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(column.codes, mask=column.codes < 0), _arrow(column.distinct)
        )
        for name, column in coded_columns.items()
    }
    lists = {
        name: pa.ListArray.from_arrays(column.ends.astype(np.int32), column.flat)
        for name, column in series.items()
    }
    with replacing(path) as temporary:
        pq.write_table(pa.table({**columns, **numbers, **lists}), temporary)
    return path


def _arrow(distinct: tuple[Label, ...]) -> Any:
    """Return distinct values as an array of Arrow, typed as `read_results` types them.

    Whole numbers among others are floats, and other values of several types are texts.
    """
    import pyarrow as pa

    if any(isinstance(v, float) for v in distinct) and all(map(_is_numeric, distinct)):
        return pa.array([float(value) for value in distinct])
    if len({type(value) for value in distinct}) > 1:
        return pa.array([str(value) for value in distinct])
    return pa.array(list(distinct) or [""])


def _is_numeric(value: Label) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
