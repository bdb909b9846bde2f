"""The folder of a run: where it lies, whether it is done, and who writes to it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qualms.atomic import replacing
from qualms.predictions._stored import is_stored
from qualms.spec import RunSpec

SPARE = 8 * 2**20
"""Bytes that must fit into the output folder before anything starts."""


def folder_of(out: Path, spec: RunSpec) -> Path:
    """Where below `out` the run of `spec` belongs."""
    return out / spec.benchmark / spec.hash


def is_done(folder: Path, spec: RunSpec) -> bool:
    """Whether the run of `spec` was finished in `folder`, and all of it is there."""
    try:
        stated = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    finished = isinstance(stated, dict) and stated.get("hash") == spec.hash
    return finished and all(is_stored(folder, split) for split in spec.splits)


def check_writable(out: Path) -> None:
    """Raise in one sentence unless files of some size can be written below `out`."""
    probe = out / f".qualms-{os.getpid()}.probe"
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            with probe.open("wb") as file:
                file.write(bytes(SPARE))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"cannot write runs to {out}: {error.strerror or error}; free space there"
            " or choose another folder with --out"
        ) from error


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Whether this process got the run in `folder`, held until the end.

    The lock is the system's: it goes when the process does, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        if sys.platform == "win32":
            yield True
            return
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def describe(folder: Path, spec: RunSpec, environment: str) -> None:
    """Write what the run is and what it runs on, each file whole or not at all.

    Only for the holder of the lock: what a killed process left half written goes.
    """
    for stale in folder.rglob(".qualms-*.tmp"):
        stale.unlink()
    for name, text in (("spec", spec.to_json()), ("environment", environment)):
        with replacing(folder / f"{name}.json") as temporary:
            temporary.write_text(text, encoding="utf-8")
