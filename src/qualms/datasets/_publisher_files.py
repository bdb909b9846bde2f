"""Find the files that a publisher ships, and say what is missing.

Most of this runs before anything is loaded: a folder that is not laid out as expected
is refused. `reading` is for the loading itself, where a single bad file is reported and
counted instead.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from qualms.datasets._recipe import DatasetError

SHOWN = 5


class CsvRow(NamedTuple):
    """A row of a comma- or tab-separated file."""

    fields: Mapping[str, str]
    line: int
    """Line in the file, from 1 on, counting the header and blank lines."""


def locate(root: Path, folder: str, *, holding: Sequence[str]) -> Path:
    """Return `root` or its folder `folder`, whichever has all names in `holding`."""
    for candidate in (root, root / folder):
        if all((candidate / name).exists() for name in holding):
            return candidate
    candidate = root / folder if (root / folder).is_dir() else root
    raise DatasetError(
        f"expected {' and '.join(holding)} in {root} or in {root / folder}; "
        f"{contents(candidate)}"
    )


def file_names(folder: Path, pattern: str, *, like: str) -> tuple[str, ...]:
    """List names in `folder` that match all of `pattern`; raise if none does."""
    matching = _matching(folder, pattern)
    if not matching:
        raise DatasetError(
            f"expected files like {like} in {folder}; {contents(folder)}"
        )
    return matching


def file_names_in_either(
    first: Path, second: Path, pattern: str, *, like: str
) -> tuple[str, ...]:
    """List names in either of two folders that should hold the same files, sorted.

    A name that only one of them has is kept, so that loading it says what is missing.
    """
    together = {*_matching(first, pattern), *_matching(second, pattern)}
    if not together:
        raise DatasetError(
            f"expected files like {like} in {first} and {second}; {contents(first)}"
        )
    return tuple(sorted(together))


def contents(path: Path) -> str:
    """Say what is at `path`, as the end of an error message."""
    if not path.exists():
        return f"there is nothing at {path}"
    if not path.is_dir():
        return f"{path} is a file"
    names = sorted(entry.name for entry in path.iterdir())
    if not names:
        return f"{path} is empty"
    more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN} more"
    return f"{path} holds {', '.join(names[:SHOWN])}{more}"


def read_table(path: Path, columns: Sequence[str]) -> list[CsvRow]:
    """Read a comma- or tab-separated file, which must have `columns`."""
    if not path.is_file():
        raise DatasetError(f"expected a table at {path}; {contents(path.parent)}")
    with reading(path), path.open(newline="", encoding="utf-8-sig") as lines:
        try:
            fields, rows = _parse(lines)
        except UnicodeError as error:
            raise ValueError(
                "its text must be in UTF-8, got another encoding such as UTF-16; save"
                " the table as CSV in UTF-8"
            ) from error
    _check_table(path, columns, fields, rows)
    return rows


def finite_number(row: Mapping[str, str], column: str, *, where: str) -> float:
    """Return the finite number in `column`; `where` names the row in the error."""
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DatasetError(
            f"{column} must be a finite number, got {row[column]!r} in {where}"
        )
    return value


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a decoder raises into an error that names the file."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise DatasetError(f"there is no file {path}") from error
    except Exception as error:
        # Decoders of damaged bytes raise anything from EOFError to struct.error.
        reason = str(error) or type(error).__name__
        raise DatasetError(f"cannot read {path}: {reason}") from error


def _matching(folder: Path, pattern: str) -> tuple[str, ...]:
    if not folder.is_dir():
        raise DatasetError(f"expected a folder {folder}; {contents(folder.parent)}")
    expression = re.compile(pattern)
    present = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name for name in present if expression.fullmatch(name)))


def _parse(lines: TextIO) -> tuple[list[str], list[CsvRow]]:
    """Return the header and the rows, without blank lines."""
    header = lines.readline()
    if "\0" in header:  # UTF-16 without a byte order mark
        raise UnicodeError
    delimiter = "\t" if "\t" in header else ","
    fields = next(csv.reader([header], delimiter=delimiter), [])
    reader = csv.DictReader(lines, fields, delimiter=delimiter)
    rows = []
    for row in reader:
        if not any(row.get(None, ())):  # a comma at the end makes no field
            row.pop(None, None)
        rows.append(CsvRow(row, reader.line_num + 1))
    return fields, rows


def _check_table(
    path: Path, columns: Sequence[str], fields: Sequence[str], rows: Sequence[CsvRow]
) -> None:
    missing = [column for column in columns if column not in fields]
    if missing and len(fields) == 1 and ";" in fields[0]:
        raise DatasetError(
            f"columns of {path} must be separated by commas, the first line is"
            f" {fields[0]!r:.60}; save it again as comma-separated"
        )
    if missing:
        raise DatasetError(
            f"{path} must have the columns {', '.join(columns)}; "
            f"{', '.join(missing)} not in {', '.join(fields) or 'an empty header'}"
        )
    if not rows:
        raise DatasetError(f"{path} has a header but no rows")
    for row in rows:
        # DictReader fills a short row with None, and keeps surplus fields under None.
        if any(row.fields[column] is None for column in columns):
            raise DatasetError(f"line {row.line} of {path} has too few fields")
        if None in row.fields:
            raise DatasetError(
                f"line {row.line} of {path} has too many fields, the header has"
                f" {len(fields)}"
            )
