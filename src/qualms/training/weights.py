"""The weights of items in the loss, where classes are balanced.

The order of an epoch says which items share a batch, so all weights of an epoch are
known when it begins. A step, recorded or not, reads its own from a tensor. A batch that
is cut for lack of memory, or divided among devices, keeps the weights of the whole.
"""

import numpy as np
import torch
from torch import Tensor

from qualms.datasets import Dataset, Split
from qualms.training._error import TrainingError
from qualms.training.machine import Machine
from qualms.training.options import Training


class ItemWeights:
    """Weights of the items of an epoch, on the device, in the order of its steps."""

    def __init__(
        self, target: Tensor, classes: int, options: Training, machine: Machine
    ) -> None:
        self._target = target
        self._classes = classes
        self._batch = options.batch
        self._team = machine.team
        own = options.batch * options.accumulate // machine.team.size
        seen = len(target) * options.epoch_passes
        self._weight = torch.ones(seen, device=machine.device)
        self._offset = torch.arange(own, device=machine.device)

    def begin(self, order: Tensor) -> None:
        """Weigh the items of an epoch over the rows `order`."""
        weight = balancing(self._target[order], self._classes, self._batch)
        own = self._team.part(weight, self._batch)
        self._weight[: len(own)].copy_(own)

    def take(self, cursor: Tensor, first: int, count: int) -> Tensor:
        """(count,) weights of step `cursor` from its item `first` on."""
        place = cursor * len(self._offset) + self._offset[first : first + count]
        return self._weight.index_select(0, place)


def make_weights(
    options: Training, dataset: Dataset, split: Split, machine: Machine
) -> ItemWeights | None:
    """Weights of the items of `split`, which is trained on; None if all count 1."""
    task = dataset.task
    if options.class_weights == "none":
        return None
    if task.name != "classification" or task.classes is None:
        raise TrainingError(
            f"class_weights={options.class_weights!r} is for classification, and"
            f" {dataset.name!r} is {task.name}; leave it out"
        )
    target = torch.from_numpy(np.array(split.target, np.int64))
    return ItemWeights(target, task.classes, options, machine)


def balancing(target: Tensor, classes: int, batch: int) -> Tensor:
    """(N,) weights 1 / (C p_k) of the classes `target` (N,), `batch` after `batch`.

    p_k is the share of class k in its batch, so all classes that occur in a batch count
    the same (Band et al., 2021).

    >>> balancing(torch.tensor([0, 0, 0, 1]), 2, 4)
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    number = torch.arange(len(target)) // batch
    cell = number * classes + target
    batches = -(-len(target) // batch)
    alike = torch.bincount(cell, minlength=batches * classes)[cell]
    together = torch.bincount(number, minlength=batches)[number]
    return together / (classes * alike)
