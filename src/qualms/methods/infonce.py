"""InfoNCE (Oord et al., 2018, arXiv:1807.03748), as URL uses it without labels.

Kirchhof et al. (2023, arXiv:2307.03810) train the embedding itself, without a
projection on top, on two views of each image. Its uncertainty is one over the length
of the embedding; training does not depend on that length.
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import (
    VIEWS,
    both_views,
    check_temperature,
    contrastive_losses,
)
from qualms.methods._headed import (
    Headed,
    embed,
    embedding_readout,
    headed,
    last_inputs,
)
from qualms.methods._method import Method
from qualms.methods._plain import summarise, weighted_mean
from qualms.spec import Task


def infonce(*, inverse_temperature: float = 15.183) -> Method:
    """Learn embeddings by contrast, and predict `uncertainty/inverse_norm`.

    Args:
        inverse_temperature: factor of cosines. The default is URL's best for ResNet-50;
            that for ViT-Medium is 20.820, the range of its search 8 to 64.
    """
    check_temperature(inverse_temperature)
    return Method(
        build=_build,
        loss=partial(_loss, inverse_temperature),
        predict=_predict,
        needs=("vectors",),
        views=VIEWS,
    )


def _build(backbone: nn.Module, task: Task) -> Headed:
    return Headed(backbone, embedding_readout(backbone, None), task)


def _loss(
    inverse_temperature: float, network: nn.Module, batch: Batch, _moment: Moment
) -> Tensor:
    rows = both_views(last_inputs(headed(network), batch.x), batch)
    with torch.autocast(rows.device.type, enabled=False):
        vectors = functional.normalize(rows, dim=1)
        return weighted_mean(contrastive_losses(vectors, inverse_temperature), batch)


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    draw = embed(headed(network), x)
    return summarise([draw], replace(task, classes=None))
