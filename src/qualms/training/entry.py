"""Training by spec: one run, or several at once on one device."""

import gc
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from qualms.datasets._recipe import Dataset
from qualms.spec import RunSpec
from qualms.training._error import TrainingError
from qualms.training.data import Splits
from qualms.training.loop import carry_out
from qualms.training.machine import Context, make_lane, make_machine, numerics
from qualms.training.options import training
from qualms.training.record import describe, is_done
from qualms.training.runs import Job, Place, make_run
from qualms.training.watch import Silent, Watch


def run(
    spec: RunSpec,
    dataset: Dataset,
    folder: Path,
    *,
    device: str = "auto",
    watch: Watch | None = None,
) -> None:
    """Train `spec` on `dataset`, or go on with it, and write its predictions.

    All it makes lies in `folder`. A finished run is left as it is.

    Raises:
        TrainingError: In one sentence, what happened and what to do.
    """
    run_together([spec], dataset, [folder], device=device, watch=watch)


def run_together(
    specs: Sequence[RunSpec],
    dataset: Dataset,
    folders: Sequence[Path],
    *,
    device: str = "auto",
    watch: Watch | None = None,
) -> None:
    """Train runs that differ only in their seed at once, as `run` does one.

    On a GPU each has its own stream, and none changes a number of another; on a CPU
    they are trained one after another. A run that fails does not stop the others.
    """
    jobs = [Job(*pair) for pair in zip(specs, map(Path, folders), strict=True)]
    _check_alike(specs)
    jobs = [job for job in jobs if not is_done(job)]
    if not jobs:
        return
    options = training(jobs[0].spec.training)
    machine = make_machine(device, options)
    for job in jobs:
        describe(job, machine)
    splits = Splits(dataset, machine.device)
    place = Place(machine=machine, splits=splits, watch=watch or Silent())
    with numerics(machine, options):
        if machine.cuda:
            failures = _train(jobs, place, options.batch)
        else:
            failures = [f for job in jobs for f in _train([job], place, options.batch)]
    _tell(failures, len(jobs))


class _Failure(NamedTuple):
    job: Job
    error: Exception


class _Turn(NamedTuple):
    """A run that waits for its turn to take a step."""

    job: Job
    lane: Context
    steps: Generator[None]


def _check_alike(specs: Sequence[RunSpec]) -> None:
    if len({replace(spec, seed=0).to_json() for spec in specs}) > 1:
        raise ValueError(
            "runs that train together must differ in their seed alone; train the others"
            " by themselves"
        )


def _train(jobs: Sequence[Job], place: Place, micro: int) -> list[_Failure]:
    """Train `jobs` at once; with less at a time where the device has too little memory.

    Each try goes on from the checkpoints of the one before.
    """
    try:
        return _take_turns(jobs, place, micro)
    except torch.OutOfMemoryError:
        pass  # what the try held on the device is let go before the next
    gc.collect()
    torch.cuda.empty_cache()
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


def _take_turns(jobs: Sequence[Job], place: Place, micro: int) -> list[_Failure]:
    failures = []
    waiting = [
        _Turn(j, make_lane(place.machine), _steps(j, place, micro)) for j in jobs
    ]
    while waiting:
        for turn in tuple(waiting):
            try:
                with turn.lane():
                    next(turn.steps)
            except StopIteration:
                waiting.remove(turn)
            except torch.OutOfMemoryError:
                for other in waiting:
                    other.steps.close()
                raise
            except Exception as error:
                waiting.remove(turn)
                failures.append(_Failure(turn.job, error))
    return failures


def _steps(job: Job, place: Place, micro: int) -> Generator[None]:
    run = make_run(job, place, micro)
    try:
        yield from carry_out(run)
    finally:
        run.saver.close()


def _say(jobs: Sequence[Job], place: Place, what: str) -> None:
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
