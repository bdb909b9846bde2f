"""The expected likelihood kernel (Kirchhof et al., 2022, arXiv:2207.03784).

Images and classes are von Mises-Fisher distributions over the directions of embeddings.
Their similarity is the logarithm of the integral of the product of their densities,
which has a closed form; the similarities of the classes are the logits of a
cross-entropy. As in URL (Kirchhof et al., 2023, arXiv:2307.03810) direction and length
of the last layer's weights define the classes; here the normaliser is exact, where
its released code has a regression.
"""

from functools import partial

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
from qualms.methods._vmf import log_normaliser
from qualms.spec import Task

_LEAST = 1e-9
"""Lower bound of a squared concentration, which two opposite distributions reach."""


def elk(
    *,
    inverse_temperature: float = 27.685,
    initial_uncertainty: float | None = None,
    width: int = 1024,
) -> Method:
    """Learn embeddings by classification, and `uncertainty/head` beside the entropy.

    Args:
        inverse_temperature: factor of the concentrations of classes, and the least one.
            The default is URL's best for ResNet-50; that for ViT-Medium is
            56.774, the range of its search 8 to 64.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7.
        width: width of the three hidden layers of the uncertainty head.
    """
    check_temperature(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature),
        predict=partial(_predict, inverse_temperature),
        epoch=partial(start_uncertainty, initial_uncertainty),
        needs=("vectors",),
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    last = nn.Linear(features_of(backbone), classes_of(task, "elk"), bias=False)
    start_as_classifier(last, backbone)
    network = Headed(backbone, Readout(nn.Identity(), last), task)
    return with_uncertainty(network, width)


def _loss(
    inverse_temperature: float, network: nn.Module, batch: Batch, _moment: Moment
) -> Tensor:
    embeddings = embed_uncertain(network, batch.x)
    logits = _logits(inverse_temperature, network, embeddings)
    loss = functional.cross_entropy(logits, batch.target.long(), reduction="none")
    return weighted_mean(loss, batch).float()


def _predict(
    inverse_temperature: float, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    embeddings = embed_uncertain(network, x)
    logits = _logits(inverse_temperature, network, embeddings)
    draw = Draw(logits, embeddings.embedding)
    return {**summarise([draw], task), **embeddings.arrays}


def _logits(
    inverse_temperature: float, network: nn.Module, embeddings: UncertainEmbedding
) -> Tensor:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, nn.Linear)
    with torch.autocast(embeddings.embedding.device.type, enabled=False):
        return expected_likelihood(embeddings, head.last.weight, inverse_temperature)


def expected_likelihood(
    embeddings: UncertainEmbedding, weight: Tensor, inverse_temperature: float
) -> Tensor:
    """Return the log of the expected likelihood (B, C) of images and classes.

    Args:
        embeddings: embeddings and uncertainties of the images.
        weight: (C, D); its directions are those of the classes, and lengths above 1
            multiply their concentrations.
        inverse_temperature: the least concentration of a class.
    """
    cosine = (embeddings.direction @ functional.normalize(weight, dim=1).T).double()
    image = embeddings.concentration[:, None]
    length: Tensor = torch.linalg.vector_norm(weight.double(), dim=1)
    classes = inverse_temperature * length.clamp(min=1)
    square = image.square() + classes.square() + 2 * image * classes * cosine
    joint, dimension = square.clamp(min=_LEAST).sqrt(), weight.shape[1]
    return (
        log_normaliser(image, dimension)
        + log_normaliser(classes, dimension)
        - log_normaliser(joint, dimension)
    )
