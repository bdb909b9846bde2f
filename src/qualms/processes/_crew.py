"""Crews of processes: started, heard and ended, with nothing left behind.

`Crew` is what callers rely on. `LocalCrew` is a crew on this machine; processes of
other machines can stand behind the same few functions.
"""

import atexit
import copyreg
import faulthandler
import io
import mmap
import os
import pickle
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
"""Seconds that processes have to stop on their own."""


class Channel(Protocol):
    """One end of the connection between a process and whoever started it."""

    def send(self, message: Any, /) -> None:
        """Hand over a message."""

    def recv(self) -> Any:
        """The next message; waits for it.

        Raises:
            EOFError: If the other end is gone.
        """


Serve = Callable[..., None]
"""What a process does: a function that can be imported, called with its channel."""


class Lost(NamedTuple):
    """A process has ended without being told to."""

    how: str
    """For a sentence about it: "ended with exit code 3", "was killed by SIGKILL"."""


class Worker(Protocol):
    """One process of a crew, seen by whoever started it."""

    def send(self, message: Any) -> bool:
        """Whether a message could be handed over; not to a process that is gone."""


class Crew(Protocol):
    """Processes that are started, heard and ended together."""

    def start(
        self, serve: Serve, *given: Any, environment: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a process that calls `serve` with its channel and what is `given`.

        The variables in `environment` are set before its first line.
        """

    def hear(self) -> Iterator[tuple[Worker, Any]]:
        """Wait for messages; the next one of each process that has any.

        The last message of a process that was not told to end is `Lost`.
        """

    def end(self, *, at_once: bool = False) -> None:
        """End all processes: tell them and wait a little, or at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LocalWorker:
    process: SpawnProcess
    pipe: Connection

    def send(self, message: Any) -> bool:
        try:
            self.pipe.send(message)
        except OSError:  # the pipe is broken, or closed already
            return False
        return True


class LocalCrew:
    """A crew of processes on this machine.

    They inherit no threads, locks or GPU state, see no Ctrl-C, are ended with all that
    they have started, and do not outlive the process that started them.
    """

    def __init__(self, *, group: bool = True, script: bool = True) -> None:
        """Hire nobody yet.

        Args:
            group: whether each process leads a group of its own, so that it is ended
                with all that it started; not needed within a process of such a crew.
            script: whether processes import the script that runs here, which work that
                it defines needs. A script that is not written for that would run again.
        """
        self._group = group
        self._script = script
        self._workers: dict[_LocalWorker, None] = {}

    def start(
        self, serve: Serve, *given: Any, environment: Mapping[str, str] | None = None
    ) -> Worker:
        """Start a process that calls `serve` with its channel and what is `given`."""
        spawn = get_context("spawn")
        here, there = spawn.Pipe()
        told = (there, packed((serve, given)), self._group)
        process = spawn.Process(target=_serve_parent, args=told)
        # A caller that forgets to end it must not leave the interpreter waiting.
        atexit.register(self.end)
        with without_interrupts(), _set(environment or {}), _main(named=self._script):
            process.start()
        there.close()  # so that the pipe ends when the process does
        worker = _LocalWorker(process=process, pipe=here)
        self._workers[worker] = None
        return worker

    def hear(self) -> Iterator[tuple[Worker, Any]]:
        """Wait for messages; the next one of each process that has any."""
        by_handle = {
            handle: worker
            for worker in self._workers
            for handle in (worker.pipe, worker.process.sentinel)
        }
        ready = {by_handle[handle]: None for handle in wait(list(by_handle))}  # type: ignore[index]
        for worker in ready:
            yield worker, self._heard(worker)

    def end(self, *, at_once: bool = False) -> None:
        """End all processes: tell them and wait a little; an interrupt kills now."""
        atexit.unregister(self.end)
        remaining = list(self._workers)
        try:
            if not at_once:
                for worker in remaining:
                    worker.process.terminate()
                _wait_for(remaining)
        finally:
            for worker in remaining:
                _kill(worker)
            self._workers.clear()

    def _heard(self, worker: _LocalWorker) -> Any:
        try:
            # What a process said before it died is still in the pipe.
            if worker.pipe.poll():
                return worker.pipe.recv()
        except (EOFError, OSError):
            pass
        del self._workers[worker]
        return Lost(_bury(worker))


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
    """Start processes with these variables of the environment."""
    # Libraries read them when they are loaded, before the first line of ours.
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
    """Start processes that import the script of this one only if it is `named`."""
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
    """The script of this process as it is, but for the file that it came from."""

    __spec__ = None

    def __init__(self, script: Any) -> None:
        self._script = script

    def __getattr__(self, name: str) -> Any:
        if name == "__file__":  # by which new processes would import it
            raise AttributeError(name)
        return getattr(self._script, name)  # for threads that look something up


def packed(work: Any) -> bytes:
    """`work` as bytes; memory-mapped arrays by the name of their file."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.memmap: _by_name}
    pickler.dump(work)
    return buffer.getvalue()


def _by_name(array: np.memmap[Any, Any]) -> Any:
    whole: Any = array.base
    if not isinstance(whole, mmap.mmap):
        return np.asarray(array).__reduce__()  # a part of a file travels by value
    order = "C" if array.flags.c_contiguous else "F"
    place = (str(array.filename), array.dtype, "r", array.offset, array.shape, order)
    return np.memmap, place


def _wait_for(workers: list[_LocalWorker]) -> None:
    deadline = time.monotonic() + GRACE
    for worker in workers:
        wait([worker.process.sentinel], timeout=max(0, deadline - time.monotonic()))


def _bury(worker: _LocalWorker) -> str:
    """End what a process left behind, and say in words how it ended."""
    wait([worker.process.sentinel], timeout=GRACE)
    _kill(worker)
    code = worker.process.exitcode
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}{_HINTS.get(name, '')}"


def _kill(worker: _LocalWorker) -> None:
    """End the process and everything it started, and free what it held here."""
    pid = worker.process.pid
    if sys.platform != "win32" and pid is not None:
        # Before the process is joined, while nobody else can get its number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _serve_parent(pipe: Connection, packed: bytes, group: bool) -> None:
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
