"""Digests of what run folders hold, by which judged cells are found again.

Files are read once: a file whose number, size and times of change stayed the same is
not read again. Nobody can set the time of a file's last change of status, so a byte
that was changed behind the back of its other times is noticed as well.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.runs import JudgedFile, judged_files

ABSENT = "absent"
"""Stands for a run that has no folder."""
SETTLED = 2.0
"""Seconds since its last change after which the times of a file tell that it is the
same: file systems count time in steps, and one step may have two changes."""
_CHUNK = 1 << 20


class RunContents:
    """Digests of the predictions of runs, with those that an earlier process made."""

    def __init__(self, runs: Path, memory: Path | None) -> None:
        """Read the digests that `memory` holds.

        Args:
            runs: The folder of the folders of runs.
            memory: The file of digests; None to remember none.
        """
        self._runs = runs
        self._memory = memory
        self._known: dict[str, list[Any]] = {} if memory is None else _read(memory)
        self._new: dict[str, list[Any]] = {}
        self._of: dict[str, str] = {}

    def of(self, run: str) -> str:
        """Return a digest of all that judging reads of a run; it changes with them."""
        if run not in self._of:
            self._of[run] = self._made(run)
        return self._of[run]

    def look_again(self) -> None:
        """Look at all files again: they may have changed since."""
        self._of.clear()

    def _made(self, run: str) -> str:
        folder = self._runs / run
        files = judged_files(folder)
        if not files and not folder.is_dir():
            return ABSENT
        parts = sorted((file.name, self._digest(run, file)) for file in files)
        text = json.dumps(parts)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def save(self) -> None:
        """Remember the digests for later processes, where that file can be written."""
        if self._memory is None or not self._new:
            return
        text = json.dumps({**self._known, **self._new})
        with suppress(OSError), replacing(self._memory) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _digest(self, run: str, file: JudgedFile) -> str:
        name, version = f"{run}/{file.name}", _version(file.status)
        for digests in (self._new, self._known):
            row = digests.get(name)
            if row is not None and row[:-1] == version:
                return str(row[-1])
        digest = _file_digest(file.path)
        changed = max(file.status.st_mtime, file.status.st_ctime)
        after = _version(os.stat(file.path))  # noqa: PTH116
        if changed < time.time() - SETTLED and after == version:
            self._new[name] = [*version, digest]
        return digest


def _version(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _file_digest(path: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:  # noqa: PTH123
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _read(memory: Path) -> dict[str, list[Any]]:
    """Return the digests in a file; {} if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads(memory.read_bytes())
        if isinstance(known, dict):
            rows: Iterable[tuple[str, Any]] = known.items()
            return {
                k: row for k, row in rows if isinstance(row, list) and len(row) == 5
            }
    return {}


def _is_version(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 5
