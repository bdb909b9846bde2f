"""An ensemble of heads on one backbone (Lakshminarayanan et al., 2017).

As in URL (Kirchhof et al., 2023, arXiv:2307.03810), whose ensemble has ten linear
classifiers that read the same embedding. The mean of their probabilities is trained,
not each head by itself; heads differ as they start from different weights. Ensembles of
complete networks are pooled runs of `map`.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._headed import (
    Draw,
    Headed,
    Readout,
    features_of,
    headed,
    last_inputs,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    check_smoothing,
    classes_of,
    smoothed_loss,
    summarise,
)
from qualms.spec import Task


def head_ensemble(*, heads: int = 10, smoothing: float = 0.0) -> Method:
    """Predict one draw per head; embeddings get the entropy and its two parts.

    Args:
        heads: number of linear classifiers on the embedding.
        smoothing: share of each label that is spread over all classes in the loss.
    """
    if heads < 1:
        raise ValueError(f"heads must be at least 1, got {heads}")
    check_smoothing(smoothing)
    return Method(
        build=partial(_build, heads),
        loss=partial(smoothed_loss, smoothing),
        predict=_predict,
        needs=("items classes",),
        header={"draws": "models"},
    )


class ManyHeads(nn.Module):
    """Linear classifiers side by side, and the mean of their probabilities."""

    def __init__(self, features: int, classes: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.linear = nn.Linear(features, heads * classes)

    def each(self, embedding: Tensor) -> Tensor:
        """Return the logits (heads, B, C) of embeddings (B, D)."""
        logits: Tensor = self.linear(embedding)
        return logits.view(len(logits), self.heads, -1).movedim(1, 0)

    def forward(self, embedding: Tensor) -> Tensor:
        """Return the logarithm (B, C) of the mean probabilities."""
        logs = self.each(embedding).log_softmax(2)
        return logs.logsumexp(0) - math.log(self.heads)


def _build(heads: int, backbone: nn.Module, task: Task) -> Headed:
    classes = classes_of(task, "head_ensemble")
    last = ManyHeads(features_of(backbone), classes, heads)
    return Headed(backbone, Readout(nn.Identity(), last), task)


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    network = headed(network)
    embedding, head = last_inputs(network, x), network.head
    assert isinstance(head, Readout)
    assert isinstance(head.last, ManyHeads)
    with torch.autocast(embedding.device.type, enabled=False):
        outputs = head.last.each(embedding)
    return summarise((Draw(logits, embedding) for logits in outputs), task)
