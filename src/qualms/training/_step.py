"""One training step, on the device from end to end, eager or as a CUDA graph.

Nothing in a step waits for the device or hands it a number: the position in the epoch,
the order of items, the learning rates and the losses all lie in tensors. So a step can
be recorded once and replayed, with the same result. A small network at batch 32 spends
most of an eager step on launching kernels.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from qualms.methods import Moment
from qualms.training._error import TrainingError
from qualms.training._feed import Feed, ItemWeights
from qualms.training._inputs import Inputs
from qualms.training._learner import Learner
from qualms.training._optimiser import set_rates
from qualms.training._team import TeamLoss
from qualms.training.machine import Machine
from qualms.training.options import Training

_SINGLE_ITEM = (
    "the last batch of an epoch has a single item, from which batch normalisation"
    " cannot learn; choose another batch, or leave out batches that are not full by"
    " partial=false"
)
_EAGER = 3
"""Eager steps before recording, in which libraries choose algorithms and allocate."""


class StepTensors:
    """Position, learning rates, progress and losses of the steps of an epoch."""

    def __init__(self, steps: int, device: torch.device, rate: torch.dtype) -> None:
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.progress = torch.zeros((), device=device)
        self.losses = torch.zeros(steps, device=device)
        self._rates = torch.zeros(steps, dtype=rate, device=device)
        self._progress = torch.zeros(steps, device=device)

    def begin(self, rates: Tensor, progress: Tensor) -> None:
        """Start an epoch: learning rate and progress of each of its steps."""
        self._rates.copy_(rates)
        self._progress.copy_(progress)
        self.cursor.zero_()

    def read(self) -> Tensor:
        """Return the learning rate of this step, and set `progress` for it."""
        self.progress.copy_(self._progress.index_select(0, self.cursor)[0])
        return self._rates.index_select(0, self.cursor)[0]

    def write(self, loss: Tensor) -> None:
        """Keep the loss of this step and go to the next."""
        self.losses.index_copy_(0, self.cursor, loss.float().view(1))
        self.cursor.add_(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper:
    """Takes training steps."""

    learner: Learner
    loss: TeamLoss
    tensors: StepTensors
    feed: Feed
    inputs: Inputs
    """Functions that make batches of the feed's items: images or cached features."""
    machine: Machine
    options: Training
    forward_items: int
    """Items in one forward pass; gradients of several passes are added up."""
    weights: ItemWeights | None = None
    """Weights of the items in the loss; None if all count 1."""

    def __call__(self, moment: Moment, count: int) -> None:
        """Move the weights once, with the next `count` items."""
        tuned, scaler = self.learner.tuned, self.learner.scaler
        set_rates(tuned.rates, self.tensors.read())
        tuned.optimiser.zero_grad(set_to_none=True)
        losses = []
        for first in range(0, count, self.forward_items):
            size = min(self.forward_items, count - first)
            last = first + size == count
            with nullcontext() if last else self.loss.withheld():
                loss = self._loss(moment, first, size)
                share = loss if size == count else loss * (size / count)
                scaler.scale(share).backward()  # type: ignore[no-untyped-call]
            losses.append(share.detach())
        self._clip()
        scaler.step(tuned.optimiser)
        scaler.update()
        self.tensors.write(sum(losses[1:], losses[0]))

    def _loss(self, moment: Moment, first: int, size: int) -> Tensor:
        raw = self.feed.take(self.tensors.cursor, first, size)
        batch = self.inputs.train(raw, self.learner.method.views)
        if self.weights is not None:
            weight = self.weights.take(self.tensors.cursor, first, size)
            batch = replace(batch, weight=weight)
        with self.machine.autocast(), self._compiled(size):
            try:
                return self.loss.loss(batch, moment)
            except ValueError as error:
                if size == 1 and "more than 1 value per channel" in str(error):
                    raise TrainingError(_SINGLE_ITEM) from error
                raise

    def _compiled(self, size: int) -> AbstractContextManager[None]:
        """Use compiled code for full batches: another shape would cost minutes more."""
        if not self.options.execution.compile or size < self.forward_items:
            return nullcontext()
        return torch.compiler.set_stance("default")  # type: ignore[no-any-return]

    def _clip(self) -> None:
        norm = self.options.optimisation.clip
        if not norm:
            return
        self.learner.scaler.unscale_(self.learner.tuned.optimiser)
        nn.utils.clip_grad_norm_(self.learner.network.parameters(), norm)


class Recorder:
    """Takes steps: eagerly at first, and by replaying a CUDA graph once recorded.

    Every form of a step (its phase and number of items) is taken eagerly a few times.
    Then it is recorded, and replayed from then on. `step` takes a step with a number of
    items; plain numbers of its moment are recorded.
    """

    def __init__(
        self,
        step: Callable[[Moment, int], None],
        *,
        record: bool,
        message: Callable[[str], None],
    ) -> None:
        self._step = step
        self._record = record
        self._message = message
        self._taken: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}

    def __call__(self, phase: Hashable, moment: Moment, count: int) -> None:
        """Take one step of `count` items."""
        form = (phase, count)
        if form in self._graphs:
            self._graphs[form].replay()
            return
        self._step(moment, count)
        self._taken[form] += 1
        if self._record and self._taken[form] == _EAGER:
            self._try_to_record(form, moment, count)

    def _try_to_record(self, form: Hashable, moment: Moment, count: int) -> None:
        try:
            self._graphs[form] = self._recorded(moment, count)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._record = False
            why = str(error).partition("\n")[0]
            self._message(
                f"steps cannot be recorded as a CUDA graph and stay eager: {why}"
            )

    def _recorded(self, moment: Moment, count: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # Steps of one run never overlap and leave nothing in this memory, so all of
        # its graphs can share it.
        first = next(iter(self._graphs.values()), None)
        with torch.cuda.graph(
            graph,
            pool=None if first is None else first.pool(),
            stream=torch.cuda.current_stream(),
            capture_error_mode="thread_local",  # a checkpoint may be on its way
        ):
            self._step(moment, count)
        return graph
