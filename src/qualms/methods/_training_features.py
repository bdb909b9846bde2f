"""Features of training items, that methods compare other items with after training."""

from typing import NamedTuple

import torch
from torch import Tensor

from qualms.methods._batch import Batch, Batches
from qualms.methods._headed import Headed, last_inputs


class TrainingFeatures(NamedTuple):
    """Features of training items with a known class."""

    features: Tensor
    """(N, D) inputs of the last layer."""
    target: Tensor
    """(N,) classes."""


def training_features(
    network: Headed, batches: Batches, items: int, *, method: str
) -> TrainingFeatures:
    """Return the features of at most `items` training items, a random choice of more.

    Args:
        network: The network, after training.
        batches: Gives the training items.
        items: Most items.
        method: Name of the method that needs them, for messages.
    """
    rows: list[_FeatureRows] = []
    for batch in batches():
        rows.append(_labelled(network, batch))
        if sum(len(part.key) for part in rows) >= 2 * items:
            rows = [_first(rows, items)]
    features, target, key = _first(rows, items)
    if not len(key):
        raise ValueError(
            f"{method} needs training items with a known class, and there are none;"
            " label some, or take the method 'map'"
        )
    if not bool(features.isfinite().all()):
        raise ValueError(
            "features must be finite to fit scores to them; training has diverged, "
            "lower the learning rate"
        )
    return TrainingFeatures(features, target)


class _FeatureRows(NamedTuple):
    """Training items, and the random numbers that choose among them."""

    features: Tensor
    """(N, D)."""
    target: Tensor
    """(N,)."""
    key: Tensor
    """(N,)."""


def _first(parts: list[_FeatureRows], items: int) -> _FeatureRows:
    """Return the `items` rows with the smallest keys, in their order."""
    rows = _FeatureRows(*map(torch.cat, zip(*parts, strict=True)))
    if len(rows.key) <= items:
        return rows
    chosen = rows.key.argsort()[:items].sort().values
    return _FeatureRows(*(values[chosen] for values in rows))


def _labelled(network: Headed, batch: Batch) -> _FeatureRows:
    target = batch.target.long()
    ignore = -1 if network.task.ignore is None else network.task.ignore
    labelled = (target != ignore) & (target >= 0)
    key = torch.rand(len(target), device=target.device)
    features = last_inputs(network, batch.x)
    return _FeatureRows(features[labelled], target[labelled], key[labelled])
