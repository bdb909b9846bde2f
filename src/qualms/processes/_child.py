"""The other side of a crew: what a process does before and around its work."""

import faulthandler
import io
import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from types import FrameType


def serve_parent(pipe: Connection, packed: bytes, group: bool) -> None:
    """Do the packed work until it ends or the parent does.

    A process that is told to stop raises KeyboardInterrupt, so that work can tidy up.
    """
    if group and sys.platform != "win32":
        os.setpgid(0, 0)  # so that processes started here can be ended with this one
    threading.Thread(target=_follow_parent, args=(group,), daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    faulthandler.enable()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        serve, given = pickle.loads(packed)
        serve(pipe, *given)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # unwinding is not interrupted
    raise KeyboardInterrupt


def _follow_parent(group: bool) -> None:
    """End this process, and all that it started, as soon as its parent has ended."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    if group and sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
