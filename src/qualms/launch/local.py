"""Make runs: several at once, each in a folder of its own.

A run that is done is not made again. If the process is killed, at most the current
epoch of each run is lost, and the next call continues from there. Several launchers may
share an output folder.
"""

import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.launch._devices import TOGETHER
from qualms.launch._dispatch import run_jobs
from qualms.launch._worker import Job, Judge, RunEnd, RunStatus, Work
from qualms.launch.data import PartProgress, data_key, prepare_datasets
from qualms.launch.engine import Engine, open_slots
from qualms.processes import Event, tell
from qualms.runs import (
    check_writable,
    is_done,
    log_path,
    mend_spec,
    remade,
    run_folder,
    shared_features,
)
from qualms.spec import Part, RunSpec

if TYPE_CHECKING:
    from qualms.training import Callbacks


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The end of a run: its status, and where its files are."""

    spec: RunSpec
    folder: Path
    status: RunStatus
    """"done" now, "skipped" because it was done before, "failed", "busy" in another
    launcher, or "pruned" by the judge of a search."""
    seconds: float
    error: str
    """One sentence for a failed or pruned run, '' for others."""
    log: Path


def run_all(  # noqa: PLR0913 - the options of the command
    specs: Sequence[RunSpec],
    *,
    out: Path,
    data: Path,
    workers: int | None = 1,
    device: str = "auto",
    together: int | None = None,
    engine: Engine | None = None,
    callbacks: "Callbacks | None" = None,
    progress: PartProgress | None = None,
    work: Work | None = None,
    judge: Judge | None = None,
) -> Generator[RunOutcome, None, None]:
    """Make runs, and yield the outcome of each; finished runs come first.

    A run that fails, or whose process is killed, does not stop the others. Mistakes
    that concern all runs (no data, a folder that cannot be written) raise before
    anything starts. Closing the iterator, or an interrupt, ends all workers.

    Args:
        specs: the runs. One that is named twice is made once. One that needs others
            (its `parents`) is made after them, and fails if one of them does.
        out: the folder of a run is `out / benchmark / hash`.
        data: root of the cache of prepared datasets; simulated ones are made there.
        workers: processes that train at the same time, shared out over the GPUs; None
            for one per GPU or core.
        device: "auto", "cpu", "cuda" (every GPU) or one device by name.
        together: most seeds that one process trains at once, of runs that are otherwise
            the same; 5 on a GPU and 1 on the CPU by default.
        engine: which machines make the runs; this one by default.
        callbacks: are called after every epoch.
        progress: is called while simulated datasets are made.
        work: what trains a batch, called like `qualms.training.run_together`.
        judge: is called before a run begins and after each of its epochs, in the
            process that trains it, and may stop the run. Runs are then trained one by
            one.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if together is not None and together < 1:
        raise ValueError(f"together must be at least 1, got {together}")
    engine = engine or Engine()
    pending = pending_runs(specs, out)
    hashes = {spec.hash for spec in pending}
    unique = {spec.hash: spec for spec in specs}.values()
    finished = [spec for spec in unique if spec.hash not in hashes]
    if not pending:
        return _outcomes(finished, [], _nothing(), out, callbacks)
    check_writable(out)
    with ExitStack() as undo:
        slots = open_slots(engine, device=device, workers=workers, out=out, work=work)
        undo.callback(slots.close)
        setups = slots.setups
        if judge is not None:
            setups, together = [replace(each, judge=judge) for each in setups], 1
        folders = prepare_datasets(datasets_of(pending), data, progress=progress)
        together = together or (TOGETHER if slots.on_gpus else 1)
        groups = batches(pending, together=together, workers=len(slots.setups))
        jobs = [_job(batch, out, folders) for batch in groups]
        events = run_jobs(
            jobs, setups, make_crew=slots.make_crew, retries=engine.retries
        )
        undo.pop_all()
    return _outcomes(finished, jobs, events, out, callbacks)


def _nothing() -> Generator[Event | RunEnd]:
    yield from ()


def datasets_of(specs: Sequence[RunSpec]) -> list[Part]:
    """Return every dataset that runs read."""
    return [part for spec in specs for part in spec.parts.values()]


def pending_runs(specs: Sequence[RunSpec], out: Path) -> list[RunSpec]:
    """Return the runs that have no result in `out`, each once."""
    unique = {spec.hash: spec for spec in specs}.values()
    return [spec for spec in unique if not is_done(run_folder(out, spec), spec)]


def batches(
    specs: Sequence[RunSpec], *, together: int, workers: int
) -> list[tuple[RunSpec, ...]]:
    """Group runs that train at once in one process: they have one `training_key`.

    A group has up to `together` seeds; fewer if there are too few for all workers.
    """
    by_key: dict[str, dict[int, list[RunSpec]]] = {}
    for spec in specs:
        by_key.setdefault(spec.training_key, {}).setdefault(spec.seed, []).append(spec)
    size = min(together, -(-sum(map(len, by_key.values())) // workers))
    return [
        tuple(spec for same in seeds[start : start + size] for spec in same)
        for seeds in (list(group.values()) for group in by_key.values())
        for start in range(0, len(seeds), size)
    ]


def _job(specs: tuple[RunSpec, ...], out: Path, data: Mapping[str, Path]) -> Job:
    parts = specs[0].parts
    return Job(
        specs=specs,
        folders=tuple(run_folder(out, spec) for spec in specs),
        data={name: data[data_key(part)] for name, part in parts.items()},
    )


def _outcomes(
    finished: Sequence[RunSpec],
    jobs: Sequence[Job],
    events: Generator[Event | RunEnd],
    out: Path,
    callbacks: "Callbacks | None",
) -> Generator[RunOutcome, None, None]:
    for spec in finished:
        mended = mend_spec(run_folder(out, spec), spec)
        if mended and callbacks is not None:
            callbacks.message(spec, mended)
        yield _outcome(RunEnd(spec, "skipped"), out)
    _tell_remade(jobs, callbacks)
    busy: list[RunEnd] = []
    with closing(events):
        for event in events:
            if not isinstance(event, RunEnd):
                if callbacks is not None:
                    tell(callbacks, event)
            elif event.status == "busy":
                busy.append(event)
            else:
                yield _outcome(event, out)
    _forget_features(jobs, out)
    for event in busy:
        done = is_done(run_folder(out, event.spec), event.spec)
        yield _outcome(event._replace(status="skipped") if done else event, out)


def _forget_features(jobs: Sequence[Job], out: Path) -> None:
    """Delete features that runs shared; those of other launchers keep what they map."""
    for benchmark in {spec.benchmark for job in jobs for spec in job.specs}:
        shutil.rmtree(shared_features(out / benchmark), ignore_errors=True)


def _tell_remade(jobs: Sequence[Job], callbacks: "Callbacks | None") -> None:
    if callbacks is None:
        return
    for job in jobs:
        for spec, folder in zip(job.specs, job.folders, strict=True):
            for sentence in remade(folder, spec):
                callbacks.message(spec, sentence)


def _outcome(end: RunEnd, out: Path) -> RunOutcome:
    folder = run_folder(out, end.spec)
    return RunOutcome(
        spec=end.spec,
        folder=folder,
        status=end.status,
        seconds=end.seconds,
        error=end.error,
        log=log_path(folder),
    )
