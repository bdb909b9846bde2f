"""Writing files and folders so that they appear complete or not at all."""

import ctypes
import errno
import hashlib
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

LEFTOVER = ".qualms-*.tmp"
"""Name pattern of temporary files and folders left by a killed process."""
_WRITER = re.compile(r"\.qualms-(.+)-(\d+)-[0-9a-f]{32}\.tmp")
"""Name of a temporary file: the machine and the number of its process."""
_Swap = Callable[[bytes, bytes], int]
_FORGOTTEN = 3600
"""Seconds without a change after which a temporary file is removed that a lost process
wrote before the machine started anew. Two machines that share a disk may have one name.
"""
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Errors of writing that the system raises without the name of the file."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if all goes well."""
    temporary = temporary_path(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        if error.errno in _DISK and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a new hidden path in the folder of `path`, which must exist.

    Files that killed processes left in that folder are removed.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder '{path.parent}' for '{path.name}'; create it first"
        )
    _remove_leftovers(path.parent.absolute())
    unique = f"{_machine()}-{os.getpid()}-{uuid4().hex}"
    return path.parent / LEFTOVER.replace("*", unique)


def replace_folder(temporary: Path, folder: Path) -> None:
    """Replace `folder` by `temporary`; if that fails, the old folder stays.

    Linux and macOS exchange two folders on a local disk in one step, so that one of
    them exists at any time.
    """
    sync(temporary)
    if not folder.exists():
        temporary.rename(folder)
        sync(folder.parent)
        return
    old = temporary
    if not _exchange(temporary, folder):
        old = temporary_path(folder)
        folder.rename(old)
        try:
            temporary.rename(folder)
        except OSError:
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


# Once for each folder: a process may write thousands of files to one.
@cache
def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files of processes that are gone, as far as that is allowed."""
    for path in folder.glob(LEFTOVER):
        with suppress(OSError):
            if is_lost(path):
                remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_lost(path: Path) -> bool:
    """Return whether the process that wrote a temporary file is gone."""
    writer = _WRITER.fullmatch(path.name)
    if writer is None or _is_alive(int(writer[2])):
        return False
    host, _, start = _machine().rpartition(".")
    if start and writer[1] == f"{host}.{start}":
        return True  # its number was one of the processes that run here
    same_host = writer[1].rpartition(".")[0] == host
    return same_host and time.time() - path.lstat().st_mtime > _FORGOTTEN


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # on Windows, os.kill would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@cache
def _machine() -> str:
    """Return the name of this machine, and of its start, as part of a file name.

    A start is "" where the system does not name it. A container has one of its own.
    """
    host = re.sub(r"[^\w.]+", "_", socket.gethostname(), flags=re.ASCII)[:40] or "here"
    start = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8")
        numbers = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
        start = hashlib.sha256(f"{boot} {numbers}".encode()).hexdigest()[:8]
    return f"{host}.{start}"


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two paths in one step; return False where the system cannot."""
    swap = _swap()
    if swap is None:
        return False
    if swap(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV):
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _swap() -> _Swap | None:
    """Return the function of the system that exchanges two paths, if it has one."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            rename = library.renamex_np
            return lambda first, second: rename(first, second, 2)
        rename = library.renameat2
    except (OSError, TypeError, AttributeError):
        return None
    working_directory = -100  # paths start from the working directory
    return lambda first, second: rename(
        working_directory, first, working_directory, second, 2
    )
