"""The expected likelihood kernel (Kirchhof et al., 2022, arXiv:2207.03784).

Images and classes are von Mises-Fisher distributions over the directions of embeddings.
Their similarity is the logarithm of the integral of the product of their densities,
which has a closed form; the classes' similarities are the logits of a cross-entropy.
URL (Kirchhof et al., 2023, arXiv:2307.03810) reads the classes from the weights of the
last layer, direction and length; here the normaliser is exact where its released code
has a regression.
"""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import check_contrast
from qualms.methods._headed import (
    Embedded,
    Headed,
    Readout,
    features_of,
    headed,
    start_as_classifier,
)
from qualms.methods._method import Method
from qualms.methods._plain import classes_of, summarise_embeddings, weighted_mean
from qualms.methods._uncertain import (
    Uncertain,
    check_uncertainty,
    start_uncertainty,
    uncertain,
    with_uncertainty,
)
from qualms.methods._vmf import log_normaliser
from qualms.spec import Task

# Two opposite distributions of one concentration: any direction is as likely.
_LEAST = 1e-9


def elk(
    *,
    inverse_temperature: float = 27.685,
    initial_uncertainty: float | None = None,
    width: int = 1024,
) -> Method:
    """Embeddings for classification, the learned `uncertainty/head`, and the entropy.

    Args:
        inverse_temperature: factor of the concentrations of classes, which are at least
            that large. The default is URL's best for ResNet-50; that for ViT-Medium is
            56.774, the range of its search 8 to 64.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7.
        width: of the three hidden layers of the uncertainty head.
    """
    check_contrast(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature),
        predict=partial(_predict, inverse_temperature),
        epoch=partial(start_uncertainty, initial_uncertainty),
        tasks=frozenset({"embedding"}),
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    last = nn.Linear(features_of(backbone), classes_of(task, "elk"), bias=False)
    start_as_classifier(last, backbone)
    network = Headed(backbone, Readout(nn.Identity(), last), task)
    return with_uncertainty(network, width)


def _loss(
    inverse_temperature: float, network: nn.Module, batch: Batch, _moment: Moment
) -> Tensor:
    found = uncertain(network, batch.x)
    logits = _logits(inverse_temperature, network, found)
    loss = functional.cross_entropy(logits, batch.target.long(), reduction="none")
    return weighted_mean(loss, batch).float()


def _predict(
    inverse_temperature: float, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    found = uncertain(network, x)
    logits = _logits(inverse_temperature, network, found)
    embedded = Embedded(found.embedding, logits)
    return {**summarise_embeddings([embedded], task), **found.arrays}


def _logits(inverse_temperature: float, network: nn.Module, found: Uncertain) -> Tensor:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, nn.Linear)
    with torch.autocast(found.embedding.device.type, enabled=False):
        return expected_likelihood(found, head.last.weight, inverse_temperature)


def expected_likelihood(
    found: Uncertain, weight: Tensor, inverse_temperature: float
) -> Tensor:
    """Log of the expected likelihood (B, C) of images and classes, in float64.

    Args:
        found: embeddings and uncertainties of the images.
        weight: (C, D), whose directions are those of the classes and whose lengths,
            where they are above 1, stretch their concentrations.
        inverse_temperature: the least concentration of a class.
    """
    cosine = (found.direction @ functional.normalize(weight, dim=1).T).double()
    image = found.concentration[:, None]
    length: Tensor = torch.linalg.vector_norm(weight.double(), dim=1)
    classes = inverse_temperature * length.clamp(min=1)
    square = image.square() + classes.square() + 2 * image * classes * cosine
    both, dimension = square.clamp(min=_LEAST).sqrt(), weight.shape[1]
    return (
        log_normaliser(image, dimension)
        + log_normaliser(classes, dimension)
        - log_normaliser(both, dimension)
    )
