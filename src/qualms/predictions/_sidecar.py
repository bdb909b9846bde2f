"""The header of a table: a file beside it with `.json` added to its name.

Two files cannot be replaced in one step. While a table is replaced, the file beside it
has the headers of both tables, each with the checksum of its table. A killed writer
thus leaves the old table with its header or the new table with its own.
"""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from qualms.atomic import replacing
from qualms.predictions._errors import PredictionsError
from qualms.predictions._header import loads
from qualms.predictions._opened import OpenedFile, opened

_VERSIONS = "versions"
"""Key of the headers of an old and a new table, while one replaces the other."""
_CHUNK = 2**20


def sidecar(path: Path) -> Path:
    """Return the path of the header of the table at `path`."""
    return path.with_name(f"{path.name}.json")


def read_header(table: OpenedFile) -> dict[str, Any]:
    """Return the header of a table; {} if it has none."""
    path = sidecar(table.path)
    if not path.is_file():
        return {}
    with opened(path) as beside:
        header = loads(beside.content(), f"the file '{path.name}' beside it")
    versions = header.get(_VERSIONS)
    if set(header) != {_VERSIONS} or not isinstance(versions, dict):
        return header
    version = versions.get(_sum(table.file))
    if not isinstance(version, dict):
        raise PredictionsError(
            f"was changed after somebody began to replace it, and '{path.name}' beside "
            "it has no header of this table; write it again, or delete that file"
        )
    return dict(version)


def write_table(path: Path, header: str, write: Callable[[Path], None]) -> None:
    """Write a table with its header beside it; both appear, or nothing changes.

    `write` writes the table to the path that it is called with, and `header` is JSON.
    """
    with replacing(path) as temporary:
        write(temporary)
        text = header
        if path.is_file():
            old, new = _version(path), {_file_sum(temporary): json.loads(header)}
            text = json.dumps({_VERSIONS: old | new})
        _put(sidecar(path), text)
    if text != header:
        _put(sidecar(path), header)


def _version(path: Path) -> dict[str, Any]:
    """Return the header of the table at `path` by the checksum of the table."""
    with opened(path) as table:
        try:
            header = read_header(table)
        except PredictionsError:  # a damaged header, which is replaced
            header = {}
        return {_sum(table.file): header}


def _put(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _file_sum(path: Path) -> str:
    with path.open("rb") as file:
        return _sum(file)


def _sum(file: BinaryIO) -> str:
    """Return the size and the checksum of an open file as text."""
    file.seek(0)
    checksum = 0
    while chunk := file.read(_CHUNK):
        checksum = zlib.crc32(chunk, checksum)
    return f"{file.tell()}-{checksum:08x}"
