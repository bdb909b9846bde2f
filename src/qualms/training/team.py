"""Several devices that train one run: one process for each, with its part of a batch.

PyTorch's DistributedDataParallel averages the gradients over the processes. All else is
as with one device: a step has the same items, in the same order. Batch normalisation
uses the items of each device; the running statistics and all other buffers are those of
the first process. The first process leads: it validates, fits, predicts and writes.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from qualms.methods import Batch, Method, Moment
from qualms.training._error import TrainingError
from qualms.training.options import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The processes of a run, seen from one of them; by default it is alone."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process validates, predicts and writes."""
        return self.rank == 0

    def part(self, values: Tensor, batch: int) -> Tensor:
        """The part of this process of each `batch` of `values`; all parts are equal."""
        if self.size == 1:
            return values
        each = batch // self.size
        return values.view(-1, self.size, each)[:, self.rank].reshape(-1)

    def mean(self, values: Tensor) -> Tensor:
        """`values`, averaged over the processes."""
        if self.size == 1:
            return values
        torch.distributed.all_reduce(values)
        return values / self.size

    def heard(self, value: float | None) -> float | None:
        """The value of the leading process, in every process."""
        if self.size == 1:
            return value
        said = [value]
        torch.distributed.broadcast_object_list(said)
        return said[0]


class Objective(NamedTuple):
    """The loss of a batch, and how its gradients are shared."""

    loss: Callable[[Batch, Moment], Tensor]
    withheld: Callable[[], AbstractContextManager[Any]]
    """A context for passes whose gradients are shared with a later pass."""


def make_objective(method: Method, network: nn.Module, team: Team) -> Objective:
    """The loss of `method`, whose gradients are averaged over the team."""
    if team.size == 1:
        return Objective(partial(method.loss, network), nullcontext)
    shared = nn.parallel.DistributedDataParallel(
        _Loss(method, network),
        find_unused_parameters=True,  # phases of a method may leave some out
    )
    return Objective(shared, shared.no_sync)


class _Loss(nn.Module):
    """A loss as the forward pass of a module, as DistributedDataParallel wants it."""

    def __init__(self, method: Method, network: nn.Module) -> None:
        super().__init__()
        self.method = method
        self.network = network

    def forward(self, batch: Batch, moment: Moment) -> Tensor:
        return self.method.loss(self.network, batch, moment)


def check_divides(options: Training, rows: int, team: Team) -> None:
    """Refuse batches that a team cannot divide evenly."""
    if options.batch % team.size:
        raise TrainingError(
            f"a batch is divided evenly over {team.size} devices, got batch"
            f" {options.batch}; choose a multiple of {team.size}"
        )
    stride = options.batch * options.accumulate
    if team.size > 1 and options.partial and rows % stride:
        raise TrainingError(
            f"several devices take whole steps of {stride} items, which {rows} do not"
            " fill; train with partial=false to leave out the rest of each epoch"
        )
