"""Non-isotropic von Mises-Fisher classes (Kirchhof et al., 2022, arXiv:2207.03784).

As in `elk`, an image is a von Mises-Fisher distribution over directions. The density of
a class has a concentration for every axis: z, stretched by these concentrations K and
normalised to length 1, has the density of the von Mises-Fisher distribution whose mean
and concentration are direction and length of K mean. A factor for the stretching,
det K / |K mean|, is that of the method's own code: one number for each class. The
expected likelihood is a mean over draws of the image, and its logarithms for all
classes are the logits of a cross-entropy.

A density that integrates to 1 needs the factor det K / |K z|^D of each direction z in D
dimensions, which is an option here. Neither this paper's code nor that of URL has it.
In many dimensions it outweighs the term of the direction.

In the released code of URL (Kirchhof et al., 2023, arXiv:2307.03810) concentrations of
classes are never trained, the normaliser is that of dimension 10, z itself is compared
with K mean, and the factor is det K / |K mean|^2. At the start, when all concentrations
are equal, the loss is the same in all of these.
"""

import math
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import check_temperature
from qualms.methods._headed import (
    Draw,
    Headed,
    Readout,
    features_of,
    headed,
    start_as_classifier,
)
from qualms.methods._method import Method
from qualms.methods._plain import classes_of, summarise, weighted_mean
from qualms.methods._uncertain import (
    UncertainEmbedding,
    check_uncertainty,
    embed_uncertain,
    start_uncertainty,
    with_uncertainty,
)
from qualms.methods._vmf import draw_vmf, log_normaliser
from qualms.spec import Task

Stretching = Literal["class", "direction"]

_LEAST = 0.1
"""Least concentration."""


def nivmf(
    *,
    inverse_temperature: float = 10.896,
    initial_uncertainty: float | None = 0.001,
    draws: int = 16,
    width: int = 1024,
    stretching: Stretching = "class",
) -> Method:
    """Learn embeddings by classification, and `uncertainty/head` beside the entropy.

    Classes are predicted by their densities at the direction of the embedding.

    Args:
        inverse_temperature: concentration of every axis of every class at the start.
            The default is URL's best for ResNet-50; that for ViT-Medium is 31.353, the
            range of its search 8 to 64.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7.
        draws: draws of each embedding in a step.
        width: width of the three hidden layers of the uncertainty head.
        stretching: "class" for the factor det K / |K mean| of the method's own code,
            "direction" for det K / |K z|^D, with which densities integrate to 1.
    """
    if stretching not in get_args(Stretching):
        raise ValueError(
            f"stretching must be 'class' or 'direction', got {stretching!r}"
        )
    check_temperature(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width, draws=draws)
    return Method(
        build=partial(_build, inverse_temperature, width, stretching),
        loss=partial(_loss, draws),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        needs=("vectors",),
    )


class ClassDensities(nn.Module):
    """A non-isotropic von Mises-Fisher density for each class."""

    def __init__(
        self,
        features: int,
        classes: int,
        concentration: float,
        stretching: Stretching = "class",
    ) -> None:
        super().__init__()
        self.stretching = stretching
        self.mean = nn.Linear(features, classes, bias=False)
        """Weights whose directions are the means; their lengths do not matter."""
        stretch = torch.full((classes, features), concentration)
        self.concentration = nn.Parameter(stretch)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return log densities (..., C) of directions of `vectors` (..., D)."""
        directions = functional.normalize(vectors, dim=-1)
        mean = functional.normalize(self.mean.weight, dim=1)
        stretch, dimension = self.concentration.clamp(min=_LEAST), mean.shape[1]
        squares = stretch.square()
        centre = squares.mean(1)
        # |K z|^2 over its mean on the sphere, minus 1. The dimension multiplies its
        # logarithm, and with it any rounding, so the number must be a small one.
        uneven = squares / centre[:, None] - 1
        excess = (directions.square() @ uneven.T).double()
        aligned = (directions @ (squares * mean).T).double()
        aligned = aligned / (centre.double() * (1 + excess)).sqrt()
        length = torch.linalg.vector_norm((stretch * mean).double(), dim=1)
        normaliser = log_normaliser(length, dimension)
        volume = stretch.double().log().sum(1)
        if self.stretching == "class":
            of_class: Tensor = normaliser + volume - length.log() + aligned
            return of_class
        volume = volume - dimension / 2 * centre.double().log()
        return (normaliser + volume) + aligned - dimension / 2 * excess.log1p()


def _build(
    inverse_temperature: float,
    width: int,
    stretching: Stretching,
    backbone: nn.Module,
    task: Task,
) -> Headed:
    features, classes = features_of(backbone), classes_of(task, "nivmf")
    last = ClassDensities(features, classes, inverse_temperature, stretching)
    start_as_classifier(last.mean, backbone)
    network = Headed(backbone, Readout(nn.Identity(), last), task)
    return with_uncertainty(network, width)


def _loss(draws: int, network: nn.Module, batch: Batch, _moment: Moment) -> Tensor:
    logits = _logits(draws, network, embed_uncertain(network, batch.x))
    loss = functional.cross_entropy(logits, batch.target.long(), reduction="none")
    return weighted_mean(loss, batch).float()


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    embeddings = embed_uncertain(network, x)
    with torch.autocast(x.device.type, enabled=False):
        densities = _classes(network)(embeddings.embedding)
    draw = Draw(densities, embeddings.embedding)
    return {**summarise([draw], task), **embeddings.arrays}


def _logits(draws: int, network: nn.Module, embeddings: UncertainEmbedding) -> Tensor:
    with torch.autocast(embeddings.embedding.device.type, enabled=False):
        vectors = draw_vmf(embeddings.direction, embeddings.concentration, draws)
        densities: Tensor = _classes(network)(vectors)
        return densities.logsumexp(0) - math.log(draws)


def _classes(network: nn.Module) -> ClassDensities:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, ClassDensities)
    return head.last
