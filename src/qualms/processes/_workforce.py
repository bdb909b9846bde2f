"""Processes that apply a function to many items, with results in order."""

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from qualms.processes._crew import (
    Channel,
    Crew,
    LocalCrew,
    Lost,
    Worker,
    packed,
    unpacked,
)

_T = TypeVar("_T")
_R = TypeVar("_R")
_AHEAD = 2
"""Shares that a process has at a time, so that it need not wait for the next."""
_MOST = 32
"""Most items in a share."""
_REACH = 16
"""Shares per process that may be done before the results of a slow one."""


class RemoteCrew(NamedTuple):
    """Processes on other machines."""

    workers: int
    make: Callable[[], Crew]


class LostProcessError(OSError):
    """The end of a process before its work was done; the message says how."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    on_linux = sys.platform == "linux"
    return len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1


def each(
    function: Callable[[_T], _R],
    items: Sequence[_T],
    *,
    workers: int,
    environment: Mapping[str, str] | None = None,
    script: bool = True,
) -> Generator[_R, None, None]:
    """Yield `function(item)` for each of `items`, in order.

    Args:
        function: an importable function; its exceptions are raised here.
        items: the arguments of the function.
        workers: number of processes; with one, this process does all the work.
        environment: environment variables of these processes.
        script: whether they import the main script, see `LocalCrew`.

    Raises:
        LostProcessError: If a process was killed.
    """
    with Workforce(workers, environment=environment, script=script) as workforce:
        yield from workforce.each(function, items)


class Workforce:
    """Processes that serve one call of `each` after the other, and end together.

    They are started on demand. Several threads may call `each`; all processes serve one
    call at a time.
    """

    def __init__(
        self,
        workers: int,
        *,
        environment: Mapping[str, str] | None = None,
        script: bool = True,
        patience: int = 0,
        make_crew: Callable[[], Crew] | None = None,
    ) -> None:
        """Make a workforce without processes.

        Args:
            workers: most processes; with one, this process does all the work.
            environment: environment variables of the processes.
            script: whether they import the main script, see `LocalCrew`.
            patience: work before which no processes are started, see `takes`.
            make_crew: makes the crew of these processes; a `LocalCrew` by default.
        """
        self._most = workers
        self._patience = patience
        self._environment = environment
        self._crew = LocalCrew(script=script) if make_crew is None else make_crew()
        self._workers: list[Worker] = []
        self._ready: list[Worker] = []
        """Workers that have started: on a cluster, others may wait for room."""
        self._lock = Lock()
        self._over = ""
        """Reason for taking no more work, such as the end of a process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def each(
        self, function: Callable[[_T], _R], items: Sequence[_T]
    ) -> Generator[_R, None, None]:
        """Yield `function(item)` for each of `items`, in order; close it if you break.

        Args:
            function: an importable function. Its exception for the first item that it
                fails on is raised here; the workforce can still be used.
            items: the arguments of the function.

        Raises:
            LostProcessError: If a process was killed, or `stop` was called.
        """
        workers = min(self._most, len(items))
        if workers <= 1:
            yield from map(function, items)
            return
        size = max(1, min(_MOST, len(items) // (8 * workers)))
        shares = [items[i : i + size] for i in range(0, len(items), size)]
        with self._lock:
            self._check_usable()
            self._start(workers)
            batch = _Shares(packed(function), shares, self._ready, most=workers)
            try:
                yield from self._results(batch)
            finally:
                if batch.waiting:  # nothing will receive the pending results
                    self.end()
        if batch.error is not None:
            raise batch.error

    def takes(self, work: int, *, workers: int) -> bool:
        """Return whether processes should do this work; start `workers` of them if so.

        True once the work of all calls so far exceeds `patience`: this process has then
        worked about as long as starting others takes. False where no process can be
        started: in a daemon, in a process that is still importing the main script, or
        on a machine without room for more.
        """
        with self._lock:
            self._patience -= work
            if self._patience > 0:
                return False
            try:
                self._start(workers)
            except (AssertionError, OSError, RuntimeError):
                self._most = len(self._workers)
            return self._most > 1

    def stop(self) -> None:
        """Take no more work; a thread in `each` raises at the next share.

        Call it from another thread.
        """
        self._over = "was told to stop"

    def end(self) -> None:
        """End all processes; an interrupt while waiting for them kills them at once."""
        self._workers.clear()
        self._ready.clear()
        self._crew.end()

    def _start(self, workers: int) -> None:
        while len(self._workers) < min(workers, self._most):
            self._workers.append(
                self._crew.start(_serve, environment=self._environment)
            )

    def _check_usable(self) -> None:
        if self._over:
            raise LostProcessError(f"a process {self._over}")

    def _results(self, batch: "_Shares") -> Iterator[Any]:
        """Send shares and yield their results in order, up to the first error."""
        batch.send()
        while not batch.is_over:
            for worker, message in self._crew.hear():
                if isinstance(message, Lost):
                    self._over = message.how
                self._check_usable()
                if isinstance(message, _Ready):
                    self._ready.append(worker)
                    batch.add(worker)
                else:
                    batch.receive(worker, message)
            batch.send()
            yield from batch.ready()
            batch.send()


class _Ready(NamedTuple):
    """Message of a process that has started."""


class _Done(NamedTuple):
    """The results of a share, up to an error if there was one."""

    share: int
    results: list[Any]
    error: Exception | None = None


class _Shares:
    """The shares of one function: to be sent, under way, and done."""

    def __init__(
        self,
        function: bytes,
        shares: Sequence[Sequence[Any]],
        workers: Sequence[Worker],
        *,
        most: int,
    ) -> None:
        self._function = function
        self._shares = shares
        self._new = {id(worker) for worker in workers}
        """Workers to which the function was not sent yet."""
        self._free = deque([*workers] * _AHEAD)
        self._reach = _REACH * most
        self._next = 0
        self._yielded = 0
        """Shares whose results were yielded."""
        self._done: dict[int, _Done] = {}
        self.waiting = 0
        """Shares under way."""
        self.error: Exception | None = None

    @property
    def is_over(self) -> bool:
        """True if no share is under way and none remains to be sent."""
        left = self._next < len(self._shares) and self.error is None
        return not self.waiting and not left

    def add(self, worker: Worker) -> None:
        """Use a worker that has started meanwhile."""
        self._new.add(id(worker))
        if self._free.maxlen is None:  # there was no error
            self._free.extend([worker] * _AHEAD)

    def send(self) -> None:
        """Send shares to all free workers, not too far ahead of a slow one."""
        last = min(len(self._shares), self._yielded + self._reach)
        while self._free and self._next < last:
            worker = self._free.popleft()
            function = self._function if id(worker) in self._new else None
            self._new.discard(id(worker))
            # The next message reports the process if it is lost.
            worker.send((function, self._next, self._shares[self._next]))
            self._next += 1
            self.waiting += 1

    def receive(self, worker: Worker, done: _Done) -> None:
        """Keep the results of a share; after an error no more shares are sent."""
        self.waiting -= 1
        self._done[done.share] = done
        self._free.append(worker)
        if done.error is not None:
            self._free = deque(maxlen=0)

    def ready(self) -> Iterator[Any]:
        """Yield the results that are next in order; none after an error."""
        while self.error is None and self._yielded in self._done:
            done = self._done.pop(self._yielded)
            self._yielded += 1
            yield from done.results
            self.error = done.error


def _serve(channel: Channel) -> None:
    function: Callable[[Any], Any] | None = None
    channel.send(_Ready())
    for new_function, share, items in _received(channel):
        results: list[Any] = []
        try:
            if new_function is not None:
                function = unpacked(new_function)
            assert function is not None
            for item in items:
                results.append(function(item))  # noqa: PERF401 - kept if one fails
        except Exception as error:
            channel.send(_Done(share, results, _portable(error)))
        else:
            channel.send(_Done(share, results))


def _received(channel: Channel) -> Iterator[Any]:
    """Yield messages, which a thread takes from the channel as soon as they come.

    Otherwise a large share would wait for this process, and this process with a large
    result for the sender of the share, forever.
    """
    messages: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def receive() -> None:
        while True:
            try:
                messages.put((channel.recv(), None))
            except BaseException as error:
                messages.put((None, error))
                return

    Thread(target=receive, daemon=True).start()
    while True:
        message, error = messages.get()
        if error is not None:
            raise error
        yield message


def _portable(error: Exception) -> Exception:
    """Return the error itself if it can be pickled, else one with its message."""
    with suppress(Exception):
        unpacked(packed(error))
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")
