"""Hedged instance embeddings (Oh et al., 2019, arXiv:1810.00319), in the form of URL.

Kirchhof et al. (2023, arXiv:2307.03810, equation 5) compare draws of von Mises-Fisher
embeddings by their cosine. The probability that two images match is a mean over draws;
it shall be high for images of one class and low for others. In their released code the
positives are neighbours in the batch, whatever their classes.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import check_contrast
from qualms.methods._headed import Headed
from qualms.methods._method import Method
from qualms.methods._plain import weighted_mean
from qualms.methods._uncertain import (
    check_uncertainty,
    start_uncertainty,
    uncertain,
    undivided,
)
from qualms.methods._vmf import draw_vmf
from qualms.spec import Task


def hib(
    *,
    inverse_temperature: float = 26.850,
    offset: float = 2.0435,
    initial_uncertainty: float | None = 0.001,
    draws: int = 16,
    width: int = 1024,
) -> Method:
    """Embeddings by pairs of a class, and the learned `uncertainty/head`.

    Args:
        inverse_temperature: factor of cosines in the logit of a match. The default is
            URL's best for ResNet-50; that for ViT-Medium is 13.956, the range of its
            search 8 to 64.
        offset: added to that logit. For ViT-Medium -5.3607, the range -8 to 8.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7, as in URL's best runs: draws then lie anywhere.
        draws: of each embedding in a step.
        width: of the three hidden layers of the uncertainty head.
    """
    check_contrast(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width, draws=draws)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature, offset, draws),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        tasks=frozenset({"embedding"}),
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    return undivided(backbone, task, width)


def _loss(
    inverse_temperature: float,
    offset: float,
    draws: int,
    network: nn.Module,
    batch: Batch,
    _moment: Moment,
) -> Tensor:
    found = uncertain(network, batch.x)
    with torch.autocast(batch.x.device.type, enabled=False):
        drawn = draw_vmf(found.direction, found.concentration, draws)
        logs = match_logs(drawn, inverse_temperature, offset)
        return weighted_mean(pair_losses(logs, batch.target), batch)


def match_logs(drawn: Tensor, inverse_temperature: float, offset: float) -> Tensor:
    """Log probability (B, B) that two items match, from unit vectors (draws, B, D)."""
    logits = inverse_temperature * drawn @ drawn.mT + offset
    return functional.logsigmoid(logits).logsumexp(0) - math.log(len(drawn))


def pair_losses(logs: Tensor, target: Tensor) -> Tensor:
    """The part (B,) of each item in the loss, whose mean over items is equation 5.

    A batch without a pair of one class, or without one of two, lacks that term.
    """
    alike = target[:, None] == target
    alone = torch.eye(len(target), dtype=torch.bool, device=target.device)
    return len(target) * (_share(logs, ~alike) - _share(logs, alike & ~alone))


def _share(logs: Tensor, pairs: Tensor) -> Tensor:
    return (logs * pairs).sum(1) / pairs.sum().clamp(min=1)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    return uncertain(network, x).arrays
