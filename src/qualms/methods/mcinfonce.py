"""MCInfoNCE (Kirchhof et al., 2023, arXiv:2302.02865): InfoNCE of random embeddings.

The embedding of an image is a von Mises-Fisher distribution around its direction, whose
concentration is one over the uncertainty of the image. A step draws embeddings of all
views and takes the mean of the InfoNCE losses of the draws, as equation 2 of URL
(Kirchhof et al., 2023, arXiv:2307.03810) says; the released code takes the logarithm of
the mean likelihood.
"""

from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import (
    VIEWS,
    both_views,
    check_temperature,
    contrastive_losses,
)
from qualms.methods._headed import Headed
from qualms.methods._method import Method
from qualms.methods._plain import weighted_mean
from qualms.methods._uncertain import (
    UncertainEmbedding,
    check_uncertainty,
    embed_uncertain,
    start_uncertainty,
    uncertainty_only,
)
from qualms.methods._vmf import draw_vmf
from qualms.spec import Task


def mcinfonce(
    *,
    inverse_temperature: float = 52.431,
    initial_uncertainty: float | None = 0.001,
    draws: int = 16,
    width: int = 1024,
) -> Method:
    """Embeddings by contrast, and the learned `uncertainty/head`.

    Args:
        inverse_temperature: factor of cosines. The default is URL's best for ResNet-50;
            that for ViT-Medium is 50.276, the range of its search 8 to 64.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7.
        draws: draws of each embedding in a step.
        width: width of the three hidden layers of the uncertainty head.
    """
    check_temperature(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width, draws=draws)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature, draws),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        tasks=frozenset({"embedding"}),
        views=VIEWS,
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    return uncertainty_only(backbone, task, width)


def _loss(
    inverse_temperature: float,
    draws: int,
    network: nn.Module,
    batch: Batch,
    _moment: Moment,
) -> Tensor:
    embeddings = UncertainEmbedding(
        *(both_views(part, batch) for part in embed_uncertain(network, batch.x))
    )
    with torch.autocast(batch.x.device.type, enabled=False):
        vectors = draw_vmf(embeddings.direction, embeddings.concentration, draws)
        losses = contrastive_losses(vectors, inverse_temperature)
        return weighted_mean(losses.mean(0), batch)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    return embed_uncertain(network, x).arrays
