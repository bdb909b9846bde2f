"""Ctrl-C is for the process that a user started, not for those that it starts."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def withheld() -> Iterator[None]:
    """Processes started in this context never see Ctrl-C; this one does, later."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
