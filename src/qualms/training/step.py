"""One training step, on the device from end to end.

Nothing here waits for the device or hands it a number: the position in the epoch, the
order of items, the learning rates and the losses all lie in tensors. So a step can be
recorded once and replayed, with the same result.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from qualms.methods import Moment
from qualms.training._error import TrainingError
from qualms.training.data import Feed
from qualms.training.inputs import Inputs
from qualms.training.learner import Learner
from qualms.training.machine import Machine
from qualms.training.optimiser import set_rates
from qualms.training.options import Training
from qualms.training.team import Objective
from qualms.training.weights import ItemWeights

_ALONE = (
    "the last batch of an epoch has a single item, from which batch normalisation"
    " cannot learn; choose another batch, or leave out batches that are not full by"
    " partial=false"
)


class Board:
    """What the steps of an epoch read and write: position, rates, progress, losses."""

    def __init__(self, steps: int, device: torch.device, rate: torch.dtype) -> None:
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.progress = torch.zeros((), device=device)
        self.losses = torch.zeros(steps, device=device)
        self._rates = torch.zeros(steps, dtype=rate, device=device)
        self._shares = torch.zeros(steps, device=device)

    def begin(self, rates: Tensor, shares: Tensor) -> None:
        """Start an epoch: learning rate and progress of each of its steps."""
        self._rates.copy_(rates)
        self._shares.copy_(shares)
        self.cursor.zero_()

    def read(self) -> Tensor:
        """The learning rate of this step; sets `progress` to its value for the step."""
        self.progress.copy_(self._shares.index_select(0, self.cursor)[0])
        return self._rates.index_select(0, self.cursor)[0]

    def write(self, loss: Tensor) -> None:
        """Keep the loss of this step and go to the next."""
        self.losses.index_copy_(0, self.cursor, loss.float().view(1))
        self.cursor.add_(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper:
    """Everything one step needs."""

    learner: Learner
    objective: Objective
    board: Board
    feed: Feed
    inputs: Inputs
    machine: Machine
    options: Training
    micro: int
    """Items in one forward pass."""
    weights: ItemWeights | None = None
    """Weights of the items in the loss; None if all count 1."""

    def __call__(self, moment: Moment, count: int) -> None:
        """Move the weights once, with the next `count` items."""
        tuned, scaler = self.learner.tuned, self.learner.scaler
        set_rates(tuned.rates, self.board.read())
        tuned.optimiser.zero_grad(set_to_none=True)
        losses = []
        for first in range(0, count, self.micro):
            size = min(self.micro, count - first)
            last = first + size == count
            with nullcontext() if last else self.objective.withheld():
                loss = self._loss(moment, first, size)
                share = loss if size == count else loss * (size / count)
                scaler.scale(share).backward()  # type: ignore[no-untyped-call]
            losses.append(share.detach())
        self._clip()
        scaler.step(tuned.optimiser)
        scaler.update()
        self.board.write(sum(losses[1:], losses[0]))

    def _loss(self, moment: Moment, first: int, size: int) -> Tensor:
        raw = self.feed.take(self.board.cursor, first, size)
        batch = self.inputs.train(raw, self.learner.method.views)
        if self.weights is not None:
            weight = self.weights.take(self.board.cursor, first, size)
            batch = replace(batch, weight=weight)
        with self.machine.autocast(), self._stance(size):
            try:
                return self.objective.loss(batch, moment)
            except ValueError as error:
                if size == 1 and "more than 1 value per channel" in str(error):
                    raise TrainingError(_ALONE) from error
                raise

    def _stance(self, size: int) -> AbstractContextManager[None]:
        """Compiled code is for whole batches: another shape would cost minutes more."""
        if not self.options.compile or size < self.micro:
            return nullcontext()
        return torch.compiler.set_stance("default")  # type: ignore[no-any-return]

    def _clip(self) -> None:
        if not self.options.clip:
            return
        self.learner.scaler.unscale_(self.learner.tuned.optimiser)
        weights = self.learner.network.parameters()
        nn.utils.clip_grad_norm_(weights, self.options.clip)
