"""One function applied to many things by several processes, in order."""

import pickle
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from qualms.processes._crew import Channel, Crew, LocalCrew, Lost, Worker

_T = TypeVar("_T")
_R = TypeVar("_R")
_AHEAD = 2
"""Shares that a process has at a time: the next is there when one is done."""
_MOST = 32
"""Most things in a share."""


class LostProcessError(RuntimeError):
    """A process ended before its work was done; the message says how."""


class _Done(NamedTuple):
    share: int
    results: list[Any]


class _Failed(NamedTuple):
    error: Exception


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
    workers = min(workers, len(things))
    if workers <= 1:
        yield from map(function, things)
        return
    size = max(1, min(_MOST, len(things) // (8 * workers)))
    shares = [things[i : i + size] for i in range(0, len(things), size)]
    crew = LocalCrew()
    try:
        started = [
            crew.start(_serve, function, environment=environment)
            for _ in range(workers)
        ]
        yield from _in_order(crew, started, shares)
    finally:
        crew.end()


def _in_order(
    crew: Crew, workers: Sequence[Worker], shares: Sequence[Sequence[Any]]
) -> Iterator[Any]:
    """Hand out shares, and give their results in order."""
    left = iter(enumerate(shares))
    for _ in range(_AHEAD):
        for worker in workers:
            _hand_out(worker, left)
    found: dict[int, list[Any]] = {}
    coming = 0
    while coming < len(shares):
        for worker, said in crew.hear():
            if isinstance(said, Lost):
                raise LostProcessError(f"a process {said.how}")
            if isinstance(said, _Failed):
                raise said.error
            found[said.share] = said.results
            _hand_out(worker, left)
        while coming in found:
            yield from found.pop(coming)
            coming += 1


def _hand_out(worker: Worker, left: Iterator[tuple[int, Sequence[Any]]]) -> None:
    share = next(left, None)
    if share is not None:
        worker.send(share)  # of a process that is gone we hear next


def _serve(channel: Channel, function: Callable[[Any], Any]) -> None:
    while True:
        number, things = channel.recv()
        try:
            done = _Done(number, [function(thing) for thing in things])
        except Exception as error:
            channel.send(_Failed(_portable(error)))
            return
        channel.send(done)


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, or one that says the same."""
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")
