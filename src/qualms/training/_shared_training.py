"""Runs that differ in `select_by` alone share one training.

One of them is trained, and also keeps the best weights by the rules of the others, its
dependents. In the end it writes a checkpoint and the log of its epochs for each
dependent, which then only fits and predicts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qualms.runs import checkpoint_paths
from qualms.spec import RunSpec
from qualms.training._checkpoint import Checkpoint, TrainingState, write_checkpoint
from qualms.training._error import TrainingError
from qualms.training._log import copy_log
from qualms.training._splits import Splits
from qualms.training.options import EpochSelection, training
from qualms.training.selection import check_selection, score_alike


class TrainingJob(NamedTuple):
    """A run to train, and its folder."""

    spec: RunSpec
    folder: Path
    dependents: "tuple[TrainingJob, ...]" = ()
    """Runs that take the weights of their epoch from this training."""

    @property
    def rule(self) -> str:
        """Rule by which its epoch is chosen."""
        return training(self.spec.training).selection.select_by

    @property
    def has_checkpoint(self) -> bool:
        """True if there is a checkpoint, of the run or of a shared training."""
        return any(path.exists() for path in checkpoint_paths(self.folder))


def training_rounds(jobs: Sequence[TrainingJob]) -> Iterator[list[TrainingJob]]:
    """Yield the jobs to train, with their dependents; then the dependents.

    Jobs of a round differ in their seeds, since callers choose how many seeds train at
    once.
    """
    trained, dependent = list[TrainingJob](), list[TrainingJob]()
    for job in sorted(jobs, key=lambda job: not job.has_checkpoint):
        index = next((i for i, j in enumerate(trained) if _may_share(job, j)), None)
        if index is None:
            trained.append(job)
            continue
        leader = trained[index]
        trained[index] = leader._replace(dependents=(*leader.dependents, job))
        dependent.append(job)
    yield from _by_seed(trained)
    yield from _by_seed(dependent)


def _by_seed(jobs: Iterable[TrainingJob]) -> list[list[TrainingJob]]:
    groups: list[list[TrainingJob]] = []
    for job in jobs:
        for group in groups:
            if job.spec.seed not in {other.spec.seed for other in group}:
                group.append(job)
                break
        else:
            groups.append([job])
    return groups


def _may_share(job: TrainingJob, leader: TrainingJob) -> bool:
    """Return whether `job` has not begun, and is trained as `leader` is."""
    same = job.spec.seed == leader.spec.seed
    return same and not job.has_checkpoint and score_alike(job.rule, leader.rule)


def follow_dependents(
    job: TrainingJob, state: TrainingState, splits: Splits, *, selects: bool
) -> TrainingJob:
    """Follow the rules of the dependents of `job`, if its training begins.

    Args:
        job: what is trained.
        state: its progress; rules are followed from the first epoch or not at all.
        splits: what rules look at.
        selects: whether the method chooses an epoch.

    Returns:
        The job with the dependents whose rules are followed.
    """
    selection = training(job.spec.training).selection
    possible = {
        dependent.rule: dependent
        for dependent in job.dependents
        if _is_possible(dependent.rule, selection, splits)
    }
    if not selects:  # all of them take the last epoch
        return job._replace(dependents=tuple(possible.values()))
    state.follow([job.rule, *possible])
    followed = [dep for rule, dep in possible.items() if rule in state.best]
    return job._replace(dependents=tuple(followed))


def _is_possible(rule: str, selection: EpochSelection, splits: Splits) -> bool:
    try:
        check_selection(replace(selection, select_by=rule), splits)
    except TrainingError:
        return False  # the run itself will raise it
    return True


def write_shared(
    job: TrainingJob, checkpoint: Checkpoint, state: TrainingState
) -> None:
    """Write the checkpoint and log of `job` for each dependent, with its own epoch."""
    for dependent in job.dependents:
        reduced = replace(state)
        reduced.follow([dependent.rule])
        copy_log(job.folder, dependent.folder)
        changed = {"hash": dependent.spec.hash, "stand": reduced.to_dict()}
        write_checkpoint(dependent.folder, {**checkpoint, **changed})
