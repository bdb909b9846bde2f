"""A frozen network: embeddings of a backbone as its weights are, and nothing trained.

What does a pretrained network know of its own mistakes (Kirchhof et al., 2023,
arXiv:2307.03810)? One over the length of the embedding (Scott et al., 2021,
arXiv:2103.15718), the entropy of the classifier that came with the weights, the
disagreement with the mirror image, and how unlike the training items an image is: the
k-th nearest of their features (Sun et al., 2022, arXiv:2204.06507), and Mahalanobis
distances (Lee et al., 2018; Ren et al., 2021).
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batches
from qualms.methods._headed import (
    FittedBuffers,
    Headed,
    Readout,
    embed,
    embedding_readout,
    headed,
)
from qualms.methods._method import Method
from qualms.methods._ood_scores import (
    FeatureGaussians,
    Gaussians,
    fit_gaussians,
    knn,
    mahalanobis,
    relative_mahalanobis,
)
from qualms.methods._plain import summarise
from qualms.methods._training_features import training_features
from qualms.methods._untrained import with_untrained
from qualms.networks import as_backbone
from qualms.spec import Task

_GAUSSIANS = ("class_means", "class_whitening", "centre", "whitening")
_BUFFERS = (*_GAUSSIANS, "reference")
_IMAGE = 4
"""Axes of a batch of images, which have mirror images."""


def frozen(*, neighbours: int = 50, items: int = 50_000) -> Method:
    """Embeddings and uncertainties of a network that is not trained.

    Args:
        neighbours: k of `uncertainty/knn`; of fewer training items, all of them.
        items: most training items that others are compared with, a random choice if
            there are more; 0 to compare with none.
    """
    if neighbours < 1 or items < 0:
        raise ValueError(
            f"neighbours must be at least 1 and items at least 0, got {neighbours} and"
            f" {items}"
        )
    return Method(
        build=_build,
        predict=partial(_predict, neighbours),
        needs=("vectors",),
        after=partial(_after, items),
        trains=False,
    )


def _build(backbone: nn.Module, task: Task) -> Headed:
    classifier = as_backbone(backbone).classifier
    head = embedding_readout(backbone, None)
    if classifier is not None:
        last = nn.Linear(classifier.weight.shape[1], len(classifier.weight))
        with torch.no_grad():
            last.weight.copy_(classifier.weight)
            last.bias.copy_(classifier.bias)
        head = Readout(nn.Identity(), last)
    return Headed(backbone, head, task, FittedBuffers(_BUFFERS))


def _after(items: int, network: nn.Module, batches: Batches) -> None:
    if not items:
        return
    network = headed(network)
    features, target = training_features(network, batches, items, method="frozen")
    fitted = fit_gaussians(features, target)
    buffers = _buffers(network)
    values = (*fitted.classes, *fitted.background, features)
    for name, value in zip(_BUFFERS, values, strict=True):
        buffers.keep(name, value)


def _predict(
    neighbours: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    network = headed(network)

    def embedded(images: Tensor) -> dict[str, Tensor]:
        return _embedded(network, images, task)

    arrays = with_untrained(embedded, x, mirrored=x.ndim == _IMAGE)
    unlike = _unlike(neighbours, network, arrays["embedding"])
    return arrays | {f"uncertainty/{name}": values for name, values in unlike.items()}


def _embedded(network: Headed, x: Tensor, task: Task) -> dict[str, Tensor]:
    """Return embeddings; with the entropy where a classifier came with the weights.

    Its classes are predictions only where they are those of the task.
    """
    draw, head = embed(network, x), network.head
    assert isinstance(head, Readout)
    classes = len(head.last.weight) if isinstance(head.last, nn.Linear) else None
    arrays = summarise([draw], replace(task, classes=classes))
    if classes != task.classes:
        arrays.pop("predicted", None)
    return arrays


def _unlike(neighbours: int, network: Headed, features: Tensor) -> dict[str, Tensor]:
    """Return how unlike the training items features (B, D) are; {} before `after`."""
    buffers = _buffers(network)
    if not buffers.ready:
        return {}
    class_gaussians, background = (
        Gaussians(*map(buffers.get, names))
        for names in (_GAUSSIANS[:2], _GAUSSIANS[2:])
    )
    return {
        "knn": knn(features, buffers.get("reference"), neighbours),
        "mahalanobis": mahalanobis(features, class_gaussians),
        "relative_mahalanobis": relative_mahalanobis(
            features, FeatureGaussians(class_gaussians, background)
        ),
    }


def _buffers(network: Headed) -> FittedBuffers:
    assert isinstance(network.fitted, FittedBuffers)
    return network.fitted
