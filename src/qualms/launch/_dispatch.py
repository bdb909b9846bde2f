"""Handing out jobs to workers until none is left."""

import atexit
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from qualms.interrupts import withheld
from qualms.launch._crew import Worker, dismiss, hire, listen
from qualms.launch._events import Ended, Epoch, Event, Free, Job, Lost, Message
from qualms.launch._worker import Post
from qualms.spec import RunSpec

Told = tuple[RunSpec, Epoch | Message | Ended]


@dataclass(slots=True, eq=False)
class _Desk:
    """A place for one worker, and what it is at; the only state of a launcher."""

    post: Post
    worker: Worker | None = None
    ready: bool = False
    """Whether the worker has started."""
    job: Job | None = None
    left: dict[str, RunSpec] = field(default_factory=dict)
    """Runs of the job that have not ended, by hash."""
    begun: float = 0.0


def work_off(queue: deque[Job], posts: Sequence[Post]) -> Iterator[Told]:
    """All that is heard about the runs of `queue`, which is emptied.

    A job of several runs that fails is taken apart: its runs are tried alone, so that
    only the culprit fails. A run that starts from another of the queue waits for it.
    """
    desks = [_Desk(post) for post in posts]

    def stop() -> None:
        dismiss([desk.worker for desk in desks if desk.worker is not None])

    # A caller that drops the iterator must not leave the interpreter waiting.
    atexit.register(stop)
    try:
        while queue or any(desk.job for desk in desks):
            _staff(desks, queue)
            by_worker = {desk.worker: desk for desk in desks if desk.worker}
            for worker, event in listen(by_worker):
                yield from _heed(by_worker[worker], event, queue)
    finally:
        atexit.unregister(stop)
        stop()


def _staff(desks: Sequence[_Desk], queue: deque[Job]) -> None:
    """Give every free worker a job, and start as many more as there are jobs for."""
    able = _able(desks, queue)
    for desk in desks:
        if desk.ready and desk.job is None and able and _give(desk, able[0]):
            queue.remove(able.pop(0))
    starting = sum(desk.worker is not None and not desk.ready for desk in desks)
    for desk in desks:
        if desk.worker is None and starting < len(able):
            with withheld():
                desk.worker = hire(desk.post)
            starting += 1


def _able(desks: Sequence[_Desk], queue: deque[Job]) -> list[Job]:
    """The jobs that do not start from a run which is still to end, in order."""
    if not any(spec.start for job in queue for spec in job.specs):
        return list(queue)
    coming = {spec.hash for job in queue for spec in job.specs}
    coming |= {name for desk in desks if desk.job for name in desk.left}
    return [job for job in queue if coming.isdisjoint({s.start for s in job.specs})]


def _give(desk: _Desk, job: Job) -> bool:
    """Whether the worker at `desk` got `job`."""
    assert desk.worker is not None
    try:
        desk.worker.pipe.send(job)
    except BrokenPipeError:  # it died while it was free; that will be heard next
        return False
    desk.job = job
    desk.left = {spec.hash: spec for spec in desk.job.specs}
    desk.begun = time.monotonic()
    return True


def _heed(desk: _Desk, event: Event, queue: deque[Job]) -> Iterator[Told]:
    if isinstance(event, Free):
        desk.ready, desk.job = True, None
    elif isinstance(event, Lost):
        yield from _lose(desk, event, queue)
    elif isinstance(event, Ended):
        yield from _end(desk, event, queue)
    else:
        yield desk.left[event.hash], event


def _lose(desk: _Desk, lost: Lost, queue: deque[Job]) -> Iterator[Told]:
    desk.worker = None
    if not desk.ready:
        raise ChildProcessError(f"no worker could be started: {lost.error}")
    seconds = time.monotonic() - desk.begun
    for name in list(desk.left):
        yield from _end(desk, Ended(name, "failed", seconds, lost.error), queue)
    desk.ready, desk.job = False, None


def _end(desk: _Desk, ended: Ended, queue: deque[Job]) -> Iterator[Told]:
    assert desk.job is not None
    spec = desk.left.pop(ended.hash)
    if ended.status != "failed" or len(desk.job.specs) == 1:
        yield spec, ended
        return
    folder = desk.job.folders[desk.job.specs.index(spec)]
    queue.append(desk.job._replace(specs=(spec,), folders=(folder,)))
    yield spec, Message(spec.hash, f"{ended.error}; this run is tried alone")
