"""Files and folders that appear whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; moved there at the end, removed on failure."""
    temporary = beside(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A fresh hidden name in the folder of `path`, which must exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder '{path.parent}' for '{path.name}'; create it first"
        )
    return path.parent / f".qualms-{uuid4().hex}.tmp"


def replace_folder(temporary: Path, folder: Path) -> None:
    """Move `temporary` to `folder`; what was there is kept until that is done."""
    sync(temporary)
    old = beside(folder)
    if folder.exists():
        folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync(path: Path) -> None:
    """Have the system put a file, or the names in a folder, on the disk itself."""
    # Some systems and network disks cannot open or sync a folder; files they can.
    with suppress(OSError) if path.is_dir() else _strict():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _strict() -> Iterator[None]:
    yield
