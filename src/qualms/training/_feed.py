"""Items of an epoch for its steps, and their weights in the loss.

A step, recorded or not, reads its items and weights by its position in the epoch. The
order of an epoch says which items share a batch, so the weights that balance classes
are known when the epoch begins. A batch that is cut for lack of memory, or divided
among devices, keeps the weights of the complete batch.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from qualms.datasets import Dataset, Split
from qualms.shelf import tasks_with
from qualms.training._error import TrainingError
from qualms.training._raters import RaterDraw
from qualms.training._splits import LoadedSplit, RawItems, empty_like
from qualms.training.machine import Machine
from qualms.training.options import Steps, Training


class Feed(Protocol):
    """Gives a training step its items."""

    def begin(self, order: Tensor) -> None:
        """Start an epoch over the rows `order`."""

    def advance(self) -> None:
        """Prepare the next step; this is not a part of what is recorded."""

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        """Return `count` items of step `cursor` from its item `first` on."""


def make_feed(items: LoadedSplit, *, rows: int, stride: int) -> Feed:
    """Return a feed of `stride` items per step out of `rows` per epoch."""
    if items.resident is None:
        return _StreamedFeed(items, stride)
    return _ResidentFeed(items.resident, items.draw, rows, stride)


class _ResidentFeed:
    """All items and the order of an epoch are on the device."""

    def __init__(
        self, raw: RawItems, draw: RaterDraw | None, rows: int, stride: int
    ) -> None:
        device = raw.target.device
        self._raw = raw
        self._draw = draw
        self._stride = stride
        self._order = torch.empty(rows, dtype=torch.int64, device=device)
        self._offset = torch.arange(stride, device=device)

    def begin(self, order: Tensor) -> None:
        self._order.copy_(order)

    def advance(self) -> None:
        pass

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        index = cursor * self._stride + self._offset[first : first + count]
        rows = self._order.index_select(0, index)
        image = self._raw.image.index_select(0, rows)
        return RawItems(image, _drawn(self._raw.target, rows, self._draw))


class _StreamedFeed:
    """Batches are read ahead and copied to a buffer, which every step reads."""

    def __init__(self, items: LoadedSplit, stride: int) -> None:
        self._items = items
        self._stride = stride
        (first,) = items.read_for_steps([torch.arange(1)])
        self._buffer = RawItems(
            *(empty_like(part, stride, items.device) for part in first)
        )
        self._batches: Iterator[RawItems] = iter(())

    def begin(self, order: Tensor) -> None:
        self._batches = self._items.read_for_steps(torch.split(order, self._stride))

    def advance(self) -> None:
        for buffer, part in zip(self._buffer, next(self._batches), strict=True):
            buffer[: len(part)].copy_(part, non_blocking=True)

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:  # noqa: ARG002
        image, target = (part[first : first + count] for part in self._buffer)
        if self._items.draw is None:
            return RawItems(image, target)
        rows = torch.arange(count, device=target.device)
        return RawItems(image, _drawn(target, rows, self._items.draw))


def _drawn(target: Tensor, rows: Tensor, draw: RaterDraw | None) -> Tensor:
    """Return the targets of `rows`; of label maps, those of a rater drawn anew."""
    if draw is None:
        return target.index_select(0, rows)
    return draw.take(target, rows, draw.fresh(len(rows)))


class ItemWeights:
    """Weights of the items of an epoch, on the device, in the order of its steps."""

    def __init__(
        self, target: Tensor, classes: int, steps: Steps, machine: Machine
    ) -> None:
        self._target = target
        self._classes = classes
        self._batch = steps.batch
        self._team = machine.team
        stride = steps.items_per_step // machine.team.size
        items = len(target) * steps.epoch_passes
        self._weight = torch.ones(items, device=machine.device)
        self._offset = torch.arange(stride, device=machine.device)

    def begin(self, order: Tensor) -> None:
        """Weigh the items of an epoch over the rows `order`."""
        weight = balancing(self._target[order], self._classes, self._batch)
        part = self._team.part(weight, self._batch)
        self._weight[: len(part)].copy_(part)

    def take(self, cursor: Tensor, first: int, count: int) -> Tensor:
        """Return `count` weights of step `cursor` from its item `first` on."""
        index = cursor * len(self._offset) + self._offset[first : first + count]
        return self._weight.index_select(0, index)


def make_weights(
    options: Training, dataset: Dataset, split: Split, machine: Machine
) -> ItemWeights | None:
    """Return the weights of the training items `split`; None if all count 1."""
    task, balance = dataset.task, options.objective.class_weights
    if balance == "none":
        return None
    if task.name not in tasks_with("items probabilities") or task.classes is None:
        raise TrainingError(
            f"class_weights={balance!r} is for classification, and"
            f" {dataset.name!r} is {task.name}; leave it out"
        )
    target = torch.from_numpy(np.array(split.target, np.int64))
    return ItemWeights(target, task.classes, options.steps, machine)


def balancing(target: Tensor, classes: int, batch: int) -> Tensor:
    """Return weights 1 / (C p_k) of the classes `target`, batch by batch, (N,) each.

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
