"""Snapshot ensembles (Huang et al., 2017, arXiv:1704.00109).

One training visits several minima. The learning rate falls along a cosine from the full
rate to almost zero, jumps back, and falls again; the weights at the end of every cycle
are a member. Members keep their own statistics of batch normalisation.

Cycles are whole epochs, of equal length as far as possible. The schedule replaces that
of the run; every cycle starts at the run's `lr`. The paper has 0.1 or 0.2 with SGD.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batches, Moment
from qualms.methods._headed import FittedBuffers, Headed, headed
from qualms.methods._method import Method
from qualms.methods._plain import plain_head
from qualms.methods._weights import (
    WEIGHTS,
    all_parts,
    flattened,
    predict_by_sets,
    weight_sets,
)
from qualms.spec import Task


def snapshot(*, cycles: int = 5) -> Method:
    """Predict one draw by the weights at the end of each cycle of one training.

    Args:
        cycles: falls of the learning rate, each of which gives a member; at most one
            for each epoch.
            The paper has 5 or 6, of 40 or 50 epochs each.
    """
    if cycles < 1:
        raise ValueError(f"cycles must be at least 1, got {cycles}")
    return Method(
        build=_build,
        predict=predict_by_sets,
        schedule=partial(_schedule, cycles),
        epoch=partial(_epoch, cycles),
        after=_after,
        selects=False,
        header={"draws": "models"},
    )


def cycle_ends(cycles: int, epochs: int) -> list[int]:
    """Return how many epochs are done when each cycle ends."""
    count = min(cycles, epochs)
    return [epochs * number // count for number in range(1, count + 1)]


def _schedule(cycles: int, time: Tensor, epochs: int) -> Tensor:
    ends = torch.tensor([0, *cycle_ends(cycles, epochs)], dtype=time.dtype)
    cycle = torch.searchsorted(ends, time, right=True).clamp(max=len(ends) - 1)
    start, end = ends[cycle - 1], ends[cycle]
    return (1 + (math.pi * (time - start) / (end - start)).cos()) / 2


def _build(backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    network.fitted = FittedBuffers([WEIGHTS])
    return network


def _epoch(cycles: int, network: nn.Module, moment: Moment, _batches: Batches) -> None:
    if moment.epoch in cycle_ends(cycles, moment.epochs)[:-1]:
        _keep(network)


def _after(network: nn.Module, _batches: Batches) -> None:
    _keep(network)


def _keep(network: nn.Module) -> None:
    buffers, values = weight_sets(network), flattened(all_parts(headed(network)))
    before = [buffers.get(WEIGHTS)] if buffers.has(WEIGHTS) else []
    buffers.keep(WEIGHTS, torch.cat([*before, values[None]]))
