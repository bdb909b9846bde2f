"""Crews of processes: started, heard and ended together, leaving nothing behind.

`Crew` is the interface for callers. `LocalCrew` is a crew on this machine; processes on
other machines can implement the same few functions.

Why not `concurrent.futures`, as measured with Python 3.11: when one of four processes
of a `ProcessPoolExecutor` was killed, all tasks ended in `BrokenProcessPool`: three
runs would lose their epoch, and nothing says which one was at fault. A process that a
worker had started outlived the pool, and tasks have no way to report their epochs.
"""

import atexit
import copyreg
import faulthandler
import io
import mmap
import os
import pickle
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

_HINTS = {
    "SIGKILL": ", perhaps for lack of memory",
    "SIGILL": ", for an instruction that this processor lacks: numbers of 16 bits may"
    " need one, precision=float32 does not",
}
GRACE = 10.0
"""Seconds for processes to stop by themselves."""


class Channel(Protocol):
    """One end of the connection between a process and its parent."""

    def send(self, message: Any, /) -> None:
        """Send a message."""

    def recv(self) -> Any:
        """Wait for the next message and return it.

        Raises:
            EOFError: If the other end is gone.
        """

    def poll(self) -> bool:
        """Return whether `recv` would return, or raise, at once."""


Serve = Callable[..., None]
"""The work of a process: an importable function, which is called with its channel."""


class Lost(NamedTuple):
    """The unexpected end of a process."""

    how: str
    """End of the process in words: "was killed by SIGKILL"."""
    with_node: bool = False
    """True if the whole machine was lost, so that the process is not at fault."""


class Worker(Protocol):
    """One process of a crew, as its parent sees it."""

    def send(self, message: Any) -> bool:
        """Send a message; return whether the process could still receive it."""


class Crew(Protocol):
    """Processes that are started, heard and ended together."""

    def start(
        self, serve: Serve, *args: Any, environment: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a process that calls `serve` with its channel and `args`.

        The variables in `environment` are set before its first line runs.
        """

    def hear(self, timeout: float | None = None) -> Iterator[tuple[Worker, Any]]:
        """Wait for messages; yield the next one of each process that sent any.

        The last message of a process that ends unexpectedly is `Lost`.

        Args:
            timeout: seconds after which nothing is yielded if no message has come.
        """

    def end(self, *, at_once: bool = False) -> None:
        """End all processes, at once or with a little time to stop by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LocalWorker:
    process: SpawnProcess
    pipe: Connection

    def send(self, message: Any) -> bool:
        try:
            self.pipe.send(message)
        except OSError:  # the pipe is broken or closed
            return False
        return True


class LocalCrew:
    """A crew of processes on this machine.

    They inherit no threads, locks or GPU state, never see Ctrl-C, end together with the
    processes that they started, and do not outlive their parent.
    """

    def __init__(self, *, group: bool = True, script: bool = True) -> None:
        """Make a crew without processes.

        Args:
            group: whether each process leads a process group, so that the processes it
                starts end with it. Not needed in a process of another crew.
            script: whether processes import the main script, as they must for functions
                defined in it. A script without a main guard would run again.
        """
        self._group = group
        self._script = script
        self._workers: dict[_LocalWorker, None] = {}
        self._handles = _Handles()

    def start(
        self, serve: Serve, *args: Any, environment: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a process that calls `serve` with its channel and `args`."""
        spawn = get_context("spawn")
        our_end, their_end = spawn.Pipe()
        call = (their_end, packed((serve, args)), self._group)
        process = spawn.Process(target=_serve_parent, args=call)
        if not self._workers:  # the interpreter must not wait for a forgotten crew
            atexit.register(self.end)
        with without_interrupts(), _set(environment or {}), _main(named=self._script):
            process.start()
        their_end.close()  # so that the pipe ends when the process does
        worker = _LocalWorker(process=process, pipe=our_end)
        self._workers[worker] = None
        self._handles.add(worker)
        return worker

    def hear(self, timeout: float | None = None) -> Iterator[tuple[Worker, Any]]:
        """Wait for messages; yield the next one of each process that sent any."""
        for worker in self._handles.ready(timeout):
            yield worker, self._receive(worker)

    def end(self, *, at_once: bool = False) -> None:
        """End all processes; an interrupt while waiting for them kills them at once."""
        atexit.unregister(self.end)
        remaining = list(self._workers)
        try:
            if not at_once:
                for worker in remaining:
                    worker.process.terminate()
                _wait_for(remaining)
        finally:
            for worker in remaining:
                self._handles.remove(worker)
                _kill(worker)
            self._workers.clear()

    def _receive(self, worker: _LocalWorker) -> Any:
        try:
            # Messages that a process sent before it died are still in the pipe.
            if worker.pipe.poll():
                return worker.pipe.recv()
        except (EOFError, OSError):
            pass
        del self._workers[worker]
        self._handles.remove(worker)
        return Lost(_bury(worker))


class _Handles:
    """Pipes and ends of processes, to be waited for.

    They are registered with the system once, so that waiting for any of a thousand
    processes costs the same as waiting for one.
    """

    def __init__(self) -> None:
        self._by_handle: dict[Any, _LocalWorker] = {}
        # Windows cannot select pipes.
        windows = sys.platform == "win32"
        self._selector = None if windows else selectors.DefaultSelector()

    def add(self, worker: _LocalWorker) -> None:
        for handle in (worker.pipe, worker.process.sentinel):
            self._by_handle[handle] = worker
            if self._selector is not None:
                self._selector.register(handle, selectors.EVENT_READ)

    def remove(self, worker: _LocalWorker) -> None:
        """Forget a process; call it before its pipe is closed."""
        for handle in (worker.pipe, worker.process.sentinel):
            del self._by_handle[handle]
            if self._selector is not None:
                self._selector.unregister(handle)

    def ready(self, timeout: float | None) -> list[_LocalWorker]:
        """Return the processes that have sent a message or ended, each once."""
        if self._selector is None:
            handles: list[Any] = wait(list(self._by_handle), timeout)
        else:
            handles = [key.fileobj for key, _ in self._selector.select(timeout)]
        return list(dict.fromkeys(self._by_handle[handle] for handle in handles))


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that never see Ctrl-C; this process sees it afterwards."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """Set these variables of the environment for processes started in this context."""
    # Libraries read them on import, before any function of this package runs.
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _main(*, named: bool) -> Iterator[None]:
    """Let processes started in this context import the main script only if `named`."""
    if named:
        yield
        return
    with _STANDING_IN:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = cast(Any, _Nameless(script))
        try:
            yield
        finally:
            sys.modules["__main__"] = script


_STANDING_IN = threading.Lock()


class _Nameless:
    """The main script without the name of its file."""

    __spec__ = None

    def __init__(self, script: Any) -> None:
        self._script = script

    def __getattr__(self, name: str) -> Any:
        if name == "__file__":  # new processes would import the script by it
            raise AttributeError(name)
        return getattr(self._script, name)  # for other threads


def packed(work: Any) -> bytes:
    """Pickle `work`, memory-mapped arrays as the names of their files."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.memmap: _by_name}
    pickler.dump(work)
    return buffer.getvalue()


def unpacked(work: bytes) -> Any:
    """Return what this process, or its parent, packed."""
    return pickle.loads(work)


def is_portable(work: Any) -> bool:
    """Return whether another process can get `work`."""
    try:
        packed(work)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return True


def _by_name(array: np.memmap[Any, Any]) -> Any:
    base: Any = array.base
    if not isinstance(base, mmap.mmap):
        return np.asarray(array).__reduce__()  # a part of an array is sent by value
    order = "C" if array.flags.c_contiguous else "F"
    args = (str(array.filename), array.dtype, "r", array.offset, array.shape, order)
    return np.memmap, args


def _wait_for(workers: list[_LocalWorker]) -> None:
    deadline = time.monotonic() + GRACE
    for worker in workers:
        wait([worker.process.sentinel], timeout=max(0, deadline - time.monotonic()))


def _bury(worker: _LocalWorker) -> str:
    """End all processes that a lost process started; return how it ended, in words."""
    wait([worker.process.sentinel], timeout=GRACE)
    _kill(worker)
    code = worker.process.exitcode
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}{_HINTS.get(name, '')}"


def _kill(worker: _LocalWorker) -> None:
    """End the process and all processes that it started, and close its pipe."""
    pid = worker.process.pid
    if sys.platform != "win32" and pid is not None:
        # Before the process is joined: its number cannot be reused until then.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _serve_parent(pipe: Connection, packed: bytes, group: bool) -> None:
    """Do the packed work until the work or the parent process ends.

    A request to stop raises KeyboardInterrupt, so that the work can clean up.
    """
    if group and sys.platform != "win32":
        os.setpgid(0, 0)  # so that processes started here can end with this one
    threading.Thread(target=_follow_parent, args=(group,), daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    faulthandler.enable()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        serve, args = unpacked(packed)
        serve(pipe, *args)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # do not interrupt the clean-up
    raise KeyboardInterrupt


def _follow_parent(group: bool) -> None:
    """End this process and those that it started as soon as its parent has ended."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    if group and sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
