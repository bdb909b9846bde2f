"""InfoNCE between two views of every item (Oord et al., 2018, arXiv:1807.03748).

As Kirchhof et al. (2023, arXiv:2307.03810) train it: the other view of an item is its
positive, both views of all other items are its negatives, and only these stand in the
denominator. Each view is an anchor once, and the loss is the mean over anchors;
equation 1 of the paper adds up both directions, but counts the positive once.
"""

import torch
from torch import Tensor

from qualms.methods._batch import Batch

VIEWS = 2


def check_temperature(inverse_temperature: float) -> None:
    """Raise unless the temperature is positive."""
    if inverse_temperature <= 0:
        raise ValueError(
            f"inverse_temperature must be positive, got {inverse_temperature}"
        )


def both_views(rows: Tensor, batch: Batch) -> Tensor:
    """Return `rows` of two views, the first view of all items first.

    Validation has one view of each item, which then serves as both.
    """
    return rows if len(rows) > len(batch.target) else torch.cat([rows, rows])


def contrastive_losses(vectors: Tensor, inverse_temperature: float) -> Tensor:
    """Return the losses (..., B) of items with unit vectors (..., 2 B, D)."""
    return over_views(anchor_losses(vectors, inverse_temperature))


def anchor_losses(vectors: Tensor, inverse_temperature: float) -> Tensor:
    """Return the losses (..., 2 B) of both views of items, from unit vectors."""
    count = vectors.shape[-2] // VIEWS
    positive = vectors.roll(count, -2)
    loss = -inverse_temperature * (vectors * positive).sum(-1)
    if count > 1:  # a single item has no negatives
        similar = inverse_temperature * vectors @ vectors.mT
        item = torch.arange(count, device=vectors.device).repeat(VIEWS)
        same = item[:, None] == item
        loss = loss + similar.masked_fill(same, -torch.inf).logsumexp(-1)
    return loss


def over_views(losses: Tensor) -> Tensor:
    """Return the mean (..., B) over the two views of losses (..., 2 B)."""
    return losses.view(*losses.shape[:-1], VIEWS, -1).mean(-2)
