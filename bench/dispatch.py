"""Time the driver: how long giving out runs takes it, with a thousand workers.

    python bench/dispatch.py                 10,000 and 100,000 runs, 1,000 workers
    python bench/dispatch.py --runs 1000 --workers 10

Workers are simulated: time passes only in their calendar, so that all seconds measured
are the driver's own. Runs are of random length, report epochs, and some of them fail,
kill their process, or lose their machine; idle processes die as well. Some runs need
others. At the end every run must have ended exactly once.
"""

import argparse
import heapq
import random
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qualms.launch._dispatch import run_jobs
from qualms.launch._worker import Idle, Job, RunEnd, WorkerSetup
from qualms.processes import Epoch, Lost
from qualms.spec import Part, RunSpec

MOST_SECONDS = 0.005
"""Seconds of the driver that a run may take."""
EPOCHS = 3
"""Epochs that a run reports."""
FAILS, KILLS, NODES = 0.05, 0.01, 0.005
"""Shares of attempts that fail, kill their process, and lose their machine."""


class Figures(NamedTuple):
    """What giving out runs cost the driver."""

    runs: int
    events: int
    seconds: float
    peak: int
    """Most bytes that were allocated beside the runs themselves."""


@dataclass(slots=True, eq=False)
class SimulatedWorker:
    """A process that exists only in the calendar of its crew."""

    crew: "SimulatedCrew"
    alive: bool = True

    def send(self, job: Job) -> bool:
        """Take a job, unless the process has ended."""
        if self.alive:
            self.crew.begin(self, job)
        return self.alive


@dataclass(slots=True, eq=False)
class SimulatedCrew:
    """Workers whose messages lie in a calendar, and are heard in its order."""

    rng: random.Random
    now: float = 0.0
    begun: Counter[str] = field(default_factory=Counter)
    """Attempts at each run, by hash."""
    most: int = 0
    """Most workers at a time."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Ends of runs, by their status."""
    events: int = 0
    _calendar: list[tuple[float, int, SimulatedWorker, Any]] = field(
        default_factory=list
    )
    _entries: int = 0
    _alive: int = 0

    def start(self, *_: Any, **_options: Any) -> SimulatedWorker:
        """Start a worker that says in a few seconds that it is idle."""
        worker = SimulatedWorker(self)
        self._alive += 1
        self.most = max(self.most, self._alive)
        self._enter(self.rng.uniform(2, 20), worker, Idle())
        return worker

    def begin(self, worker: SimulatedWorker, job: Job) -> None:
        """Enter what a worker will report about a job."""
        seconds = 0.0
        for spec in job.specs:
            self.begun[spec.hash] += 1
            for epoch in range(EPOCHS):
                seconds += self.rng.expovariate(1 / 100)
                self._enter(seconds, worker, Epoch(spec, (epoch + 1, EPOCHS, 0.5)))
            fate = self.rng.random()
            if fate < KILLS + NODES:
                with_node = fate < NODES
                self._enter(seconds, worker, Lost("was simulated", with_node))
                return
            failed = fate < KILLS + NODES + FAILS
            status, error = ("failed", "simulated") if failed else ("done", "")
            self._enter(seconds, worker, RunEnd(spec, status, seconds, error))
        self._enter(seconds, worker, Idle())
        if self.rng.random() < KILLS:
            self._enter(seconds, worker, Lost("was simulated, idle"))

    def hear(self, _: float | None = None) -> Iterator[tuple[SimulatedWorker, Any]]:
        """Yield the next message of the calendar."""
        while self._calendar:
            self.now, _, worker, message = heapq.heappop(self._calendar)
            if not worker.alive:
                continue
            if isinstance(message, Lost):
                worker.alive = False
                self._alive -= 1
            yield worker, message
            return

    def end(self, **_: Any) -> None:
        """Forget all messages."""
        self._calendar.clear()

    def _enter(self, seconds: float, worker: SimulatedWorker, message: Any) -> None:
        self._entries += 1
        entry = (self.now + seconds, self._entries, worker, message)
        heapq.heappush(self._calendar, entry)


def simulated_jobs(runs: int, out: Path, *, together: int = 1) -> list[Job]:
    """Return jobs of so many runs; each tenth job needs the first run of the last."""
    jobs: list[Job] = []
    for first in range(0, runs, together):
        needs = jobs[-1].specs[0].hash if jobs and len(jobs) % 10 == 0 else None
        specs = tuple(
            RunSpec(
                benchmark="simulated",
                dataset=Part(name="cells", options={"sizes": {"train": 2000}}),
                network=Part(name="resnet_small", options={"width": 8}),
                method=Part(name="map"),
                seed=seed,
                training={"epochs": EPOCHS, "batch": 32, "lr": 0.001},
                start=needs,
            )
            for seed in range(first, min(first + together, runs))
        )
        folders = tuple(out / spec.hash for spec in specs)
        jobs.append(Job(specs, folders, {"": out / "data"}))
    return jobs


def dispatched(jobs: Sequence[Job], workers: int, seed: int) -> SimulatedCrew:
    """Give out jobs, check that every run ended exactly once, and return the crew."""
    setups = [WorkerSetup(device="cpu", threads=1, command=[])] * workers
    crew = SimulatedCrew(random.Random(seed))
    ends = Counter[str]()
    for event in run_jobs(jobs, setups, make_crew=lambda: crew):
        crew.events += 1
        if isinstance(event, RunEnd):
            ends[event.spec.hash] += 1
            crew.statuses[event.status] += 1
    planned = {spec.hash for job in jobs for spec in job.specs}
    if set(ends) != planned or set(ends.values()) != {1}:
        raise AssertionError("every run must end exactly once")
    return crew


def measure(runs: int, workers: int, out: Path) -> Figures:
    """Return what so many runs cost the driver."""
    jobs = simulated_jobs(runs, out / "timed")
    started = time.perf_counter()
    crew = dispatched(jobs, workers, seed=runs)
    seconds = time.perf_counter() - started
    jobs = simulated_jobs(runs, out / "traced")
    tracemalloc.start()
    dispatched(jobs, workers, seed=runs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    retried = sum(count - 1 for count in crew.begun.values())
    statuses = ", ".join(f"{n:,} {status}" for status, n in crew.statuses.items())
    print(
        f"{runs:,} runs, {crew.most:,} workers at most: {statuses}; {retried:,} retries"
    )
    return Figures(runs, crew.events, seconds, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--workers", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            measure(runs, options.workers, Path(folder) / str(runs))
            for runs in options.runs
        ]
    print("\n| runs | events | driver | per run | per event | memory beside the runs |")
    print("|---:|---:|---:|---:|---:|---:|")
    for line in lines:
        print(
            f"| {line.runs:,} | {line.events:,} | {line.seconds:.1f} s"
            f" | {1e3 * line.seconds / line.runs:.2f} ms"
            f" | {1e6 * line.seconds / line.events:.0f} us"
            f" | {line.peak / 2**20:.0f} MiB |"
        )
    slowest = max(line.seconds / line.runs for line in lines)
    if slowest > MOST_SECONDS:
        sys.exit(f"a run must take the driver at most {MOST_SECONDS} s")


if __name__ == "__main__":
    main()
