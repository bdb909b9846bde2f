"""The processes of a launcher: started, listened to, and ended without remains."""

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from qualms.launch._events import Event, Lost
from qualms.launch._worker import Post, serve

GRACE = 10.0
"""Seconds that workers have to stop on their own."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worker:
    """A process and the pipe to it."""

    process: SpawnProcess
    pipe: Connection
    device: str


def hire(post: Post) -> Worker:
    """Start a worker; it says `Free` whenever it can take a job."""
    # A process started afresh inherits no threads, locks or GPU state.
    spawn = get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there, post))
    with _threads(post.threads):
        process.start()
    there.close()  # so that the pipe ends when the worker does
    return Worker(process=process, pipe=here, device=post.device)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Start processes whose libraries compute with so many threads each."""
    # Libraries read this when they are loaded, which is before a worker's first line.
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def listen(workers: Iterable[Worker]) -> Iterator[tuple[Worker, Event]]:
    """Wait until workers have something to say, and hear each of them once."""
    by_handle = {
        handle: worker
        for worker in workers
        for handle in (worker.pipe, worker.process.sentinel)
    }
    ready = {by_handle[handle]: None for handle in wait(list(by_handle))}  # type: ignore[index]
    for worker in ready:
        yield worker, _hear(worker)


def _hear(worker: Worker) -> Event:
    try:
        # What a process said before it died is still in the pipe.
        if worker.pipe.poll():
            event: Event = worker.pipe.recv()
            return event
    except (EOFError, OSError):
        pass
    return Lost(_bury(worker))


def _bury(worker: Worker) -> str:
    """End what a worker left behind, and say in words how it ended."""
    wait([worker.process.sentinel], timeout=GRACE)
    _kill(worker)
    code = worker.process.exitcode
    if code is None or code >= 0:
        return f"the worker process ended with exit code {code}"
    hint = ", perhaps for lack of memory" if -code == signal.SIGKILL else ""
    return (
        f"the worker process was killed by {signal.Signals(-code).name}{hint}; run"
        " again to go on from the last checkpoint"
    )


def dismiss(workers: Iterable[Worker]) -> None:
    """End all workers: tell them, wait a little, then kill; an interrupt kills now."""
    remaining = list(workers)
    try:
        for worker in remaining:
            worker.process.terminate()
        deadline = time.monotonic() + GRACE
        for worker in remaining:
            wait([worker.process.sentinel], timeout=max(0, deadline - time.monotonic()))
    finally:
        for worker in remaining:
            _kill(worker)


def _kill(worker: Worker) -> None:
    """End the process and everything it started, and free what it held here."""
    pid = worker.process.pid
    if sys.platform != "win32" and pid is not None:
        # Before the process is joined, while nobody else can get its number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
