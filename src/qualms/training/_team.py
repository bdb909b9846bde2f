"""Several devices that train one run: one process for each, with its part of a batch.

PyTorch's DistributedDataParallel averages the gradients over the processes. All else is
as with one device: a step has the same items, in the same order. Batch normalisation
uses the items of each device; the running statistics and all other buffers are those of
the first process. The first process leads: it validates, fits, predicts and writes.
"""

import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from qualms.methods import Batch, Method, Moment
from qualms.processes import (
    Channel,
    Epoch,
    LocalCrew,
    Lost,
    Message,
    Relay,
    tell,
)
from qualms.training._callbacks import Callbacks
from qualms.training._error import TrainingError
from qualms.training.options import Steps

TeamWork = Callable[..., None]
"""A function that every process calls with `callbacks`; it can be imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The processes that train a run, seen from one of them; by default only one."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """True if this process validates, predicts and writes."""
        return self.rank == 0

    def part(self, values: Tensor, batch: int) -> Tensor:
        """Return this process's equal part of each `batch` of `values`."""
        if self.size == 1:
            return values
        each = batch // self.size
        return values.view(-1, self.size, each)[:, self.rank].reshape(-1)

    def mean(self, values: Tensor) -> Tensor:
        """Return `values`, averaged over the processes."""
        if self.size == 1:
            return values
        torch.distributed.all_reduce(values)
        return values / self.size

    def broadcast(self, value: float | None) -> float | None:
        """Return the value of the leading process, in every process."""
        if self.size == 1:
            return value
        values = [value]
        torch.distributed.broadcast_object_list(values)
        return values[0]


class TeamLoss(NamedTuple):
    """The loss of a batch, and how its gradients are shared."""

    loss: Callable[[Batch, Moment], Tensor]
    withheld: Callable[[], AbstractContextManager[Any]]
    """A context for passes whose gradients are shared with a later pass."""


def make_loss(method: Method, network: nn.Module, team: Team) -> TeamLoss:
    """Return the loss of `method`; its gradients are averaged over the team."""
    if team.size == 1:
        return TeamLoss(partial(method.loss, network), nullcontext)
    shared = nn.parallel.DistributedDataParallel(
        _Loss(method, network),
        find_unused_parameters=True,  # phases of a method may leave some out
    )
    return TeamLoss(shared, shared.no_sync)


class _Loss(nn.Module):
    """A loss as the forward pass of a module, as DistributedDataParallel needs it."""

    def __init__(self, method: Method, network: nn.Module) -> None:
        super().__init__()
        self.method = method
        self.network = network

    def forward(self, batch: Batch, moment: Moment) -> Tensor:
        return self.method.loss(self.network, batch, moment)


def check_divides(steps: Steps, rows: int, team: Team) -> None:
    """Raise unless a team can divide batches and epochs evenly."""
    if steps.batch % team.size:
        raise TrainingError(
            f"a batch is divided evenly over {team.size} devices, got batch"
            f" {steps.batch}; choose a multiple of {team.size}"
        )
    stride = steps.items_per_step
    if team.size > 1 and steps.partial and rows % stride:
        raise TrainingError(
            f"several devices take whole steps of {stride} items, which {rows} do not"
            " fill; train with partial=false to leave out the rest of each epoch"
        )


class _MemberDone(NamedTuple):
    """A process has finished its work."""

    error: str = ""
    """Why the work failed; '' if it did not."""


def work_together(work: TeamWork, size: int, callbacks: Callbacks) -> None:
    """Run `work` in the `size` processes of a team; all end when one fails.

    Raises:
        TrainingError: With the message of the first process that failed.
    """
    # Launchers end a worker with its group, and so the team that a worker starts.
    crew, port = LocalCrew(group=False), _free_port()
    try:
        for rank in range(size):
            variables = {"LOCAL_RANK": rank, "NODE_RANK": 0, "MASTER_PORT": port}
            environment = {name: str(value) for name, value in variables.items()}
            environment["MASTER_ADDR"] = "127.0.0.1"
            crew.start(_serve, work, environment=environment)
        _listen(crew, size, callbacks)
    finally:
        crew.end(at_once=True)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listen(crew: LocalCrew, size: int, callbacks: Callbacks) -> None:
    """Pass messages on to `callbacks` until every process is done."""
    done = 0
    while done < size:
        for _, message in crew.hear():
            if isinstance(message, Lost):
                raise TrainingError(
                    f"a process of the team {message.how}; run again to go on from the"
                    " last checkpoint"
                )
            if isinstance(message, _MemberDone) and message.error:
                raise TrainingError(message.error)
            if isinstance(message, _MemberDone):
                done += 1
            if isinstance(message, Epoch | Message):
                tell(callbacks, message)


def _serve(channel: Channel, work: TeamWork) -> None:
    """Run `work` as one process of a team; its rank is in the environment."""
    try:
        work(callbacks=Relay(channel.send))
        channel.send(_MemberDone())
    except Exception as error:
        traceback.print_exc()
        with suppress(OSError):
            channel.send(_MemberDone(str(error) or type(error).__name__))
    # The parent ends all processes at once: leaving would tear connections of others.
    threading.Event().wait()
