"""Writing files and folders so that they appear complete or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from uuid import uuid4

LEFTOVER = ".qualms-*.tmp"
"""Name pattern of temporary files and folders left by a killed process."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if all goes well."""
    temporary = temporary_path(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a new hidden path in the folder of `path`, which must exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder '{path.parent}' for '{path.name}'; create it first"
        )
    return path.parent / LEFTOVER.replace("*", uuid4().hex)


def replace_folder(temporary: Path, folder: Path) -> None:
    """Replace `folder` by `temporary`; if that fails, the old folder stays."""
    sync(temporary)
    old = temporary_path(folder)
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
    """Wait until a file, or the list of files in a folder, is safely on the disk."""
    # Some systems and network disks cannot sync folders. All of them can sync files.
    with suppress(OSError) if path.is_dir() else nullcontext():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
