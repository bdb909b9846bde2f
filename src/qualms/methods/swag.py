"""SWAG: a Gaussian over weights from the path of SGD (Maddox et al., 2019).

arXiv:1902.02476. From some epoch on, the weights at the end of every epoch are
collected. Their mean, their variances and their last deviations from the running mean
make a Gaussian whose covariance is half diagonal and half of low rank. After training,
weights are drawn from it, and the statistics of batch normalisation are computed anew
for each draw, by one pass over the training split.

The learning rate must not vanish while weights are collected, or they do not spread. So
the paper's schedule takes the place of the run's: the full rate for half of the time
before collecting starts, then a linear fall, and a constant rate from nine tenths on.
Its rate for VGG-16 and CIFAR is 0.05 at first and 0.01 at the end.

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
    borrowed,
    flattened,
    predict_by_sets,
    put_back,
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
    """Draws of all weights from a Gaussian around their mean.

    Args:
        start: share of training after which weights are collected, once per epoch; the
            paper starts after 160 of 300 epochs. Draws differ if there are two or more.
        rank: deviations that are kept, the last ones.
        draws: sets of weights, each of which serves all items.
        rate: constant learning rate in which weights are collected, as a share of the
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
    )


def _schedule(start: float, rate: float, time: Tensor, epochs: int) -> Tensor:
    if start == 0:
        return torch.full_like(time, rate)
    share = time / (start * epochs)
    fallen = ((share - _FALLS_FROM) / (_FALLS_TO - _FALLS_FROM)).clamp(0, 1)
    return 1 - (1 - rate) * fallen


def _build(backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    network.found = FittedBuffers((WEIGHTS, *_MOMENTS))
    return network


def _epoch(
    start: float, rank: int, network: nn.Module, moment: Moment, _batches: Batches
) -> None:
    # The hook sees the weights that the epoch before has left.
    if moment.epoch >= max(1, start * moment.epochs):
        _collect(rank, network)


def _collect(rank: int, network: nn.Module) -> None:
    """Add the weights as they are to the moments, by Welford's update."""
    found, values = weight_sets(network), flattened(trained_parts(headed(network)))
    if not found.has("count"):
        found.keep("count", torch.zeros((), dtype=torch.int64, device=values.device))
        found.keep("mean", torch.zeros_like(values))
        found.keep("squares", torch.zeros_like(values))
        found.keep("deviations", values.new_zeros(rank, len(values)))
    count, mean, squares, deviations = map(found.held, _MOMENTS)
    before = values - mean
    mean += before / (count + 1)
    squares += before * (values - mean)
    deviations[int(count) % rank] = values - mean
    count += 1


def draw_weights(network: nn.Module) -> Tensor:
    """Weights (P,) drawn from the Gaussian of those that were collected."""
    count, mean, squares, deviations = map(weight_sets(network).held, _MOMENTS)
    columns = deviations[: int(count)]
    wide = (squares / count / 2).sqrt() * torch.randn_like(mean)
    turns = torch.randn(len(columns), dtype=mean.dtype, device=mean.device)
    low_rank = turns @ columns / math.sqrt(2 * max(1, len(columns) - 1))
    return mean + wide + low_rank


def _after(rank: int, draws: int, network: nn.Module, batches: Batches) -> None:
    whole, found = headed(network), weight_sets(network)
    _collect(rank, network)
    drawn = []
    with borrowed(all_parts(whole)):
        for _ in range(draws):
            put_back(trained_parts(whole), draw_weights(network))
            _renew_statistics(whole, batches)
            drawn.append(flattened(all_parts(whole)))
    found.keep(WEIGHTS, torch.stack(drawn))
    for name in _MOMENTS:
        found.forget(name)


def _renew_statistics(network: Headed, batches: Batches) -> None:
    """Give every batch normalisation the mean statistics of all batches."""
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
