"""One function applied to many things by several processes, in order."""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from qualms.processes._crew import Channel, LocalCrew, Lost, Worker, packed

_T = TypeVar("_T")
_R = TypeVar("_R")
_AHEAD = 2
"""Shares that a process has at a time: the next is there when one is done."""
_MOST = 32
"""Most things in a share."""
_REACH = 16
"""Shares by process that may wait for the results of a slow one."""


class LostProcessError(OSError):
    """A process ended before its work was done; the message says how."""


def cores() -> int:
    """The number of cores this process may run on."""
    limited = sys.platform == "linux"
    return len(os.sched_getaffinity(0)) if limited else os.cpu_count() or 1


def each(
    function: Callable[[_T], _R],
    things: Sequence[_T],
    *,
    workers: int,
    environment: Mapping[str, str] | None = None,
) -> Generator[_R, None, None]:
    """`function` of each of `things`, in their order.

    Args:
        function: one that can be imported; what it raises is raised here.
        things: what it is called with.
        workers: processes; with one, all is done in this process.
        environment: variables of the environment of these processes.

    Raises:
        LostProcessError: If a process was killed.
    """
    with Workforce(workers, environment=environment) as workforce:
        yield from workforce.each(function, things)


class Workforce:
    """Processes that serve one `each` after the other, and end together.

    They are started when there is work for them, no more than it needs. Several threads
    may ask for work; all processes serve one of them at a time.
    """

    def __init__(
        self,
        workers: int,
        *,
        environment: Mapping[str, str] | None = None,
        script: bool = True,
        patience: int = 0,
    ) -> None:
        """Start nobody yet.

        Args:
            workers: processes at most; with one, all is done in this process.
            environment: variables of the environment of the processes.
            script: whether they import the script that runs here, see `LocalCrew`.
            patience: how much work is worth starting processes for, see `takes`.
        """
        self._most = workers
        self._patience = patience
        self._environment = environment
        self._crew = LocalCrew(script=script)
        self._workers: list[Worker] = []
        self._lock = Lock()
        self._over = ""
        """What became of a process, after which no more work is taken."""

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
        self, function: Callable[[_T], _R], things: Sequence[_T]
    ) -> Generator[_R, None, None]:
        """`function` of each of `things`, in their order; close it if you leave early.

        Args:
            function: one that can be imported. What it raises for the first of the
                things that it fails on is raised here, and more work is taken.
            things: what it is called with.

        Raises:
            LostProcessError: If a process was killed, or all were told to stop.
        """
        workers = min(self._most, len(things))
        if workers <= 1:
            yield from map(function, things)
            return
        size = max(1, min(_MOST, len(things) // (8 * workers)))
        shares = [things[i : i + size] for i in range(0, len(things), size)]
        with self._lock:
            self._refuse_if_over()
            self._start(workers)
            errand = _Errand(packed(function), shares, self._workers)
            try:
                yield from self._results(errand)
            finally:
                if errand.waiting:  # nobody will hear what is still under way
                    self.end()
        if errand.error is not None:
            raise errand.error

    def takes(self, work: int, *, workers: int) -> bool:
        """Whether so much work is for `workers` processes, which are then started.

        It is not before all work that was asked about exceeds the patience given: what
        was done without processes has then taken about as long as starting them. Nor is
        it where none can be started: in a daemon, in a process that still imports the
        script that started it, or on a machine that has no room for more.
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
        """Take no more work; a thread that waits for some gives up at the next share.

        For a thread that does not wait for results itself.
        """
        self._over = "was told to stop"

    def end(self) -> None:
        """End all processes: tell them and wait a little; an interrupt kills now."""
        self._workers.clear()
        self._crew.end()

    def _start(self, workers: int) -> None:
        while len(self._workers) < min(workers, self._most):
            self._workers.append(
                self._crew.start(_serve, environment=self._environment)
            )

    def _refuse_if_over(self) -> None:
        if self._over:
            raise LostProcessError(f"a process {self._over}")

    def _results(self, errand: "_Errand") -> Iterator[Any]:
        """Hand out shares, and give their results in order, up to the first error."""
        errand.hand_out()
        while errand.waiting:
            for worker, said in self._crew.hear():
                if isinstance(said, Lost):
                    self._over = said.how
                self._refuse_if_over()
                errand.take(worker, said)
            errand.hand_out()
            yield from errand.ready()
            errand.hand_out()


class _Done(NamedTuple):
    """What became of a share: the results up to an error, if there was one."""

    share: int
    results: list[Any]
    error: Exception | None = None


class _Errand:
    """One function and its shares: what is to do, under way, and done."""

    def __init__(
        self,
        function: bytes,
        shares: Sequence[Sequence[Any]],
        workers: Sequence[Worker],
    ) -> None:
        self._function = function
        self._shares = shares
        self._new = {id(worker) for worker in workers}
        """Workers that have not got the function yet."""
        self._free = deque([*workers] * _AHEAD)
        self._reach = _REACH * len(workers)
        self._next = 0
        self._coming = 0
        """The share whose results are given next."""
        self._found: dict[int, _Done] = {}
        self.waiting = 0
        """Shares under way."""
        self.error: Exception | None = None

    def hand_out(self) -> None:
        """Give shares to all who are free, not too far ahead of a slow one."""
        last = min(len(self._shares), self._coming + self._reach)
        while self._free and self._next < last:
            worker = self._free.popleft()
            function = self._function if id(worker) in self._new else None
            self._new.discard(id(worker))
            # Of a process that is gone we hear next.
            worker.send((function, self._next, self._shares[self._next]))
            self._next += 1
            self.waiting += 1

    def take(self, worker: Worker, done: _Done) -> None:
        """Keep what became of a share; after an error no more are handed out."""
        self.waiting -= 1
        self._found[done.share] = done
        self._free.append(worker)
        if done.error is not None:
            self._free = deque(maxlen=0)

    def ready(self) -> Iterator[Any]:
        """Results whose turn has come; after an error there are none."""
        while self.error is None and self._coming in self._found:
            done = self._found.pop(self._coming)
            self._coming += 1
            yield from done.results
            self.error = done.error


def _serve(channel: Channel) -> None:
    function: Callable[[Any], Any] | None = None
    while True:
        sent, share, things = channel.recv()
        results: list[Any] = []
        try:
            if sent is not None:
                function = pickle.loads(sent)
            assert function is not None
            for thing in things:
                results.append(function(thing))  # noqa: PERF401 - kept if one fails
        except Exception as error:
            channel.send(_Done(share, results, _portable(error)))
        else:
            channel.send(_Done(share, results))


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, or one that says the same."""
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")
