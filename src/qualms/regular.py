"""Small files of folders that may come from somebody else, read without surprises.

A pipe, a device or a folder in the place of a file is no file: opening one could wait
forever. A file beyond a limit is not read into memory.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 64 << 20
"""Most bytes of a file of facts, such as the spec of a run, its log or its end."""

UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
)
"""Errors of reading and parsing a file that anybody may have written."""


def open_file(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes.

    Raises:
        OSError: If it cannot be opened, or is no file.
    """
    # Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} must be a file, got a pipe, a device or a folder")
    return os.fdopen(number, "rb")


def read_file(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file of at most `most` bytes.

    Raises:
        OSError: If it cannot be read, is no file, or is larger.
    """
    with open_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"{path} must have at most {most:,} bytes; it has more")
    return content


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; {} if there is none that can be read."""
    try:
        return as_object(json.loads(read_file(path)))
    except (OSError, ValueError, RecursionError):
        return {}


def as_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else {}."""
    return value if isinstance(value, dict) else {}


_BINARY = getattr(os, "O_BINARY", 0)
