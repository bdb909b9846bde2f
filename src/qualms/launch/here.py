"""Makes runs on this machine: several at once, each in a folder of its own.

A run that is done is not made again. If the process is killed, at most the current
epoch of each run is lost, and the next call continues from there. Several launchers may
share an output folder.
"""

import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.launch._dispatch import work_off
from qualms.launch._worker import Ended, Job, Post, RunStatus, Work
from qualms.launch.data import Watched, data_key, prepared
from qualms.launch.devices import TOGETHER, devices_for, threads_for
from qualms.processes import tell
from qualms.runs import check_writable, is_done, log_path, mend_spec, run_folder
from qualms.spec import Part, RunSpec

if TYPE_CHECKING:
    from qualms.training import Callbacks


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    spec: RunSpec
    folder: Path
    status: RunStatus
    """"done" now, "skipped" because it was done before, "failed", or "busy" in another
    launcher."""
    seconds: float
    error: str
    """One sentence for a failed run, '' for others."""
    log: Path


def run_all(  # noqa: PLR0913 - what to run, where, and on what are all the caller's
    specs: Sequence[RunSpec],
    *,
    out: Path,
    data: Path,
    workers: int = 1,
    device: str = "auto",
    together: int | None = None,
    watch: "Callbacks | None" = None,
    progress: Watched | None = None,
    work: Work | None = None,
) -> Generator[RunOutcome, None, None]:
    """Make the runs of `specs`, and yield how each ended; finished runs come first.

    A run that fails, or whose process is killed, does not stop the others. Mistakes
    that concern all runs (no data, a folder that cannot be written) raise before
    anything starts. Closing the iterator, or an interrupt, ends all workers.

    Args:
        specs: the runs. One that is named twice is made once. One that needs others
            (its `parents`) is made after them, and fails if one of them does.
        out: the folder of a run is `out / benchmark / hash`.
        data: root of the cache of prepared datasets; simulated ones are made there.
        workers: processes that train at the same time, shared out over the GPUs.
        device: "auto", "cpu", "cuda" (every GPU) or one device by name.
        together: most seeds that one process trains at once, of runs that are otherwise
            the same; 5 on a GPU and 1 on the CPU by default.
        watch: hears about every epoch.
        progress: hears how far each simulated dataset is.
        work: what trains a batch, called like `qualms.training.run_together`.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    todo: list[RunSpec] = []
    skipped: list[RunSpec] = []
    for spec in {spec.hash: spec for spec in specs}.values():
        done = is_done(run_folder(out, spec), spec)
        (skipped if done else todo).append(spec)
    posts: list[Post] = []
    jobs: list[Job] = []
    if todo:
        check_writable(out)
        posts = _posts(device, workers, work)
        places = prepared(parts_of(todo), data, progress=progress)
        together = together or (1 if posts[0].device == "cpu" else TOGETHER)
        found = batches(todo, together=together, workers=workers)
        jobs = [_job(batch, out, places) for batch in found]
    return _outcomes(skipped, jobs, posts, out, watch)


def parts_of(specs: Sequence[RunSpec]) -> list[Part]:
    """Every dataset that `specs` read."""
    return [part for spec in specs for part in spec.parts.values()]


def lacking(specs: Sequence[RunSpec], out: Path) -> list[RunSpec]:
    """The runs among `specs` that have no result in `out`, each once."""
    unique = {spec.hash: spec for spec in specs}.values()
    return [spec for spec in unique if not is_done(run_folder(out, spec), spec)]


def _posts(device: str, workers: int, work: Work | None) -> list[Post]:
    devices = devices_for(device)
    command = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return [
        Post(
            device=name,
            threads=threads_for(name, workers),
            command=command,
            work=work,
        )
        for name in (devices[i % len(devices)] for i in range(workers))
    ]


def batches(
    specs: Sequence[RunSpec], *, together: int, workers: int
) -> list[tuple[RunSpec, ...]]:
    """Groups of runs that train at once in one process: they have one `training_key`.

    A group has up to `together` seeds; fewer if there are too few for all workers.
    """
    if together < 1:
        raise ValueError(f"together must be at least 1, got {together}")
    alike: dict[str, dict[int, list[RunSpec]]] = {}
    for spec in specs:
        alike.setdefault(spec.training_key, {}).setdefault(spec.seed, []).append(spec)
    size = min(together, -(-sum(map(len, alike.values())) // workers))
    return [
        tuple(spec for same in seeds[start : start + size] for spec in same)
        for seeds in (list(group.values()) for group in alike.values())
        for start in range(0, len(seeds), size)
    ]


def _job(specs: tuple[RunSpec, ...], out: Path, places: Mapping[str, Path]) -> Job:
    parts = specs[0].parts
    return Job(
        specs=specs,
        folders=tuple(run_folder(out, spec) for spec in specs),
        data={name: places[data_key(part)] for name, part in parts.items()},
    )


def _outcomes(
    skipped: Sequence[RunSpec],
    jobs: Sequence[Job],
    posts: Sequence[Post],
    out: Path,
    watch: "Callbacks | None",
) -> Generator[RunOutcome, None, None]:
    for spec in skipped:
        mended = mend_spec(run_folder(out, spec), spec)
        if mended and watch is not None:
            watch.message(spec, mended)
        yield _outcome(Ended(spec, "skipped"), out)
    busy: list[Ended] = []
    for event in work_off(jobs, posts):
        if not isinstance(event, Ended):
            if watch is not None:
                tell(watch, event)
        elif event.status == "busy":
            busy.append(event)
        else:
            yield _outcome(event, out)
    for event in busy:
        done = is_done(run_folder(out, event.spec), event.spec)
        yield _outcome(event._replace(status="skipped") if done else event, out)


def _outcome(ended: Ended, out: Path) -> RunOutcome:
    folder = run_folder(out, ended.spec)
    return RunOutcome(
        spec=ended.spec,
        folder=folder,
        status=ended.status,
        seconds=ended.seconds,
        error=ended.error,
        log=log_path(folder),
    )
