"""Digests of the contents of run folders, which identify judged cells.

A file is read again only if its inode, size or times have changed. Programs cannot set
the time of a file's last change of status (ctime), so that changes are noticed even if
the time of modification was set back.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from qualms.caches import Cache
from qualms.regular import as_object, open_file
from qualms.runs import JudgedFile, judged_files

ABSENT = "absent"
"""Digest of a run without a folder."""
SETTLED = 2.0
"""Seconds since its last change after which equal times show that a file is the same:
file systems count time in steps, and one step may contain two changes."""
_CHUNK = 1 << 20
_NAME = "contents"


class RunContents:
    """Digests of the predictions of runs, including those of earlier processes."""

    def __init__(self, runs: Path, memory: Cache | None) -> None:
        """Read the digests of earlier processes.

        Args:
            runs: The folder that holds the folders of runs.
            memory: Where digests are stored; None to store none.
        """
        self._runs = runs
        self._memory = memory
        stored = None if memory is None else memory.get(_NAME, str(runs))
        self._known: dict[str, list[Any]] = as_object(json.loads(stored or "{}"))
        self._new: dict[str, list[Any]] = {}
        self._of: dict[str, str] = {}

    def of(self, run: str) -> str:
        """Return a digest of all files of a run that judging reads."""
        if run not in self._of:
            self._of[run] = self._made(run)
        return self._of[run]

    def look_again(self) -> None:
        """Check all files again in later calls: they may have changed."""
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
        """Write the digests for later processes, if their file can be written."""
        if self._memory is None or not self._new:
            return
        text = json.dumps({**self._known, **self._new})
        self._memory.put(_NAME, str(self._runs), text.encode())

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
    with open_file(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
