"""Give jobs to workers until no job is left."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qualms.launch._worker import Idle, Job, RunEnd, WorkerSetup, serve_launcher
from qualms.processes import Crew, Event, LocalCrew, Lost, Message, Worker
from qualms.runs import sibling, was_finished
from qualms.spec import RunSpec

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set the number of threads of libraries."""


@dataclass(slots=True, eq=False)
class _WorkerSlot:
    """A worker, and its job."""

    setup: WorkerSetup
    worker: Worker | None = None
    ready: bool = False
    """Whether the worker has started."""
    job: Job | None = None
    pending: dict[str, RunSpec] = field(default_factory=dict)
    """Runs of the job that have not ended, by hash."""
    started: float = 0.0


@dataclass(slots=True, eq=False)
class _WaitingJob:
    """A job whose runs need runs that have not ended."""

    job: Job
    parents: set[str]


class _JobQueue:
    """Jobs that have not begun: those that can begin, and those that wait."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.ready: deque[Job] = deque()
        self._waiting: dict[str, list[_WaitingJob]] = {}
        """Jobs that wait for a run, by the run's hash."""
        self._orphans: list[tuple[_WaitingJob, str]] = []
        """Jobs that need a run which is not planned, each with an error message."""
        jobs = list(jobs)
        planned = {spec.hash for job in jobs for spec in job.specs}
        for job in jobs:
            waiting = _WaitingJob(job, planned.intersection(job.specs[0].parents))
            for parent in waiting.parents:
                self._waiting.setdefault(parent, []).append(waiting)
            error = _orphan_error(job, planned)
            if error:
                self._orphans.append((waiting, error))
            elif not waiting.parents:
                self.ready.append(job)

    def end_orphans(self) -> Iterator[RunEnd]:
        """End the runs that need a run which is not planned."""
        for waiting, error in self._orphans:
            yield from self._drop(waiting, error)

    def release(self, end: RunEnd) -> Iterator[RunEnd]:
        """Release the jobs that wait for this run, or end them if it is not done."""
        for waiting in self._waiting.pop(end.spec.hash, ()):
            if end.status in ("done", "skipped"):
                waiting.parents.remove(end.spec.hash)
                if not waiting.parents:
                    self.ready.append(waiting.job)
                continue
            failed = end.status == "failed"
            why = _needs(end.spec.hash, f"which failed: {end.error}")
            yield from self._drop(waiting, why if failed else "")

    def _drop(self, waiting: _WaitingJob, error: str) -> Iterator[RunEnd]:
        """End the runs of a job that cannot begin, and all runs that need them.

        There is no error if another process is busy with the run that they wait for.
        """
        for parent in waiting.parents:
            others = self._waiting.get(parent, [])
            self._waiting[parent] = [other for other in others if other is not waiting]
        for spec in waiting.job.specs:
            end = RunEnd(spec, "failed" if error else "busy", 0.0, error)
            yield end
            yield from self.release(end)


def _orphan_error(job: Job, planned: Collection[str]) -> str:
    """Say which run a job needs that is neither done nor planned; '' for none."""
    for parent in job.specs[0].parents:
        folder = sibling(job.folders[0], parent)
        if parent not in planned and not was_finished(folder):
            return _needs(
                parent,
                f"which is not done in {folder.parent} and not among the runs to make;"
                " make it first",
            )
    return ""


def _needs(parent: str, clause: str) -> str:
    return f"this run needs run {parent}, {clause}"


def run_jobs(
    jobs: Iterable[Job],
    setups: Sequence[WorkerSetup],
    *,
    make_crew: Callable[[], Crew] = LocalCrew,
) -> Iterator[Event | RunEnd]:
    """Yield the events of the runs of `jobs`, until each run has ended.

    If a job of several runs fails, each of its runs is tried alone, so that only the
    one at fault fails. A run that needs others waits until they are done, and
    fails if one of them does.
    """
    queue = _JobQueue(jobs)
    yield from queue.end_orphans()
    slots = [_WorkerSlot(setup) for setup in setups]
    crew = make_crew()
    try:
        while queue.ready or any(slot.job for slot in slots):
            _assign(slots, queue.ready, crew)
            by_worker = {slot.worker: slot for slot in slots if slot.worker}
            for worker, message in crew.hear():
                yield from _handle(by_worker[worker], message, queue)
    finally:
        crew.end()


def _assign(slots: Sequence[_WorkerSlot], ready: deque[Job], crew: Crew) -> None:
    """Give every idle worker a job, and start more workers if jobs are left."""
    for slot in slots:
        if slot.ready and slot.job is None and ready and _send(slot, ready[0]):
            ready.popleft()
    starting = sum(slot.worker is not None and not slot.ready for slot in slots)
    for slot in slots:
        if slot.worker is None and starting < len(ready):
            threads = dict.fromkeys(THREADS, str(slot.setup.threads))
            slot.worker = crew.start(serve_launcher, slot.setup, environment=threads)
            starting += 1


def _send(slot: _WorkerSlot, job: Job) -> bool:
    """Send a job to the worker; return whether its process received it."""
    assert slot.worker is not None
    if not slot.worker.send(job):
        return False
    slot.job = job
    slot.pending = {spec.hash: spec for spec in job.specs}
    slot.started = time.monotonic()
    return True


def _handle(
    slot: _WorkerSlot, message: Event | RunEnd | Idle | Lost, queue: _JobQueue
) -> Iterator[Event | RunEnd]:
    if isinstance(message, Idle):
        slot.ready, slot.job = True, None
    elif isinstance(message, Lost):
        yield from _handle_lost(slot, message, queue)
    elif isinstance(message, RunEnd):
        yield from _handle_end(slot, message, queue)
    else:
        yield message


def _handle_lost(
    slot: _WorkerSlot, lost: Lost, queue: _JobQueue
) -> Iterator[Event | RunEnd]:
    slot.worker = None
    if not slot.ready:
        raise ChildProcessError(f"no worker could be started: the process {lost.how}")
    seconds = time.monotonic() - slot.started
    error = f"its process {lost.how}; run again to go on from the last checkpoint"
    for spec in list(slot.pending.values()):
        yield from _handle_end(slot, RunEnd(spec, "failed", seconds, error), queue)
    slot.ready, slot.job = False, None


def _handle_end(
    slot: _WorkerSlot, end: RunEnd, queue: _JobQueue
) -> Iterator[Event | RunEnd]:
    assert slot.job is not None
    spec = slot.pending.pop(end.spec.hash)
    if end.status != "failed" or len(slot.job.specs) == 1:
        yield end
        yield from queue.release(end)
        return
    folder = slot.job.folders[slot.job.specs.index(spec)]
    queue.ready.append(slot.job._replace(specs=(spec,), folders=(folder,)))
    yield Message(spec, f"{end.error}; this run is tried alone")
