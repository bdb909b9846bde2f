"""Give jobs to workers until no job is left.

No step looks at all workers or at all jobs, so that a launcher may have thousands of
workers.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from qualms.launch._job_queue import JobQueue, NextJob, folder_in, only
from qualms.launch._worker import Idle, Job, RunEnd, WorkerSetup, serve_launcher
from qualms.processes import Crew, Event, LocalCrew, Lost, Message, Worker, locked
from qualms.runs import RunLosses, count_loss, lock_path, mark_failed, read_losses
from qualms.spec import RunSpec

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set the number of threads of libraries."""
RETRIES = 3
"""Default number of times that a run is tried again after its process was lost."""
KILLS = 2
"""Lost processes after which a run is tried when nothing else is under way."""
STARTS = 3
"""Attempts to start a worker, once another one has started."""


@dataclass(slots=True, eq=False)
class _WorkerSlot:
    """A place for a worker, with the worker and its job."""

    setup: WorkerSetup
    ready: bool = False
    """True once the worker has started."""
    starts: int = 0
    """Number of failed attempts to start a worker."""
    job: Job | None = None
    alone: bool = False
    """True if nothing else may be under way beside the job."""
    pending: dict[str, RunSpec] = field(default_factory=dict)
    """Runs of the job that have not ended, by hash."""
    began: float = 0.0


def run_jobs(
    jobs: Iterable[Job],
    setups: Sequence[WorkerSetup],
    *,
    make_crew: Callable[[], Crew] = LocalCrew,
    retries: int = RETRIES,
) -> Generator[Event | RunEnd]:
    """Yield the events of the runs of `jobs`, until each run has ended.

    If a job of several runs fails, each of its runs is tried by itself, so that only
    the one at fault fails. A run that needs others waits until they are done, and
    fails if one of them does.

    If a process or its machine is lost, its runs are the next to be tried again, up to
    `retries` times. A run that has lost two processes is tried when nothing else is
    under way, and fails if it loses a third one.
    """
    if retries < 0:
        raise ValueError(f"retries must be at least 0, got {retries}")
    queue = JobQueue(jobs)
    yield from queue.end_orphans()
    crew = make_crew()
    try:
        yield from _Dispatcher(queue, setups, crew, retries).events()
    finally:
        crew.end()


class _Dispatcher:
    """Workers, by what they are doing."""

    def __init__(
        self, queue: JobQueue, setups: Sequence[WorkerSetup], crew: Crew, retries: int
    ) -> None:
        self._queue = queue
        self._crew = crew
        self._losses = _LossCounter(retries)
        self._vacant = deque(map(_WorkerSlot, setups))
        self._slots: dict[Worker, _WorkerSlot] = {}
        """All workers."""
        self._idle: dict[Worker, None] = {}
        self._starting = 0
        self._busy = 0
        """Workers that have a job."""
        self._alone = False
        """True while a job is under way beside which nothing else may be."""
        self._has_started = False
        """True once any worker has started."""
        self._not_started: dict[str, None] = {}
        """Sentences about workers that could not start, each once."""

    def events(self) -> Iterator[Event | RunEnd]:
        """Yield the events of all runs until each has ended."""
        while self._busy or not self._queue.is_empty:
            yield from self._assign()
            if not self._busy and self._queue.is_empty:
                return  # what was left had been given up
            for worker, message in self._crew.hear():
                yield from self._handle(worker, message)

    @property
    def _possible(self) -> int:
        """Number of jobs that may begin now."""
        return 0 if self._alone else self._queue.count(idle=not self._busy)

    def _assign(self) -> Iterator[Event | RunEnd]:
        """Give every idle worker a job, and start more workers if jobs are left."""
        while self._idle and self._possible:
            entry = self._queue.pop()
            job, ends = self._losses.screen(entry, self._queue)
            for end in ends:
                yield from self._release(end)
            if job is not None:
                self._send(entry._replace(job=job))
        while self._vacant and self._starting < self._possible:
            self._start(self._vacant.popleft())

    def _start(self, slot: _WorkerSlot) -> None:
        threads = dict.fromkeys(THREADS, str(slot.setup.threads))
        worker = self._crew.start(serve_launcher, slot.setup, environment=threads)
        self._slots[worker] = slot
        self._starting += 1

    def _send(self, entry: NextJob) -> None:
        """Send a job to a worker that is idle, or put it back if none is any more."""
        worker = next(iter(self._idle))
        del self._idle[worker]
        if not worker.send(entry.job):  # the next message says that it is lost
            self._queue.put_back(entry)
            return
        slot = self._slots[worker]
        slot.job, slot.alone = entry
        slot.pending = {spec.hash: spec for spec in entry.job.specs}
        slot.began = time.monotonic()
        self._busy += 1
        self._alone = entry.alone

    def _handle(
        self, worker: Worker, message: Event | RunEnd | Idle | Lost
    ) -> Iterator[Event | RunEnd]:
        slot = self._slots[worker]
        if isinstance(message, Idle):
            self._clear(slot)
            self._idle[worker] = None
        elif isinstance(message, Lost):
            del self._slots[worker]
            self._idle.pop(worker, None)
            yield from self._lose(slot, message)
        elif isinstance(message, RunEnd):
            yield from self._end(slot, message)
        else:
            yield message

    def _clear(self, slot: _WorkerSlot) -> Job | None:
        """Return the job that a worker had; it has started, and has none any more."""
        job = slot.job
        if job is not None:
            self._busy -= 1
            self._alone = False
        elif not slot.ready:
            self._starting -= 1
            self._has_started = True
        slot.ready, slot.job = True, None
        return job

    def _lose(self, slot: _WorkerSlot, lost: Lost) -> Iterator[Event | RunEnd]:
        if not slot.ready:
            self._starting -= 1
            self._lose_start(slot, lost)
            return
        job, alone = self._clear(slot), slot.alone
        slot.ready = False
        self._vacant.append(slot)
        if job is None:
            return
        seconds = time.monotonic() - slot.began
        again = list[RunSpec]()
        for spec in slot.pending.values():
            folder = folder_in(job, spec)
            losses = self._losses.count(spec, folder, lost, alone=alone)
            if losses.error:
                yield from self._release(RunEnd(spec, "failed", seconds, losses.error))
            else:
                again.append(spec)
                yield Message(spec, _retry_text(lost, losses))
        if again:
            self._queue.put_back(NextJob(only(job, again), alone))

    def _lose_start(self, slot: _WorkerSlot, lost: Lost) -> None:
        """Try a slot again whose worker could not start, or give it up."""
        slot.starts += not lost.with_node
        self._not_started[lost.how] = None
        if slot.starts < STARTS and (self._has_started or lost.with_node):
            self._vacant.append(slot)
        elif not self._slots and not self._vacant:
            how = "; another one ".join(self._not_started)
            raise ChildProcessError(f"no worker could be started: the process {how}")

    def _end(self, slot: _WorkerSlot, end: RunEnd) -> Iterator[Event | RunEnd]:
        assert slot.job is not None
        spec = slot.pending.pop(end.spec.hash)
        if end.status != "failed" or len(slot.job.specs) == 1:
            yield from self._release(end)
            return
        self._queue.split(slot.job, spec)
        yield Message(spec, f"{end.error}; this run is tried by itself")

    def _release(self, end: RunEnd) -> Iterator[RunEnd]:
        """Yield the end of a run, and of all runs that cannot begin without it."""
        yield end
        yield from self._queue.release(end)


class _LossCounter:
    """Counter of the lost processes of runs.

    The folders of runs state the number for other launchers. Runs whose folders cannot
    be written to must not be tried for ever, so this launcher counts as well.
    """

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._since = time.time()
        self._own: dict[str, RunLosses] = {}
        """Losses of runs that lost a process of this launcher, by hash."""

    def count(
        self, spec: RunSpec, folder: Path, lost: Lost, *, alone: bool
    ) -> RunLosses:
        """Count a loss; an error says that the run is not to be tried again."""
        before = self._of(spec, folder)
        losses = RunLosses(before.lost + 1, before.killed + (not lost.with_node))
        if losses.lost > self._retries or (alone and not lost.with_node):
            losses = losses._replace(error=_last_text(lost, losses, alone=alone))
        self._own[spec.hash] = losses
        with suppress(OSError):  # a full disk must not stop the other runs
            count_loss(folder, losses)
        if losses.error:
            _mark_failed(folder, spec, losses.error)
        return losses

    def screen(
        self, entry: NextJob, queue: JobQueue
    ) -> tuple[Job | None, list[RunEnd]]:
        """Leave out runs of a job that must wait, and end those that were given up."""
        job, ends, specs = entry.job, list[RunEnd](), list[RunSpec]()
        for spec, folder in zip(job.specs, job.folders, strict=True):
            losses = self._of(spec, folder)
            if losses.error:
                ends.append(RunEnd(spec, "failed", 0.0, losses.error))
            elif losses.killed >= KILLS and not entry.alone:
                queue.set_aside(job, spec)
            else:
                specs.append(spec)
        return only(job, specs) if specs else None, ends

    def _of(self, spec: RunSpec, folder: Path) -> RunLosses:
        stored = read_losses(folder, since=self._since)
        own = self._own.get(spec.hash, RunLosses())
        return own if own.lost >= stored.lost else stored


def _mark_failed(folder: Path, spec: RunSpec, error: str) -> None:
    """Record that a run failed, unless another launcher works on it by now."""
    with suppress(OSError), locked(lock_path(folder)) as is_locked:
        if is_locked:
            mark_failed(folder, spec, error)


def _retry_text(lost: Lost, losses: RunLosses) -> str:
    when = " when nothing else is under way" if losses.killed >= KILLS else ""
    return f"its process {lost.how}; it is tried again{when}"


def _last_text(lost: Lost, losses: RunLosses, *, alone: bool) -> str:
    if alone and not lost.with_node:
        return (
            f"its process {lost.how}, as {losses.lost - 1} before it were lost, now"
            " with nothing else under way; its log says what it did last"
        )
    before = losses.lost - 1
    others = f", and {before} before it {'was' if before == 1 else 'were'} lost"
    return (
        f"its process {lost.how}{others if before else ''}; run again to go on from the"
        " last checkpoint"
    )
