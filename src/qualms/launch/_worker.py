"""A worker: a process of its own that trains one job after another.

Whatever it prints goes to the log of the run it works on.
"""

import errno
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from qualms.datasets import open_dataset
from qualms.launch._devices import device_here
from qualms.processes import Channel, Event, Message, Relay, locked
from qualms.runs import (
    check_signed,
    describe,
    is_done,
    lock_path,
    log_path,
    mark_failed,
    sign,
    tidy,
)
from qualms.shelf import outside_error, source_of
from qualms.spec import RunSpec
from qualms.wording import error_words

RunStatus = Literal["done", "skipped", "failed", "busy", "pruned"]
Work = Callable[..., None]
"""A function that is called like `qualms.training.run_together`."""
Judge = Callable[[RunSpec, Path], str]
"""Called with a run and its folder before the run begins and after each of its epochs.
It returns why the run is to be stopped, '' if it is not."""


def never_stop(spec: RunSpec, folder: Path) -> str:  # noqa: ARG001 - a judge takes them
    """Return no reason to stop: every run trains to its end."""
    return ""


class Job(NamedTuple):
    """Runs that are trained at once, their folders, and where their data are."""

    specs: tuple[RunSpec, ...]
    folders: tuple[Path, ...]
    data: Mapping[str, Path]
    """The cache of each dataset, named as in `RunSpec.parts`."""


class RunStoppedError(Exception):
    """A run that its judge stops; the message says why."""


class RunEnd(NamedTuple):
    """The end of a run, at least for now."""

    spec: RunSpec
    status: RunStatus
    seconds: float = 0.0
    error: str = ""


class ClaimedRun(NamedTuple):
    """A run that this process works on."""

    spec: RunSpec
    folder: Path
    claim: ExitStack
    """Ends the claim when it is closed."""


class TrainingEnd(NamedTuple):
    """The status of runs that training has left without a result, and the reason."""

    status: RunStatus
    error: str


class Idle(NamedTuple):
    """The worker has started, or has finished a job, and waits for the next one."""


@contextmanager
def _claimed(folder: Path) -> Iterator[bool]:
    """Lock the folder of a run; yield False while another process works on the run."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(lock_path(folder)) as is_locked:
        if is_locked:
            sign(folder)
        yield is_locked


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """Device, threads and task of a worker."""

    device: str
    """"auto" and "cuda" stand for all GPUs that the worker sees, for each run."""
    threads: int
    command: list[str]
    work: Work | None = None
    """None stands for `qualms.training.run_together`."""
    judge: Judge = never_stop


def serve_launcher(channel: Channel, setup: WorkerSetup) -> None:
    """Work on the jobs that come, until the launcher is gone."""
    while True:
        channel.send(Idle())
        _work_on(channel.recv(), channel, setup)
        _free_memory()


def _free_memory() -> None:
    """Free the memory of a job on the device, for the next one and other workers."""
    gc.collect()
    if "torch" in sys.modules:
        import torch

        torch.cuda.empty_cache()


def _work_on(job: Job, channel: Channel, setup: WorkerSetup) -> None:
    """Train the runs of `job` that are not done, and report how each ended."""
    started = time.monotonic()

    def end(spec: RunSpec, status: RunStatus, error: str = "") -> None:
        channel.send(RunEnd(spec, status, time.monotonic() - started, error))

    with ExitStack() as claims:
        runs = _claim_runs(job, claims, end)
        if not runs:
            return
        status, error = _train(runs, job.data, channel, setup)
        for run in runs:
            _end_run(run, status, error, end)


def _claim_runs(
    job: Job, claims: ExitStack, end: Callable[..., None]
) -> list[ClaimedRun]:
    """Claim the runs that are not done and that no other process works on."""
    runs: list[ClaimedRun] = []
    for spec, folder in zip(job.specs, job.folders, strict=True):
        claim = claims.enter_context(ExitStack())
        try:
            if not claim.enter_context(_claimed(folder)):
                end(spec, "busy")
            elif is_done(folder, spec):
                claim.close()
                end(spec, "skipped")
            else:
                runs.append(ClaimedRun(spec, folder, claim))
        except OSError as error:
            end(spec, "failed", _sentence(error))
    return runs


def _end_run(
    run: ClaimedRun, status: RunStatus, error: str, end: Callable[..., None]
) -> None:
    """End the claim, and report how a run ended: `status` if it has no result."""
    done = is_done(run.folder, run.spec)
    if not done and status == "failed":
        with suppress(OSError):  # a full disk must not hide how the run ended
            mark_failed(run.folder, run.spec, error)
    run.claim.close()
    end(run.spec, "done" if done else status, "" if done else error)


def _train(
    runs: Sequence[ClaimedRun],
    data: Mapping[str, Path],
    channel: Channel,
    setup: WorkerSetup,
) -> TrainingEnd:
    """Train runs; return the status of those that have no result."""
    try:
        with _logged(tuple(run.folder for run in runs)):
            try:
                _train_logged(runs, data, channel, setup)
            except RunStoppedError as stopped:
                sys.stdout.write(f"{stopped}\n")
                raise
            except Exception:
                traceback.print_exc()
                raise
    except RunStoppedError as stopped:
        return TrainingEnd("pruned", str(stopped))
    except Exception as error:
        return TrainingEnd("failed", _sentence(error))
    return TrainingEnd("failed", "training ended without marking the run as done")


def _train_logged(
    runs: Sequence[ClaimedRun],
    data: Mapping[str, Path],
    channel: Channel,
    setup: WorkerSetup,
) -> None:
    folders = {run.spec.hash: run.folder for run in runs}

    def judge(spec: RunSpec) -> None:
        if reason := setup.judge(spec, folders[spec.hash]):
            raise RunStoppedError(reason)

    def send(event: Event) -> None:
        if isinstance(event, Message):
            sys.stdout.write(f"{event.spec.hash}: {event.text}\n")
            channel.send(event)
        else:
            check_signed(folders[event.spec.hash])
            channel.send(event)
            judge(event.spec)

    now = datetime.now().astimezone().isoformat(timespec="seconds")
    device = device_here(setup.device)
    sys.stdout.write(f"{now}: starts on {device}\n")
    work = setup.work or _run_together()
    for spec, folder, _ in runs:
        judge(spec)
        _check_sources(spec)
        tidy(folder)
        describe(folder, spec, {"device": device, "command": setup.command})
    specs, places = tuple(run.spec for run in runs), tuple(folders.values())
    work(specs, _open(data), places, device=device, callbacks=Relay(send))


def _check_sources(spec: RunSpec) -> None:
    """Raise if the code of parts from outside has changed since the run was planned."""
    for name, digest in spec.sources.items():
        shelf, _, part = name.rpartition("/")
        if source_of(shelf, part) != digest:
            raise ValueError(
                f"the code of {name} has changed since this run was planned, or is not"
                " included; start the command again"
            )


def _run_together() -> Work:
    from qualms.training import run_together

    return run_together


def _open(folders: Mapping[str, Path]) -> Any:
    """Open the dataset of the runs, or all of them by name if there are several."""
    opened = {name: open_dataset(folder) for name, folder in folders.items()}
    return opened if len(opened) > 1 else opened[""]


@contextmanager
def _logged(folders: Sequence[Path]) -> Iterator[None]:
    """Send all that this process and its libraries print to the first folder's log."""
    first, *others = map(log_path, folders)
    for other in others:
        with other.open("a", encoding="utf-8") as log:
            log.write(f"trains together with others; its log is {first}\n")
    saved = os.dup(1), os.dup(2)
    with first.open("ab") as log:
        _redirect(log.fileno(), log.fileno())
    try:
        yield
    finally:
        _redirect(*saved)
        for stream in saved:
            os.close(stream)


def _redirect(out: int, err: int) -> None:
    with suppress(OSError):  # a full disk must not hide how the run ended
        sys.stdout.flush()
        sys.stderr.flush()
    os.dup2(out, 1)
    os.dup2(err, 2)


def _sentence(error: Exception) -> str:
    """Return the first line of an error, with its type if it is not one of ours."""
    if isinstance(error, MemoryError):
        return (
            f"this machine has too little memory ({str(error) or 'no more to be had'});"
            " use fewer --workers or a smaller batch and run again, what is done is"
            " kept"
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full; free space and run again, what is done is kept"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return (
            f"cannot use {error.filename}: {error.strerror}; make it usable and run"
            " again"
        )
    if sentence := outside_error(error):
        return sentence
    is_sentence = isinstance(error, (ValueError, LookupError, OSError))
    is_ours = type(error).__module__.startswith("qualms.")
    if isinstance(error, (KeyError, IndexError)) or not (is_sentence or is_ours):
        return error_words(error)
    return str(error).strip().partition("\n")[0] or "no reason given"
