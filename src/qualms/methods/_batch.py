"""Records that training passes to a method: batches and the progress of training."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Loss = Literal["likelihood", "dice_likelihood"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Items of one step, on the device, augmented and normalised."""

    x: Tensor
    """(views * B, channels, *space) inputs; view v of item i is row v * B + i."""
    target: Tensor
    """(B,) classes or values, or (B, *space) label maps."""
    weight: Tensor | None = None
    """(B,) factor of each item in the loss; None for 1."""
    loss: Loss = "likelihood"
    """Loss of label maps: the likelihood alone, or Dice as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Progress of training; the plain numbers are constant within an epoch."""

    epoch: int
    epochs: int
    items: int
    """Size of the training split, by which a KL term is divided. Where an item has
    several terms of the likelihood, the KL term is divided by their number too."""
    batch: int
    """Items of a full batch, also where one pass or one device sees a part of it."""
    progress: Tensor
    """Share of all steps that are done, this one included: 1 in the last step. It is a
    0-d tensor, so that a captured step can follow it."""


Batches = Callable[[], Iterator[Batch]]
"""Function that starts a pass over a split, in order and without augmentation: over the
training split, except in `Method.calibrate`."""
