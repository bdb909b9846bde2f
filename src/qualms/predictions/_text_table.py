"""Text of tables: rows of cells, and the numbers in cells.

Every reader of text uses it, so that a cell is the same number everywhere.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from qualms.predictions._opened import OpenedFile

LONGEST_LINE = 2**24
"""Most bytes of a line. A hundred thousand columns stay below."""
_BUFFER = 2**16
_PADDED = re.compile(r"^[ \t]*[+-]?0[0-9]+[ \t]*$", re.MULTILINE)
"""A whole number with a zero in front, as no program prints numbers: a name."""


def table_rows(source: OpenedFile, separator: str = ",") -> Iterator[list[str]]:
    """Return the rows of a file .csv as lists of cells, without blank lines.

    A NUL, or a line without an end, raises when it is reached.
    """
    buffered = io.BufferedReader(_Text(source.file), _BUFFER)
    # Spreadsheets put a byte order mark before the first column.
    text = io.TextIOWrapper(buffered, encoding="utf-8-sig", newline="")
    return filter(None, csv.reader(text, delimiter=separator, strict=True))


class _Text(io.RawIOBase):
    """The bytes of an open file, which is left open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer))
        if b"\0" in part:
            raise ValueError("it holds NUL bytes, which no text has")
        end = max(part.rfind(b"\n"), part.rfind(b"\r"))
        self._line = len(part) - end - 1 + (self._line if end < 0 else 0)
        if self._line > LONGEST_LINE:
            raise ValueError(
                f"a line has more than {LONGEST_LINE / 2**20:.0f} million characters"
            )
        buffer[: len(part)] = part
        return len(part)


def as_floats(
    cells: Sequence[str], *, decimal: str = ".", padded: bool = True
) -> list[float] | None:
    """Return cells as numbers; None if one of them is none.

    Numbers have the digits 0 to 9 and no other mark than those of 1.5e-3. Python also
    reads 1_000 and the digits of other scripts; other programs do not. Unless `padded`,
    001 is a name and no number.
    """
    together = "\n".join(cells)
    if "_" in together or not together.isascii():
        return None
    if not padded and _PADDED.search(together):
        return None
    if decimal != ".":
        if "." in together:
            return None  # 1.000 may be a thousand
        cells = [cell.replace(decimal, ".") for cell in cells]
    try:
        return list(map(float, cells))
    except ValueError:
        return None
