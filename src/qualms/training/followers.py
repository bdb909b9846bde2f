"""Runs that differ in the rule by which an epoch is chosen are trained once.

One of them is trained. While it is, it also keeps the best weights by the rules of the
others, and leaves each of them a checkpoint in the end, as if it had been trained by
itself: all that is left for it is to fit and to predict.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qualms.runs import checkpoint_paths
from qualms.spec import RunSpec
from qualms.training._error import TrainingError
from qualms.training.checkpoint import State, write_checkpoint
from qualms.training.data import Splits
from qualms.training.log import copy_log
from qualms.training.options import Training, training
from qualms.training.selection import check_selection, see_the_same
from qualms.training.stand import Stand


class Assigned(NamedTuple):
    """A run to train, and the folder that keeps it."""

    spec: RunSpec
    folder: Path
    followers: "tuple[Assigned, ...]" = ()
    """Runs that take the weights of their epochs from its training."""

    @property
    def rule(self) -> str:
        """How its epoch is chosen."""
        return training(self.spec.training).select_by


def in_turn(jobs: Sequence[Assigned]) -> Iterator[list[Assigned]]:
    """The runs to train, with their followers, and then these."""
    trained, taking = list[Assigned](), list[Assigned]()
    for job in jobs:
        first = next((one for one in trained if _may_follow(job, one)), None)
        if first is None:
            trained.append(job)
            continue
        followed = first._replace(followers=(*first.followers, job))
        trained[trained.index(first)] = followed
        taking.append(job)
    yield trained
    if taking:
        yield taking


def _may_follow(job: Assigned, first: Assigned) -> bool:
    """Whether `job` has not begun, and is trained as `first` is."""
    begun = any(path.exists() for path in checkpoint_paths(job.folder))
    same = job.spec.seed == first.spec.seed
    return same and not begun and see_the_same(job.rule, first.rule)


def followed(
    job: Assigned, stand: Stand, splits: Splits, *, selects: bool
) -> tuple[Assigned, ...]:
    """The followers of `job` whose rules it follows; at the start, it begins to.

    Args:
        job: what is trained.
        stand: how far it is.
        splits: what rules look at.
        selects: whether its method chooses an epoch at all.
    """
    options = training(job.spec.training)
    wanted = {f.rule: f for f in job.followers if _possible(f.rule, options, splits)}
    if not selects:  # all of them take the last epoch
        return tuple(wanted.values())
    stand.follow([job.rule, *wanted])
    return tuple(f for rule, f in wanted.items() if rule in stand.best)


def _possible(rule: str, options: Training, splits: Splits) -> bool:
    try:
        check_selection(replace(options, select_by=rule), splits)
    except TrainingError:
        return False  # the run itself will say so
    return True


def lend(followers: Iterable[Assigned], folder: Path, state: State, at: Stand) -> None:
    """Leave each follower a checkpoint of the run in `folder`, with its own epoch."""
    for follower in followers:
        own = replace(at)
        own.follow([follower.rule])
        copy_log(folder, follower.folder)
        changed = {"hash": follower.spec.hash, "stand": own.state()}
        write_checkpoint(follower.folder, {**state, **changed})
