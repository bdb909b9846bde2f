"""An uncertainty that a small network predicts from the embedding.

Kirchhof et al. (2023, arXiv:2307.03810) put that network beside the last layer: three
hidden layers and one positive output u for each item. For distributions over the sphere
1 / u is the concentration.
"""

from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batches, Moment
from qualms.methods._headed import (
    Headed,
    Readout,
    embedding_readout,
    features_of,
    headed,
    last_inputs,
)
from qualms.spec import Task

_HIDDEN_LAYERS = 3
_LEAST = 1e-6
_FIRST_BATCHES = 10


class UncertaintyHead(nn.Module):
    """Network from embeddings (B, D) to positive numbers (B,)."""

    scale: Tensor
    begun: Tensor

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before in (features, *(width,) * (_HIDDEN_LAYERS - 1)):
            layers += [nn.Linear(before, width), nn.LeakyReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("begun", torch.zeros((), dtype=torch.bool))

    def forward(self, embedding: Tensor) -> Tensor:
        """Return the uncertainty (B,) of embeddings (B, D), in float64."""
        # In float32 all very certain items would have the same, least uncertainty.
        outputs = self.layers(embedding)[:, 0].double()
        return (functional.softplus(outputs) + _LEAST) * self.scale

    def begin(self, mean: Tensor, target: float) -> None:
        """Scale all outputs so that their mean goes from `mean` to `target`."""
        self.scale.mul_(target / mean)
        self.begun.fill_(True)


class UncertainEmbedding(NamedTuple):
    """Embeddings of a batch with their uncertainty."""

    embedding: Tensor
    """(B, D)."""
    uncertainty: Tensor
    """(B,), positive, in float64."""

    @property
    def direction(self) -> Tensor:
        """Embeddings of length 1, (B, D)."""
        return functional.normalize(self.embedding, dim=1)

    @property
    def concentration(self) -> Tensor:
        """Concentration (B,) of the von Mises-Fisher distribution, in float64."""
        return 1 / self.uncertainty.double()

    @property
    def arrays(self) -> dict[str, Tensor]:
        """Arrays, named as in the predictions schema."""
        return {"embedding": self.embedding, "uncertainty/head": self.uncertainty}


def check_uncertainty(*, initial: float | None, width: int, draws: int = 1) -> None:
    """Raise unless all options are positive; `initial` may be None."""
    if initial is not None and initial <= 0:
        raise ValueError(
            f"initial_uncertainty must be positive, or None, got {initial}"
        )
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")


def with_uncertainty(network: Headed, width: int) -> Headed:
    """Add an uncertainty head beside the last layer of `network`."""
    head = network.head
    assert isinstance(head, Readout)
    head.beside = UncertaintyHead(features_of(network.backbone), width)
    return network


def uncertainty_only(backbone: nn.Module, task: Task, width: int) -> Headed:
    """Return `backbone` with an uncertainty head and no classifier."""
    network = Headed(backbone, embedding_readout(backbone, None), task)
    return with_uncertainty(network, width)


def embed_uncertain(network: nn.Module, x: Tensor) -> UncertainEmbedding:
    """Return embeddings and uncertainties of one pass."""
    network = headed(network)
    embedding = last_inputs(network, x)
    with torch.autocast(embedding.device.type, enabled=False):
        return UncertainEmbedding(embedding, uncertainty_head(network)(embedding))


def uncertainty_head(network: Headed) -> UncertaintyHead:
    """Return the part of the head that predicts the uncertainty."""
    head = network.head
    assert isinstance(head, Readout)
    assert isinstance(head.beside, UncertaintyHead)
    return head.beside


def start_uncertainty(
    initial: float | None, network: nn.Module, _moment: Moment, batches: Batches
) -> None:
    """Scale the uncertainty before the first step so that its mean is `initial`.

    The scale is a buffer, which a checkpoint holds: a run that is resumed, or that
    continues another one, keeps it.
    """
    head = uncertainty_head(headed(network))
    if initial is None or bool(head.begun):
        return
    first = islice(batches(), _FIRST_BATCHES)
    values = [embed_uncertain(network, batch.x).uncertainty for batch in first]
    head.begin(torch.cat(values).mean(), initial)
