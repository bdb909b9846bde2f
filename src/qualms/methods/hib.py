"""Hedged instance embeddings (Oh et al., 2019, arXiv:1810.00319), in the form of URL.

Kirchhof et al. (2023, arXiv:2307.03810, equation 5) compare draws of von Mises-Fisher
embeddings by their cosine. The probability p that two images match is a mean over
draws; training makes it high for images of one class and low for others. In their
released code the positives are neighbours in the batch, whatever their classes.

Equation 5 has log p for images of different classes, where Oh et al. have -log(1 - p).
Its negatives are never satisfied: the smaller p, the steeper log p, so that two
opposite points reward it most. It also depends on the offset. With a large one p is
near 1 for every pair, the loss is flat and the uncertainty stays where it started.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._contrastive import check_temperature
from qualms.methods._headed import Headed
from qualms.methods._method import Method
from qualms.methods._plain import weighted_mean
from qualms.methods._uncertain import (
    check_uncertainty,
    embed_uncertain,
    start_uncertainty,
    uncertainty_only,
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
    original_negatives: bool = False,
) -> Method:
    """Learn embeddings from pairs of items of a class, and `uncertainty/head`.

    Args:
        inverse_temperature: factor of cosines in the logit of a match. The default is
            URL's best for ResNet-50; that for ViT-Medium is 13.956, the range of its
            search 8 to 64.
        offset: number added to that logit. The default was tuned for positives that
            are random neighbours; networks that start from random weights need one near
            -5. URL's best for ViT-Medium is -5.3607, the range of its search -8 to 8.
        initial_uncertainty: mean uncertainty before the first step; None leaves it as
            the head starts, near 0.7, as in URL's best runs: draws then lie anywhere.
        draws: draws of each embedding in a step.
        width: width of the three hidden layers of the uncertainty head.
        original_negatives: True if images of different classes have the loss
            -log(1 - p) of Oh et al. instead of log p.
    """
    check_temperature(inverse_temperature)
    check_uncertainty(initial=initial_uncertainty, width=width, draws=draws)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, inverse_temperature, offset, draws, original_negatives),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        needs=("vectors",),
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    return uncertainty_only(backbone, task, width)


def _loss(
    inverse_temperature: float,
    offset: float,
    draws: int,
    original_negatives: bool,
    network: nn.Module,
    batch: Batch,
    _moment: Moment,
) -> Tensor:
    embeddings = embed_uncertain(network, batch.x)
    with torch.autocast(batch.x.device.type, enabled=False):
        vectors = draw_vmf(embeddings.direction, embeddings.concentration, draws)
        logs = match_logs(vectors, inverse_temperature, offset)
        apart = None
        if original_negatives:  # 1 - sigmoid(z) is sigmoid(-z)
            apart = -match_logs(vectors, -inverse_temperature, -offset)
        return weighted_mean(pair_losses(logs, batch.target, apart), batch)


def match_logs(vectors: Tensor, inverse_temperature: float, offset: float) -> Tensor:
    """Return log probabilities (B, B) of matches, from unit vectors (draws, B, D)."""
    logits = inverse_temperature * vectors @ vectors.mT + offset
    return functional.logsigmoid(logits).logsumexp(0) - math.log(len(vectors))


def pair_losses(logs: Tensor, target: Tensor, apart: Tensor | None = None) -> Tensor:
    """Return the terms (B,) of items, whose mean is the loss.

    Pairs of one class have the loss `-logs` (B, B), others `apart` (B, B), which is
    `logs` in equation 5. A batch without pairs of the same class, or of different ones,
    lacks that term.
    """
    same = target[:, None] == target
    itself = torch.eye(len(target), dtype=torch.bool, device=target.device)
    apart = logs if apart is None else apart
    return len(target) * (_pair_mean(apart, ~same) - _pair_mean(logs, same & ~itself))


def _pair_mean(logs: Tensor, pairs: Tensor) -> Tensor:
    return (logs * pairs).sum(1) / pairs.sum().clamp(min=1)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    return embed_uncertain(network, x).arrays
