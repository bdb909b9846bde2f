"""Files that are opened once, so that all that is read is of one version.

Another process may replace a file while it is read. One handle reads one version of it,
and what the file is afterwards is compared with what it was before: that shows a file
that was written over, and one of several files that belong together that was replaced.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qualms.predictions._errors import PredictionsError


class FileVersion(NamedTuple):
    """A version of a file; it is another one after the file was written or replaced."""

    inode: int
    size: int
    modified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that is open for reading."""

    path: Path
    file: BinaryIO
    state: FileVersion

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.state.size


@contextmanager
def opened(path: Path, state: FileVersion | None = None) -> Iterator[OpenedFile]:
    """Open `path`; raise if it is another version now, or after the context.

    With `state`, it must be that version from the beginning.
    """
    with path.open("rb") as file:
        here = _state(os.fstat(file.fileno()))
        if state not in (None, here):
            raise PredictionsError(
                "was changed or replaced after its folder was read; read the folder "
                "again"
            )
        yield OpenedFile(path=path, file=file, state=here)
        _compare(here, _state(os.fstat(file.fileno())))
    _compare(here, file_state(path))


def file_state(path: Path) -> FileVersion | None:
    """Return the version of the file at `path`; None if there is no file."""
    try:
        return _state(path.stat())
    except FileNotFoundError:
        return None


def _state(status: os.stat_result) -> FileVersion:
    return FileVersion(status.st_ino, status.st_size, status.st_mtime_ns)


def _compare(before: FileVersion, now: FileVersion | None) -> None:
    if now != before:
        raise PredictionsError(
            "was changed or replaced while it was read; read it again when nobody "
            "writes to it"
        )
