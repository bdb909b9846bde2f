"""Files that can be deleted from folders of runs, and the space that this frees.

Never listed: predictions of finished runs, files that a process works on, and runs that
were stopped and go on from their checkpoint.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from qualms.atomic import LEFTOVER, is_lost, remove
from qualms.catalogue._index import run_folders
from qualms.processes import LockError, locked
from qualms.runs import (
    checkpoint_paths,
    judged_cells,
    lock_path,
    read_state,
    shared_features,
)

UNUSED = 7 * 86_400
"""Seconds without use after which a judged cell is listed."""
KINDS = {
    "checkpoints": "weights of finished runs: damaged predictions are made again from"
    " them, and other runs may start from them",
    "failed": "runs that failed, with their logs; the next launch starts them anew",
    "leftovers": "temporary files of processes that were killed",
    "features": "features of frozen networks, while no run uses them",
    "cells": f"judged results that were not used for {UNUSED // 86_400} days",
}
"""Description of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A file or folder that can be deleted."""

    kind: str
    path: Path
    bytes: int
    locks: tuple[Path, ...]
    """Locks of the runs that use it: all of them must be free."""


class Removed(NamedTuple):
    """Result of a deletion."""

    bytes: int
    paths: int
    spared: tuple[str, ...]
    """A sentence for each path that was not deleted."""


def find_removable(folder: Path, kinds: Sequence[str] = ()) -> list[Removable]:
    """Return the files that can be deleted below a folder of runs; change nothing.

    Args:
        folder: Where runs are.
        kinds: Names of `KINDS`; () for all.
    """
    runs = [Path(entry.path) for _, entry in run_folders(folder)]
    candidates = [removable for run in runs for removable in _of_run(run)]
    for benchmark in dict.fromkeys(run.parent for run in runs):
        candidates += _of_benchmark(benchmark, runs)
    chosen = [c for c in candidates if c.kind in (kinds or KINDS)]
    return [c for c in chosen if all(map(_is_free, c.locks))]


def remove_all(removables: Sequence[Removable]) -> Removed:
    """Delete files and folders, except those that a process has begun to use."""
    count = size = 0
    spared = []
    for each in removables:
        try:
            with ExitStack() as stack:
                locks = [lock for lock in each.locks if lock.exists()]
                free = [stack.enter_context(locked(lock)) for lock in locks]
                if not all(free):
                    spared.append(f"{each.path} was kept: a run that uses it began")
                    continue
                remove(each.path)
        except OSError as error:
            spared.append(
                f"{each.path} was kept: it cannot be deleted"
                f" ({error.strerror or error})"
            )
        else:
            count, size = count + 1, size + each.bytes
    return Removed(size, count, tuple(spared))


def _of_run(run: Path) -> Iterator[Removable]:
    """Yield the files of one run that can be deleted."""
    state = None if run.is_symlink() else read_state(run)
    if state is None:
        return
    locks = (lock_path(run),)
    if not state.done and state.error:
        yield _removable("failed", run, locks)
        return
    for path in checkpoint_paths(run) if state.done else ():
        if path.is_file():
            yield _removable("checkpoints", path, locks)
    for path in filter(is_lost, run.rglob(LEFTOVER)):
        yield _removable("leftovers", path, locks)


def _of_benchmark(benchmark: Path, runs: Sequence[Path]) -> Iterator[Removable]:
    """Yield the files beside the runs of a benchmark that can be deleted."""
    features, cells = shared_features(benchmark), judged_cells(benchmark)
    locks = tuple(lock_path(run) for run in runs if run.parent == benchmark)
    if features.is_dir() and not features.is_symlink():
        yield _removable("features", features, locks)
    for path in sorted(cells.glob("*.cell")):
        if time.time() - path.lstat().st_mtime > UNUSED:
            yield _removable("cells", path, ())
    for path in (*benchmark.glob(LEFTOVER), *cells.glob(LEFTOVER)):
        if is_lost(path):
            yield _removable("leftovers", path, ())


def _removable(kind: str, path: Path, locks: tuple[Path, ...]) -> Removable:
    return Removable(kind=kind, path=path, bytes=_size(path), locks=locks)


def _size(path: Path) -> int:
    """Return the bytes of a file or a folder; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    with suppress(OSError), os.scandir(path) as entries:
        return sum(_size(Path(entry.path)) for entry in entries)
    return 0


def _is_free(lock: Path) -> bool:
    """Return whether no process works on a run; a run without a lock file is free."""
    if not lock.exists():
        return True
    try:
        with locked(lock) as is_free:
            return is_free
    except (LockError, OSError):
        return False
