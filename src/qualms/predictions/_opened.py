"""Files that are opened once, so that all bytes read belong to one version.

Another process may replace a file while it is read. One handle reads one version of
it. The version at the path is compared before and after: a difference shows that the
file was overwritten, or that one of several files that belong together was replaced.
`FileVersions` is the same for all files of a folder.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qualms.predictions._errors import PredictionsError

_TICK = 0.01
"""Seconds within which a file system may give two versions of a file one time."""
_QUIET = 0.05
"""Seconds in which nobody may change a folder before it is read."""
_DEEP = 4
"""Most levels of folders in a layout of another program."""
_DESCRIBES = 2**28
"""Most bytes of a file that only describes others."""


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

    def content(self) -> bytes:
        """Return all bytes of a small file; raise if it is none."""
        if self.size > _DESCRIBES:
            raise PredictionsError(
                f"has {self.size / 2**20:.0f} MiB, which is too much for a file that"
                " only describes others; write it again"
            )
        return self.file.read()


@contextmanager
def opened(path: Path, state: FileVersion | None = None) -> Iterator[OpenedFile]:
    """Open `path`; raise if the file changes before the end of the context.

    With `state`, the file must be of that version from the beginning.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        refuse_pipe(os.fstat(file.fileno()))
        version = _settled(file)
        if state not in (None, version):
            raise PredictionsError(
                "was changed or replaced after its folder was read; read the folder "
                "again"
            )
        yield OpenedFile(path=path, file=file, state=version)
        _compare(version, _state(os.fstat(file.fileno())))
    _compare(version, file_state(path))


def refuse_pipe(status: os.stat_result) -> None:
    """Raise if a file is none: a pipe waits for a writer, a device may never end."""
    if not stat.S_ISREG(status.st_mode):
        raise PredictionsError(
            "must be a file, got a pipe, a device or a folder; write what it holds to a"
            " file"
        )


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _settled(file: BinaryIO) -> FileVersion:
    """Return the version of an open file, whose time no later version can have."""
    status = os.fstat(file.fileno())
    if abs(time.time() - status.st_mtime) < _TICK:
        time.sleep(_TICK)
        status = os.fstat(file.fileno())
    return _state(status)


def file_state(path: Path) -> FileVersion | None:
    """Return the version of the file at `path`; None if there is no file."""
    try:
        return _state(path.stat())
    except FileNotFoundError:
        return None


def _state(status: os.stat_result) -> FileVersion:
    return FileVersion(status.st_ino, status.st_size, status.st_mtime_ns)


def _compare(before: FileVersion | None, now: FileVersion | None) -> None:
    if now != before:
        raise PredictionsError(
            "was changed or replaced while it was read; read it again when nobody "
            "writes to it"
        )


@dataclass(frozen=True, slots=True)
class FileVersions:
    """The versions of files that belong together, at one moment."""

    states: Mapping[Path, FileVersion]

    def check(self, paths: Iterable[Path] | None = None) -> None:
        """Raise if one of the files, or of those in `paths`, has another version now.

        Files of `paths` that are not among them are left alone.
        """
        for path in self.states if paths is None else paths:
            if path in self.states and file_state(path) != self.states[path]:
                raise PredictionsError(
                    f"{path.name} was changed or replaced while its folder was read; "
                    "read it again when nobody writes to it"
                )


def versions_of(places: Iterable[Path]) -> FileVersions:
    """Return the versions of files, and of all files in folders.

    Whoever replaces several files does so one after the other. So nobody may have
    changed one of them just now, or do so in the next moment.
    """
    places = list(places)
    versions = FileVersions(_states(places))
    newest = max((state.modified for state in versions.states.values()), default=0)
    if abs(time.time() - newest / 1e9) < _QUIET:
        time.sleep(_QUIET)
        versions.check()
    return versions


def _states(places: Iterable[Path]) -> dict[Path, FileVersion]:
    states: dict[Path, FileVersion] = {}
    for place in places:
        if not place.is_dir():
            states[place] = _state(place.stat())
        for path in _files_in(place, _DEEP) if place.is_dir() else ():
            if (state := file_state(path)) is not None:
                states[path] = state
    return states


def _files_in(folder: Path, levels: int) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_file():
            yield entry
        elif levels and entry.is_dir():
            yield from _files_in(entry, levels - 1)
