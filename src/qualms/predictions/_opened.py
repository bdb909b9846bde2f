"""Files that are opened once, so that all bytes read belong to one version.

Another process may replace a file while it is read. One handle reads one version of
it. The version at the path is compared before and after: a difference shows that the
file was overwritten, or that one of several files that belong together was replaced.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qualms.predictions._errors import PredictionsError


class FileVersion(NamedTuple):
    """A version of a file, which changes when the file is written or replaced."""

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
    """Open `path`; raise if the file changes before the end of the context.

    With `state`, the file must be of that version from the beginning.
    """
    with path.open("rb") as file:
        version = _state(os.fstat(file.fileno()))
        if state not in (None, version):
            raise PredictionsError(
                "was changed or replaced after its folder was read; read the folder "
                "again"
            )
        yield OpenedFile(path=path, file=file, state=version)
        _compare(version, _state(os.fstat(file.fileno())))
    _compare(version, file_state(path))


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
