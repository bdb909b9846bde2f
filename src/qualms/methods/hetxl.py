"""HET-XL (Collier et al., 2023, arXiv:2301.12860): noise in the space of embeddings.

The embedding of an item is Gaussian around the features, with a covariance
V V' + diag(d) that a linear layer predicts from them. The class probabilities are a
mean over draws, at a learned temperature. As in URL (Kirchhof et al., 2023,
arXiv:2307.03810) V has one column. Here every dimension has its own noise, and the
determinant is that of the covariance; in URL's released code all dimensions share one
number, and the product of the diagonal stands for the determinant.
"""

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

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


def hetxl(
    *,
    rank: int = 1,
    draws: int = 10,
    scale: float = 0.011312,
    smoothing: float = 0.0,
) -> Method:
    """Predict classes or embeddings, with `uncertainty/log_determinant` and entropy.

    The noise belongs to the items rather than to the network, so classes are predicted
    as one draw, their mean.

    Args:
        rank: number of columns of V.
        draws: draws of the noise of each item. URL has 10 for ResNet-50 and 1000 for
            ViT-Medium.
        scale: standard deviation of the initial weights of the layer that predicts the
            covariance. The default is URL's best for ResNet-50; that for ViT-Medium is
            0.011587.
        smoothing: share of each label that is spread over all classes in the loss.
    """
    if rank < 1 or draws < 1 or scale <= 0:
        raise ValueError(
            "rank and draws must be at least 1 and scale positive, got "
            f"{rank}, {draws} and {scale}"
        )
    check_smoothing(smoothing)
    return Method(
        build=partial(_build, rank, draws, scale),
        loss=partial(smoothed_loss, smoothing),
        predict=_predict,
        needs=("items classes",),
        header={"draws": "labels"},
    )


class LowRankCovariance(NamedTuple):
    """Covariance V V' + diag(d) of each item."""

    factor: Tensor
    """V, (B, D, rank)."""
    diagonal: Tensor
    """d, (B, D), positive."""

    def draw(self, draws: int) -> Tensor:
        """Draw noise (draws, B, D) with this covariance."""
        factor, diagonal = self.factor, self.diagonal
        shared = factor.new_empty(draws, len(factor), factor.shape[2]).normal_()
        separate = factor.new_empty(draws, *diagonal.shape).normal_()
        return torch.einsum("bdr,sbr->sbd", factor, shared) + diagonal.sqrt() * separate

    @property
    def log_determinant(self) -> Tensor:
        """Logarithm (B,) in float64, by the matrix determinant lemma."""
        factor, diagonal = self.factor.double(), self.diagonal.double()
        inner = factor.mT @ (factor / diagonal[..., None])
        identity = torch.eye(inner.shape[1], dtype=inner.dtype, device=inner.device)
        lifted: Tensor = torch.linalg.slogdet(identity + inner).logabsdet
        return diagonal.log().sum(1) + lifted


class NoisyClassifier(nn.Module):
    """A linear classifier of noisy embeddings."""

    def __init__(self, linear: nn.Linear, rank: int, draws: int, scale: float) -> None:
        super().__init__()
        self.rank, self.draws = rank, draws
        width = linear.in_features
        self.linear = linear
        self.covariance = nn.Linear(width, width * (rank + 1), bias=False)
        nn.init.normal_(self.covariance.weight, std=scale)
        self.temperature = nn.Parameter(torch.ones(()))
        """Temperature before the softplus."""

    def noise(self, embedding: Tensor) -> LowRankCovariance:
        """Return the covariance of the noise of embeddings (B, D)."""
        width = embedding.shape[1]
        parts: Tensor = self.covariance(embedding)
        factor = parts[:, : width * self.rank].view(-1, width, self.rank)
        diagonal = functional.softplus(parts[:, width * self.rank :])
        tiny = torch.finfo(diagonal.dtype).tiny
        return LowRankCovariance(factor, diagonal.clamp(min=tiny))

    def forward(self, embedding: Tensor) -> Tensor:
        """Return the log (B, C) of the mean probabilities of embeddings (B, D)."""
        noisy = embedding + self.noise(embedding).draw(self.draws)
        logits = self.linear(noisy) / functional.softplus(self.temperature)
        logs: Tensor = logits.log_softmax(2).logsumexp(0)
        return logs - math.log(self.draws)


def _build(
    rank: int, draws: int, scale: float, backbone: nn.Module, task: Task
) -> Headed:
    linear = nn.Linear(features_of(backbone), classes_of(task, "hetxl"))
    last = NoisyClassifier(linear, rank, draws, scale)
    return Headed(backbone, Readout(nn.Identity(), last), task)


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    network = headed(network)
    embedding, head = last_inputs(network, x), network.head
    assert isinstance(head, Readout)
    assert isinstance(head.last, NoisyClassifier)
    with torch.autocast(embedding.device.type, enabled=False):
        outputs = head.last(embedding)
        log_determinant = head.last.noise(embedding).log_determinant
    uncertainty = {"uncertainty/log_determinant": log_determinant}
    return {**summarise([Draw(outputs, embedding)], task), **uncertainty}
