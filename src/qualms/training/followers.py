"""Runs that differ in the rule by which an epoch is chosen are trained once.

One of them is trained. While it is, it also keeps the best weights by the rules of the
others, and leaves each of them a checkpoint and the log of its epochs in the end: all
that is left for them is to fit and to predict.
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

    @property
    def begun(self) -> bool:
        """Whether it has a checkpoint, of its own training or of the one it follows."""
        return any(path.exists() for path in checkpoint_paths(self.folder))


def in_turn(jobs: Sequence[Assigned]) -> Iterator[list[Assigned]]:
    """The runs to train, with their followers, and then these.

    Those of a turn have different seeds: so many at once were asked for.
    """
    leading, taking = list[Assigned](), list[Assigned]()
    for job in sorted(jobs, key=lambda job: not job.begun):
        first = next((one for one in leading if _may_follow(job, one)), None)
        if first is None:
            leading.append(job)
            continue
        place = leading.index(first)
        leading[place] = first._replace(followers=(*first.followers, job))
        taking.append(job)
    yield from _by_seed(leading)
    yield from _by_seed(taking)


def _by_seed(jobs: Iterable[Assigned]) -> list[list[Assigned]]:
    turns: list[list[Assigned]] = []
    for job in jobs:
        seed = job.spec.seed
        for turn in turns:
            if seed not in {other.spec.seed for other in turn}:
                turn.append(job)
                break
        else:
            turns.append([job])
    return turns


def _may_follow(job: Assigned, first: Assigned) -> bool:
    """Whether `job` has not begun, and is trained as `first` is."""
    same = job.spec.seed == first.spec.seed
    return same and not job.begun and see_the_same(job.rule, first.rule)


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
