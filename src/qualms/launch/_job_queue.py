"""Jobs that have not begun, in the order in which they are to begin."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from qualms.launch._worker import Job, RunEnd
from qualms.runs import sibling, was_finished
from qualms.spec import RunSpec


@dataclass(slots=True, eq=False)
class _WaitingJob:
    """A job whose runs need runs that have not ended."""

    job: Job
    parents: set[str]


class NextJob(NamedTuple):
    """A job that can begin."""

    job: Job
    alone: bool
    """True if nothing else may be under way until it ends."""


class JobQueue:
    """Jobs that have not begun: those that can begin, and those that wait."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._ready: deque[Job] = deque()
        self._alone: deque[Job] = deque()
        """Jobs that begin when nothing else is under way."""
        self._waiting: dict[str, dict[_WaitingJob, None]] = {}
        """Jobs that wait for a run, by the run's hash."""
        self._orphans: list[tuple[_WaitingJob, str]] = []
        """Jobs that need a run which is not planned, each with an error message."""
        jobs = list(jobs)
        planned = {spec.hash for job in jobs for spec in job.specs}
        for job in jobs:
            waiting = _WaitingJob(job, planned.intersection(job.specs[0].parents))
            for parent in waiting.parents:
                self._waiting.setdefault(parent, {})[waiting] = None
            error = _orphan_error(job, planned)
            if error:
                self._orphans.append((waiting, error))
            elif not waiting.parents:
                self._ready.append(job)

    def count(self, *, idle: bool) -> int:
        """Return how many jobs can begin now.

        Args:
            idle: whether nothing is under way.
        """
        return len(self._ready) or (1 if idle and self._alone else 0)

    @property
    def is_empty(self) -> bool:
        """True if no job can begin, now or as soon as nothing is under way."""
        return not self._ready and not self._alone

    def pop(self) -> NextJob:
        """Return the next job, and forget it."""
        alone = not self._ready
        return NextJob((self._alone if alone else self._ready).popleft(), alone)

    def put_back(self, entry: NextJob) -> None:
        """Put a job back; it is the next of its kind to begin."""
        (self._alone if entry.alone else self._ready).appendleft(entry.job)

    def split(self, job: Job, spec: RunSpec) -> None:
        """Make a run of a job a job of its own, which begins after all others."""
        self._ready.append(only(job, [spec]))

    def set_aside(self, job: Job, spec: RunSpec) -> None:
        """Set a run of a job aside; it begins when nothing else is under way."""
        self._alone.append(only(job, [spec]))

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
                    self._ready.append(waiting.job)
                continue
            failed = end.status == "failed"
            why = _needs(end.spec.hash, f"which failed: {end.error}")
            yield from self._drop(waiting, why if failed else "")

    def _drop(self, waiting: _WaitingJob, error: str) -> Iterator[RunEnd]:
        """End the runs of a job that cannot begin, and all runs that need them.

        There is no error if another process is busy with the run that they wait for.
        """
        for parent in waiting.parents:
            self._waiting.get(parent, {}).pop(waiting, None)
        for spec in waiting.job.specs:
            end = RunEnd(spec, "failed" if error else "busy", 0.0, error)
            yield end
            yield from self.release(end)


def only(job: Job, specs: Sequence[RunSpec]) -> Job:
    """Return a job with these of its runs."""
    folders = tuple(folder_in(job, spec) for spec in specs)
    return job._replace(specs=tuple(specs), folders=folders)


def folder_in(job: Job, spec: RunSpec) -> Path:
    """Return the folder of a run of a job."""
    return job.folders[job.specs.index(spec)]


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
