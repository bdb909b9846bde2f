"""Gives jobs to workers until no job is left."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qualms.launch._worker import Ended, Free, Job, Post, serve_launcher
from qualms.processes import Crew, Event, LocalCrew, Lost, Message, Worker
from qualms.runs import sibling, was_finished
from qualms.spec import RunSpec

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables by which libraries know how many threads to use."""


@dataclass(slots=True, eq=False)
class _Desk:
    """A place for one worker, and the job that the worker has."""

    post: Post
    worker: Worker | None = None
    ready: bool = False
    """Whether the worker has started."""
    job: Job | None = None
    left: dict[str, RunSpec] = field(default_factory=dict)
    """Runs of the job that have not ended, by hash."""
    begun: float = 0.0


@dataclass(slots=True, eq=False)
class _WaitingJob:
    """A job whose runs need others that are still to end."""

    job: Job
    parents: set[str]


class _Agenda:
    """Jobs that are still to be done: those that can begin, and those that wait."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.ready: deque[Job] = deque()
        self._waiting: dict[str, list[_WaitingJob]] = {}
        """Jobs that wait for a run, by the run's hash."""
        self._orphans: list[tuple[_WaitingJob, str]] = []
        """Jobs that need a run which nobody makes, and a sentence on it."""
        jobs = list(jobs)
        coming = {spec.hash for job in jobs for spec in job.specs}
        for job in jobs:
            waiting = _WaitingJob(job, coming.intersection(job.specs[0].parents))
            for parent in waiting.parents:
                self._waiting.setdefault(parent, []).append(waiting)
            error = _orphaned(job, coming)
            if error:
                self._orphans.append((waiting, error))
            elif not waiting.parents:
                self.ready.append(job)

    def begin(self) -> Iterator[Ended]:
        """End the runs that need another run which nobody makes."""
        for waiting, error in self._orphans:
            yield from self._drop(waiting, error)

    def heed(self, ended: Ended) -> Iterator[Ended]:
        """Release the jobs that wait for this run, or end them if it is not done."""
        for waiting in self._waiting.pop(ended.spec.hash, ()):
            if ended.status in ("done", "skipped"):
                waiting.parents.remove(ended.spec.hash)
                if not waiting.parents:
                    self.ready.append(waiting.job)
                continue
            failed = ended.status == "failed"
            why = _needs(ended.spec.hash, f"which failed: {ended.error}")
            yield from self._drop(waiting, why if failed else "")

    def _drop(self, waiting: _WaitingJob, error: str) -> Iterator[Ended]:
        """End the runs of a job that cannot begin, and all runs that need them.

        There is no error if another process is busy with the run that they wait for.
        """
        for parent in waiting.parents:
            others = self._waiting.get(parent, [])
            self._waiting[parent] = [other for other in others if other is not waiting]
        for spec in waiting.job.specs:
            ended = Ended(spec, "failed" if error else "busy", 0.0, error)
            yield ended
            yield from self.heed(ended)


def _orphaned(job: Job, coming: Collection[str]) -> str:
    """Says which run a job needs that is neither done nor planned; '' for none."""
    for parent in job.specs[0].parents:
        folder = sibling(job.folders[0], parent)
        if parent not in coming and not was_finished(folder):
            return _needs(
                parent,
                f"which is not done in {folder.parent} and not among the runs to make;"
                " make it first",
            )
    return ""


def _needs(parent: str, which: str) -> str:
    return f"this run needs run {parent}, {which}"


def work_off(
    jobs: Iterable[Job],
    posts: Sequence[Post],
    *,
    make_crew: Callable[[], Crew] = LocalCrew,
) -> Iterator[Event | Ended]:
    """Events of the runs of `jobs`, until each run has ended.

    If a job of several runs fails, each of its runs is tried alone, so that only the
    one at fault fails. A run that needs others waits until they are done, and
    fails if one of them does.
    """
    agenda = _Agenda(jobs)
    yield from agenda.begin()
    desks = [_Desk(post) for post in posts]
    crew = make_crew()
    try:
        while agenda.ready or any(desk.job for desk in desks):
            _staff(desks, agenda.ready, crew)
            by_worker = {desk.worker: desk for desk in desks if desk.worker}
            for worker, said in crew.hear():
                yield from _heed(by_worker[worker], said, agenda)
    finally:
        crew.end()


def _staff(desks: Sequence[_Desk], ready: deque[Job], crew: Crew) -> None:
    """Give every free worker a job, and start more workers if jobs are left."""
    for desk in desks:
        if desk.ready and desk.job is None and ready and _give(desk, ready[0]):
            ready.popleft()
    starting = sum(desk.worker is not None and not desk.ready for desk in desks)
    for desk in desks:
        if desk.worker is None and starting < len(ready):
            threads = dict.fromkeys(THREADS, str(desk.post.threads))
            desk.worker = crew.start(serve_launcher, desk.post, environment=threads)
            starting += 1


def _give(desk: _Desk, job: Job) -> bool:
    """Whether the worker at `desk` got `job`; not if its process has ended."""
    assert desk.worker is not None
    if not desk.worker.send(job):
        return False
    desk.job = job
    desk.left = {spec.hash: spec for spec in job.specs}
    desk.begun = time.monotonic()
    return True


def _heed(
    desk: _Desk, said: Event | Ended | Free | Lost, agenda: _Agenda
) -> Iterator[Event | Ended]:
    if isinstance(said, Free):
        desk.ready, desk.job = True, None
    elif isinstance(said, Lost):
        yield from _lose(desk, said, agenda)
    elif isinstance(said, Ended):
        yield from _end(desk, said, agenda)
    else:
        yield said


def _lose(desk: _Desk, lost: Lost, agenda: _Agenda) -> Iterator[Event | Ended]:
    desk.worker = None
    if not desk.ready:
        raise ChildProcessError(f"no worker could be started: the process {lost.how}")
    seconds = time.monotonic() - desk.begun
    error = f"its process {lost.how}; run again to go on from the last checkpoint"
    for spec in list(desk.left.values()):
        yield from _end(desk, Ended(spec, "failed", seconds, error), agenda)
    desk.ready, desk.job = False, None


def _end(desk: _Desk, ended: Ended, agenda: _Agenda) -> Iterator[Event | Ended]:
    assert desk.job is not None
    spec = desk.left.pop(ended.spec.hash)
    if ended.status != "failed" or len(desk.job.specs) == 1:
        yield ended
        yield from agenda.heed(ended)
        return
    folder = desk.job.folders[desk.job.specs.index(spec)]
    agenda.ready.append(desk.job._replace(specs=(spec,), folders=(folder,)))
    yield Message(spec, f"{ended.error}; this run is tried alone")
