"""SWAG: a Gaussian over weights from the path of SGD (Maddox et al., 2019).

arXiv:1902.02476. From some epoch on, the weights at the end of every epoch are
collected. Their mean, their variances and their last deviations from the running mean
define a Gaussian whose covariance is half diagonal and half of low rank. After
training, weights are drawn from it, and the statistics of batch normalisation are
computed anew for each draw, by one pass over the training split.

The learning rate must not vanish while weights are collected, or they do not spread. So
the paper's schedule replaces that of the run: the full rate for half of the time before
collecting starts, then a linear fall, and a constant rate from nine tenths on. Its rate
for VGG-16 and CIFAR is 0.05 at first and 0.01 at the end.

A checkpoint holds `rank` + 2 copies of the weights while they are collected, and
`draws` copies at the end. Choose fewer where a network is large.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from qualms.methods._batch import Batches, Moment
from qualms.methods._headed import FittedBuffers, Headed, headed
from qualms.methods._method import Method
from qualms.methods._plain import plain_head
from qualms.methods._weights import (
    WEIGHTS,
    all_parts,
    assign,
    flattened,
    predict_by_sets,
    restoring,
    trained_parts,
    weight_sets,
)
from qualms.spec import Task

_MOMENTS = ("count", "mean", "squares", "deviations")
_FALLS_FROM, _FALLS_TO = 0.5, 0.9
"""Shares of the time before collecting, between which the learning rate falls."""


def swag(
    *,
    start: float = 0.5,
    rank: int = 20,
    draws: int = 30,
    rate: float | None = 0.2,
) -> Method:
    """Predict with draws of all weights from a Gaussian around their mean.

    Args:
        start: share of training after which weights are collected, once per epoch; the
            paper starts after 160 of 300 epochs. Draws differ if there are two or more.
        rank: number of last deviations that are kept.
        draws: sets of weights, each of which serves all items.
        rate: constant learning rate while weights are collected, as a share of the
            run's; None keeps the run's own schedule.
    """
    if not 0 <= start < 1:
        raise ValueError(f"start must be at least 0 and below 1, got {start}")
    if min(rank, draws) < 1:
        raise ValueError(f"rank and draws must be at least 1, got {rank} and {draws}")
    if rate is not None and rate <= 0:
        raise ValueError(f"rate must be positive, or None, got {rate}")
    return Method(
        build=_build,
        predict=predict_by_sets,
        schedule=None if rate is None else partial(_schedule, start, rate),
        epoch=partial(_epoch, start, rank),
        after=partial(_after, rank, draws),
        selects=False,
        header={"draws": "models"},
    )


def _schedule(start: float, rate: float, time: Tensor, epochs: int) -> Tensor:
    if start == 0:
        return torch.full_like(time, rate)
    share = time / (start * epochs)
    fallen = ((share - _FALLS_FROM) / (_FALLS_TO - _FALLS_FROM)).clamp(0, 1)
    return 1 - (1 - rate) * fallen


def _build(backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    network.fitted = FittedBuffers((WEIGHTS, *_MOMENTS))
    return network


def _epoch(
    start: float, rank: int, network: nn.Module, moment: Moment, _batches: Batches
) -> None:
    # The hook sees the weights at the end of the epoch before.
    if moment.epoch >= max(1, start * moment.epochs):
        _collect(rank, network)


def _collect(rank: int, network: nn.Module) -> None:
    """Add the current weights to the moments, by Welford's update."""
    buffers, values = weight_sets(network), flattened(trained_parts(headed(network)))
    if not buffers.has("count"):
        buffers.keep("count", torch.zeros((), dtype=torch.int64, device=values.device))
        buffers.keep("mean", torch.zeros_like(values))
        buffers.keep("squares", torch.zeros_like(values))
        buffers.keep("deviations", values.new_zeros(rank, len(values)))
    count, mean, squares, deviations = map(buffers.get, _MOMENTS)
    before = values - mean
    mean += before / (count + 1)
    squares += before * (values - mean)
    deviations[int(count) % rank] = values - mean
    count += 1


def draw_weights(network: nn.Module) -> Tensor:
    """Draw weights (P,) from the Gaussian of the collected ones."""
    count, mean, squares, deviations = map(weight_sets(network).get, _MOMENTS)
    columns = deviations[: int(count)]
    diagonal = (squares / count / 2).sqrt() * torch.randn_like(mean)
    noise = torch.randn(len(columns), dtype=mean.dtype, device=mean.device)
    low_rank = noise @ columns / math.sqrt(2 * max(1, len(columns) - 1))
    return mean + diagonal + low_rank


def _after(rank: int, draws: int, network: nn.Module, batches: Batches) -> None:
    network = headed(network)
    _collect(rank, network)
    sets = []
    with restoring(all_parts(network)):
        for _ in range(draws):
            assign(trained_parts(network), draw_weights(network))
            _renew_statistics(network, batches)
            sets.append(flattened(all_parts(network)))
    buffers = weight_sets(network)
    buffers.keep(WEIGHTS, torch.stack(sets))
    for name in _MOMENTS:
        buffers.forget(name)


def _renew_statistics(network: Headed, batches: Batches) -> None:
    """Set the statistics of batch normalisation to their means over all batches."""
    layers = [
        layer
        for layer in network.modules()
        if isinstance(layer, _BatchNorm) and layer.track_running_stats
    ]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
        layer.train()
    for batch in batches():
        network(batch.x)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
        layer.eval()
