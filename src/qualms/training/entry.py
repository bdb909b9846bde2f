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
from qualms.training._error import TrainingError
from qualms.training._members import work_together
from qualms.training.data import Splits
from qualms.training.followers import Assigned, in_turn
from qualms.training.loop import train_and_predict
from qualms.training.machine import (
    Context,
    join_team,
    make_lane,
    needs_team,
    numerics,
    several,
)
from qualms.training.options import training
from qualms.training.patches import patch_rule
from qualms.training.record import announce
from qualms.training.runs import Workplace, make_run
from qualms.training.watch import Silent, Watch

Data = Dataset | Mapping[str, Dataset]
"""The dataset that runs train on; or all that they read, named as `RunSpec.parts` is,
where "" is the one they train on."""


def run(
    spec: RunSpec,
    data: Data,
    folder: Path,
    *,
    device: str = "auto",
    watch: Watch | None = None,
) -> None:
    """Train `spec` on `data`, or go on with it, and write its predictions.

    All it makes lies in `folder`. A finished run is left as it is. Runs that `spec`
    refers to (`start`, `items`) are looked for beside `folder`, by their hash.

    Raises:
        TrainingError: In one sentence, what happened and what to do.
    """
    run_together([spec], data, [folder], device=device, watch=watch)


def run_together(
    specs: Sequence[RunSpec],
    data: Data,
    folders: Sequence[Path],
    *,
    device: str = "auto",
    watch: Watch | None = None,
) -> None:
    """Train runs that differ in their seed, at the same time where possible.

    On a GPU every run has its own stream, and no run changes the numbers of another.
    On a CPU the runs are trained one after another. So they are on several devices
    ("cuda:0,1"), which divide the batches of a run. A run that fails does not stop the
    others.

    Runs may differ in the rule by which an epoch is chosen as well. Those of one seed
    are then trained once, on one device, where they begin together and both rules score
    predictions.
    """
    jobs = [Assigned(*pair) for pair in zip(specs, map(Path, folders), strict=True)]
    _check_alike(specs)
    jobs = [job for job in jobs if not is_done(job.folder, job.spec)]
    if not jobs:
        return
    if needs_team(device):
        _tell(_by_teams(jobs, data, device, watch or Silent()), len(jobs))
        return
    options = training(jobs[0].spec.training)
    machine = join_team(device, options)
    for job in jobs if machine.team.leads else ():
        announce(job, machine)
    datasets = {"": data} if isinstance(data, Dataset) else data
    splits = Splits(datasets, machine.device, partial(patch_rule, options))
    with (
        numerics(machine, options),
        ThreadPoolExecutor(1, thread_name_prefix="checkpoints") as writer,
    ):
        place = Workplace(
            machine=machine,
            splits=splits,
            watch=watch or Silent(),
            writer=writer if machine.cuda else None,
        )
        failures = _train_in_turn(jobs, place, options.batch)
    _tell(failures, len(jobs))


_PAUSE = 0.001
"""Seconds to wait while every run waits for the device or the disk."""


class _Failure(NamedTuple):
    job: Assigned
    error: Exception


class _Turn(NamedTuple):
    """A run that waits for its turn to take a step."""

    job: Assigned
    lane: Context
    steps: Generator[bool]


def _by_teams(
    jobs: Sequence[Assigned], data: Data, device: str, watch: Watch
) -> list[_Failure]:
    """Train one of `jobs` after another, in a process for each device."""
    failures = []
    for job in jobs:
        work = partial(run, job.spec, data, job.folder, device=device)
        try:
            work_together(work, len(several(device)), watch)
        except TrainingError as error:
            failures.append(_Failure(job, error))
    return failures


def _check_alike(specs: Sequence[RunSpec]) -> None:
    if len({spec.training_key for spec in specs}) > 1:
        raise ValueError(
            "runs that train together must differ in their seed and in select_by alone;"
            " train the others by themselves"
        )


def _train_in_turn(
    jobs: Sequence[Assigned], place: Workplace, batch: int
) -> list[_Failure]:
    failures: list[_Failure] = []
    for turn in in_turn(jobs):
        # Whoever was to follow a training that failed would fail as it did.
        lost = {
            follower.spec.hash: error
            for job, error in failures
            for follower in job.followers
            if not follower.begun
        }
        left = [job for job in turn if job.spec.hash not in lost]
        failures += [
            _Failure(job, lost[job.spec.hash]) for job in turn if job.spec.hash in lost
        ]
        # On a CPU one after another.
        for group in [left] if place.machine.cuda else [[job] for job in left]:
            failures += _train(group, place, batch)
    return failures


def _train(jobs: Sequence[Assigned], place: Workplace, micro: int) -> list[_Failure]:
    """Train `jobs` together; in smaller portions if the device lacks memory.

    Each attempt goes on from the checkpoints of the one before.
    """
    try:
        return _take_turns(jobs, place, micro)
    except torch.OutOfMemoryError:
        pass  # what the attempt held on the device is freed before the next
    gc.collect()
    torch.cuda.empty_cache()
    if place.machine.team.size > 1:
        error = TrainingError(
            "a device is out of memory with its part of a batch; choose a smaller batch"
            " and accumulate more of them"
        )
        return [_Failure(jobs[0], error)]
    if len(jobs) > 1:
        half = len(jobs) // 2
        _say(jobs, place, f"training {len(jobs) - half} runs at a time")
        return _train(jobs[:half], place, micro) + _train(jobs[half:], place, micro)
    if micro == 1:
        error = TrainingError(
            "the device is out of memory even for a single item; choose a smaller"
            " network or another device"
        )
        return [_Failure(jobs[0], error)]
    smaller = -(-micro // 2)
    _say(jobs, place, f"halving the batch to {smaller} and adding up gradients")
    return _train(jobs, place, smaller)


def _take_turns(
    jobs: Sequence[Assigned], place: Workplace, micro: int
) -> list[_Failure]:
    failures = []
    waiting = [
        _Turn(j, make_lane(place.machine), _steps(j, place, micro)) for j in jobs
    ]
    while waiting:
        moved = False
        for turn in tuple(waiting):
            try:
                with turn.lane():
                    moved |= next(turn.steps)
            except StopIteration:
                waiting.remove(turn)
            except Exception as error:
                if _lacks_memory(error):
                    for other in waiting:
                        other.steps.close()
                    raise torch.OutOfMemoryError(str(error)) from error
                waiting.remove(turn)
                failures.append(_Failure(turn.job, error))
        if waiting and not moved:
            time.sleep(_PAUSE)  # checkpoints are written in the meantime
    return failures


def _lacks_memory(error: Exception) -> bool:
    """Whether memory ran out; not every library has an error of its own for that."""
    said = ("CUDA error: out of memory", "STATUS_ALLOC_FAILED", "DefaultCPUAllocator")
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in said)
    )


def _steps(job: Assigned, place: Workplace, micro: int) -> Generator[bool]:
    run = make_run(job, place, micro)
    try:
        yield from train_and_predict(run)
    finally:
        run.saver.settle()  # before anyone reads what it writes


def _say(jobs: Sequence[Assigned], place: Workplace, what: str) -> None:
    for job in jobs:
        place.watch.message(job.spec, f"the device is out of memory; {what}")


def _tell(failures: Sequence[_Failure], count: int) -> None:
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
