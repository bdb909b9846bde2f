"""MCInfoNCE (Kirchhof et al., 2023, arXiv:2302.02865): InfoNCE of random embeddings.

The embedding of an image is a von Mises-Fisher distribution around its direction, whose
concentration is one over the uncertainty of the image. A step draws embeddings of all
views. As in the released code of both papers, the loss is minus the logarithm of the
mean likelihood of the draws, that is of exp(-InfoNCE). Equation 2 of URL (Kirchhof et
al., 2023, arXiv:2307.03810) prints the mean of the losses instead. That mean never
gains from spread: it drives the uncertainty to its floor, which leaves plain InfoNCE.
"""

import math
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import (
    VIEWS,
    anchor_losses,
    both_views,
    check_temperature,
    over_views,
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

Average = Literal["likelihood", "loss"]


def mcinfonce(
    *,
    inverse_temperature: float = 52.431,
    initial_uncertainty: float | None = 0.001,
    draws: int = 16,
    width: int = 1024,
    average: Average = "likelihood",
) -> Method:
    """Learn random embeddings by contrast, and `uncertainty/head`.

    Args:
        inverse_temperature: factor of cosines. The default is URL's best for ResNet-50;
            that for ViT-Medium is 50.276, the range of its search 8 to 64.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7.
        draws: draws of each embedding in a step.
        width: width of the three hidden layers of the uncertainty head.
        average: what is averaged over draws: the "likelihood", as in the released code,
            or the "loss", as in equation 2 of URL.
    """
    check_temperature(inverse_temperature)
    if average not in get_args(Average):
        raise ValueError(f"average must be 'likelihood' or 'loss', got {average!r}")
    check_uncertainty(initial=initial_uncertainty, width=width, draws=draws)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature, draws, average),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        needs=("vectors",),
        views=VIEWS,
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    return uncertainty_only(backbone, task, width)


def _loss(
    inverse_temperature: float,
    draws: int,
    average: Average,
    network: nn.Module,
    batch: Batch,
    _moment: Moment,
) -> Tensor:
    embeddings = UncertainEmbedding(
        *(both_views(part, batch) for part in embed_uncertain(network, batch.x))
    )
    with torch.autocast(batch.x.device.type, enabled=False):
        vectors = draw_vmf(embeddings.direction, embeddings.concentration, draws)
        losses = anchor_losses(vectors, inverse_temperature)
        return weighted_mean(over_views(over_draws(losses, average)), batch)


def over_draws(losses: Tensor, average: Average) -> Tensor:
    """Return the losses (2 B,) of anchors over draws, from those of draws (M, 2 B)."""
    if average == "loss":
        return losses.mean(0)
    return math.log(len(losses)) - (-losses).logsumexp(0)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    return embed_uncertain(network, x).arrays
