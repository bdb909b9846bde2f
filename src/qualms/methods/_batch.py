"""What a training step tells a method: a batch, and where training stands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one step sees, on the device, augmented and normalised."""

    x: Tensor
    """(views * B, channels, *space) inputs; view v of item i is row v * B + i."""
    target: Tensor
    """(B,) classes or values, or (B, *space) label maps."""
    weight: Tensor | None = None
    """(B,) what each item counts in the loss; None for one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where training stands; plain numbers hold for a whole epoch."""

    epoch: int
    epochs: int
    items: int
    """Size of the training split: a KL term is divided by it, and where items have
    many terms of the likelihood by their number too."""
    batch: int
    """Items of a whole batch, also where a pass or a device sees a part of it."""
    progress: Tensor
    """0-d, share of all steps done, this one included: 1 in the last. A tensor, so
    that a captured step can follow it."""


Batches = Callable[[], Iterator[Batch]]
"""One pass over the training split in order, without augmentation."""
