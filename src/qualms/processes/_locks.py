"""Locks on files: held by one process, and released when it ends in any way."""

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class LockError(OSError):
    """A folder whose files cannot be locked; the message says what to do."""


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock the file `path` for the context; yield whether this process got the lock.

    Args:
        path: the lock file, which is made if needed and never removed.
        wait: whether to wait for the lock while another process holds it.

    Raises:
        LockError: If the file system has no locks, or has locks without effect.
    """
    from filelock import Timeout

    with ExitStack() as stack:
        try:
            stack.enter_context(_acquired(path, wait=wait))
        except Timeout:
            yield False
            return
        _check_excludes(path)
        yield True


@contextmanager
def _acquired(path: Path, *, wait: bool) -> Iterator["BaseFileLock"]:
    from filelock import FileLock

    # A lock that is only a file would outlive a killed process.
    lock = FileLock(path, fallback_to_soft=False)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        raise LockError(_advice(path, "cannot be locked")) from error
    try:
        yield lock
    finally:
        lock.release()


def _check_excludes(path: Path) -> None:
    """Raise if the lock of this process can be acquired a second time."""
    from filelock import Timeout

    try:
        with _acquired(path, wait=False):
            pass
    except Timeout:
        return
    raise LockError(_advice(path, "can be locked by two processes at once"))


def _advice(path: Path, what: str) -> str:
    return (
        f"files in {path.parent} {what}, so that two processes could write to the same"
        " files; choose a folder on another disk, or mount this one with locks"
    )
