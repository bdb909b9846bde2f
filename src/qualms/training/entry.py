"""Training by spec: one run, or several at once on one device."""

import gc
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from qualms.datasets import Dataset
from qualms.runs import is_done
from qualms.spec import RunSpec
from qualms.training._build import make_run
from qualms.training._callbacks import Callbacks, NoCallbacks
from qualms.training._error import TrainingError
from qualms.training._features import forget_features
from qualms.training._loop import train_and_predict
from qualms.training._patches import patch_rule
from qualms.training._provenance import describe_job
from qualms.training._run import DeviceResources
from qualms.training._shared_training import TrainingJob, training_rounds
from qualms.training._splits import Splits
from qualms.training._team import work_together
from qualms.training.machine import (
    Context,
    device_names,
    join_team,
    make_stream,
    needs_team,
    numerics,
)
from qualms.training.options import training

Data = Dataset | Mapping[str, Dataset]
"""The dataset that runs train on; or all datasets that they read, named as in
`RunSpec.parts`, where "" is the one that they train on."""


def run_alone(
    spec: RunSpec,
    data: Data,
    folder: Path,
    *,
    device: str = "auto",
    callbacks: Callbacks | None = None,
) -> None:
    """Train `spec` on `data`, or go on with it, and write its predictions.

    All files are written to `folder`. A finished run is left as it is. Runs that `spec`
    refers to (`start`, `items`) are looked for beside `folder`, by their hash.

    Raises:
        TrainingError: In one sentence, what happened and what to do.
    """
    try:
        run_together([spec], data, [folder], device=device, callbacks=callbacks)
    finally:
        forget_features(Path(folder).parent)


def run_together(
    specs: Sequence[RunSpec],
    data: Data,
    folders: Sequence[Path],
    *,
    device: str = "auto",
    callbacks: Callbacks | None = None,
) -> None:
    """Train runs that differ in their seed, at the same time where possible.

    On a GPU every run has its own stream, and no run changes the numbers of another.
    On a CPU the runs are trained one after another, and so they are on several devices
    ("cuda:0,1"), which divide the batches of a run. A run that fails does not stop the
    others.

    Runs may differ as well in the rule by which an epoch is chosen. On one device, runs
    of one seed then share one training, if they begin together and their rules score
    predictions.
    """
    jobs = [TrainingJob(*pair) for pair in zip(specs, map(Path, folders), strict=True)]
    _check_alike(specs)
    jobs = [job for job in jobs if not is_done(job.folder, job.spec)]
    if not jobs:
        return
    callbacks = callbacks or NoCallbacks()
    if needs_team(device):
        _raise_first(_train_by_teams(jobs, data, device, callbacks), len(jobs))
        return
    options = training(jobs[0].spec.training)
    machine = join_team(device, options.execution)
    for job in jobs if machine.team.leads else ():
        describe_job(job, machine)
    datasets = {"": data} if isinstance(data, Dataset) else data
    splits = Splits(datasets, machine.device, partial(patch_rule, options))
    with (
        numerics(machine, options.execution),
        ThreadPoolExecutor(1, thread_name_prefix="checkpoints") as executor,
    ):
        resources = DeviceResources(
            machine=machine,
            splits=splits,
            callbacks=callbacks,
            executor=executor if machine.cuda else None,
        )
        failures = _train_rounds(jobs, resources, options.steps.batch)
    _raise_first(failures, len(jobs))


_PAUSE = 0.001
"""Seconds to wait while every run waits for the device or the disk."""


class _Failure(NamedTuple):
    job: TrainingJob
    error: Exception


class _ActiveJob(NamedTuple):
    """A job that takes turns with others."""

    job: TrainingJob
    stream: Context
    steps: Generator[bool]


def _train_by_teams(
    jobs: Sequence[TrainingJob], data: Data, device: str, callbacks: Callbacks
) -> list[_Failure]:
    """Train one of `jobs` after another, in a process for each device."""
    failures = []
    for job in jobs:
        work = partial(run_alone, job.spec, data, job.folder, device=device)
        try:
            work_together(work, len(device_names(device)), callbacks)
        except TrainingError as error:
            failures.append(_Failure(job, error))
    return failures


def _check_alike(specs: Sequence[RunSpec]) -> None:
    if len({spec.training_key for spec in specs}) > 1:
        raise ValueError(
            "runs that train together must differ in their seed and in select_by alone;"
            " train the others by themselves"
        )


def _train_rounds(
    jobs: Sequence[TrainingJob], resources: DeviceResources, batch: int
) -> list[_Failure]:
    failures: list[_Failure] = []
    for jobs_of_round in training_rounds(jobs):
        # If a shared training failed, its dependents would fail for the same reason.
        errors = {
            dependent.spec.hash: error
            for job, error in failures
            for dependent in job.dependents
            if not dependent.has_checkpoint
        }
        possible = [job for job in jobs_of_round if job.spec.hash not in errors]
        failures += [
            _Failure(job, errors[job.spec.hash])
            for job in jobs_of_round
            if job.spec.hash in errors
        ]
        # On a CPU one after another.
        groups = [possible] if resources.machine.cuda else [[job] for job in possible]
        for group in groups:
            failures += _train(group, resources, batch)
    return failures


def _train(
    jobs: Sequence[TrainingJob], resources: DeviceResources, forward_items: int
) -> list[_Failure]:
    """Train `jobs` together, with at most `forward_items` items in a forward pass.

    If the device lacks memory, fewer jobs train at a time, then smaller batches. Each
    attempt goes on from the checkpoints of the one before.
    """
    try:
        return _take_turns(jobs, resources, forward_items)
    except torch.OutOfMemoryError:
        pass  # memory of the attempt is freed before the next
    gc.collect()
    torch.cuda.empty_cache()
    if resources.machine.team.size > 1:
        error = TrainingError(
            "a device is out of memory with its part of a batch; choose a smaller batch"
            " and accumulate more of them"
        )
        return [_Failure(jobs[0], error)]
    if len(jobs) > 1:
        half = len(jobs) // 2
        _report_memory(jobs, resources, f"training {len(jobs) - half} runs at a time")
        failures = _train(jobs[:half], resources, forward_items)
        return failures + _train(jobs[half:], resources, forward_items)
    if forward_items == 1:
        error = TrainingError(
            "the device is out of memory even for a single item; choose a smaller"
            " network or another device"
        )
        return [_Failure(jobs[0], error)]
    smaller = -(-forward_items // 2)
    remedy = f"halving the batch to {smaller} and adding up gradients"
    _report_memory(jobs, resources, remedy)
    return _train(jobs, resources, smaller)


def _take_turns(
    jobs: Sequence[TrainingJob], resources: DeviceResources, forward_items: int
) -> list[_Failure]:
    failures = []
    active = [
        _ActiveJob(
            job, make_stream(resources.machine), _steps(job, resources, forward_items)
        )
        for job in jobs
    ]
    while active:
        moved = False
        for each in tuple(active):
            try:
                with each.stream():
                    moved |= next(each.steps)
            except StopIteration:
                active.remove(each)
            except Exception as error:
                if _lacks_memory(error):
                    for other in active:
                        other.steps.close()
                    raise torch.OutOfMemoryError(str(error)) from error
                active.remove(each)
                failures.append(_Failure(each.job, error))
        if active and not moved:
            time.sleep(_PAUSE)  # checkpoints are written in the meantime
    return failures


def _lacks_memory(error: Exception) -> bool:
    """Return whether memory ran out; some libraries raise a general error for it."""
    texts = ("CUDA error: out of memory", "STATUS_ALLOC_FAILED", "DefaultCPUAllocator")
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
    )


def _steps(
    job: TrainingJob, resources: DeviceResources, forward_items: int
) -> Generator[bool]:
    run = make_run(job, resources, forward_items)
    try:
        yield from train_and_predict(run)
    finally:
        run.checkpoints.settle()  # before anybody reads the checkpoint


def _report_memory(
    jobs: Sequence[TrainingJob], resources: DeviceResources, remedy: str
) -> None:
    for job in jobs:
        text = f"the device is out of memory; {remedy}"
        resources.callbacks.message(job.spec, text)


def _raise_first(failures: Sequence[_Failure], count: int) -> None:
    """Raise the first of `failures` of `count` runs, if there are any."""
    if not failures:
        return
    first = failures[0]
    if count == 1:
        raise first.error
    seeds = ", ".join(str(job.spec.seed) for job, _ in failures)
    raise TrainingError(
        f"{len(failures)} of {count} runs failed (seeds {seeds}); the first because"
        f" {first.error}"
    ) from first.error
