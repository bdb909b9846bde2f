"""Runs on this machine: several at once, each in a folder of its own, none twice.

Killing it at any moment loses at most the current epoch of each run, and running it
again goes on from there. Several launchers may share an output folder.
"""

import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.launch._batches import batches
from qualms.launch._data import key, prepared
from qualms.launch._devices import TOGETHER, devices_for, threads_for
from qualms.launch._dispatch import work_off
from qualms.launch._events import Ended, Epoch, Job, Message, Status, Work
from qualms.launch._worker import Post
from qualms.runs import check_writable, is_done, log_path, run_folder
from qualms.spec import RunSpec

if TYPE_CHECKING:
    from qualms.training import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    spec: RunSpec
    folder: Path
    status: Status
    """done now, skipped as it was done already, failed, or busy in another launcher."""
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
    watch: "Watch | None" = None,
    work: Work | None = None,
) -> Generator[Outcome, None, None]:
    """How each of `specs` ended, as it ends; what is done already comes first.

    A run that fails, or whose process is killed, does not stop the others. Mistakes
    that concern all runs (no data, a folder that cannot be written) raise before
    anything starts. Closing the iterator, or an interrupt, ends all workers.

    Args:
        specs: the runs; one that is named twice runs once, and one that starts from
            another of them runs after it.
        out: the folder of a run is `out / benchmark / hash`.
        data: root of the cache of prepared datasets; simulated ones are made there.
        workers: processes that train at the same time, shared out over the GPUs.
        device: "auto", "cpu", "cuda" (every GPU) or one device by name.
        together: most runs that one process trains at once, where they differ only in
            their seed; 5 on a GPU and 1 on the CPU by default.
        watch: hears about every epoch.
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
    queue: deque[Job] = deque()
    if todo:
        check_writable(out)
        posts = _posts(device, workers, work)
        places = prepared([spec.dataset for spec in todo], data)
        together = together or (1 if posts[0].device == "cpu" else TOGETHER)
        found = batches(todo, together=together, workers=workers)
        queue.extend(_job(batch, out, places) for batch in found)
    return _outcomes(skipped, queue, posts, out, watch)


def lacking(specs: Sequence[RunSpec], out: Path) -> list[RunSpec]:
    """Those of `specs` that have no result below `out`, each once."""
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


def _job(specs: tuple[RunSpec, ...], out: Path, places: Mapping[str, Path]) -> Job:
    return Job(
        specs=specs,
        folders=tuple(run_folder(out, spec) for spec in specs),
        data=places[key(specs[0].dataset)],
    )


def _outcomes(
    skipped: Sequence[RunSpec],
    queue: deque[Job],
    posts: Sequence[Post],
    out: Path,
    watch: "Watch | None",
) -> Generator[Outcome, None, None]:
    def outcome(spec: RunSpec, ended: Ended) -> Outcome:
        folder = run_folder(out, spec)
        return Outcome(
            spec=spec,
            folder=folder,
            status=ended.status,
            seconds=ended.seconds,
            error=ended.error,
            log=log_path(folder),
        )

    for spec in skipped:
        yield outcome(spec, Ended(spec.hash, "skipped", 0.0, ""))
    busy: list[tuple[RunSpec, Ended]] = []
    for spec, event in work_off(queue, posts):
        if isinstance(event, Ended) and event.status == "busy":
            busy.append((spec, event))
        elif isinstance(event, Ended):
            yield outcome(spec, event)
        else:
            _tell(watch, spec, event)
    for spec, event in busy:
        done = is_done(run_folder(out, spec), spec)
        yield outcome(spec, event._replace(status="skipped" if done else "busy"))


def _tell(watch: "Watch | None", spec: RunSpec, event: Epoch | Message) -> None:
    if watch is None:
        return
    if isinstance(event, Epoch):
        watch.epoch(spec, *event.values)
    else:
        watch.message(spec, event.text)
