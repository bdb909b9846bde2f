"""Ctrl-C is for the process that was started, not for those it starts itself."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def withheld() -> Iterator[None]:
    """Start processes that never see Ctrl-C; here it arrives a moment later."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
