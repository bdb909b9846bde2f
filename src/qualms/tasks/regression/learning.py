"""Training of a regression: one hidden layer of 512, and the squared error."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from qualms.methods import (
    Batch,
    Draw,
    Learning,
    features_of,
    regression_readout,
    weighted_mean,
)
from qualms.spec import Task


def _head(
    backbone: nn.Module, _task: Task, _outputs: int | None, _projection: int | None
) -> nn.Module:
    return regression_readout(features_of(backbone))


def _loss(outputs: Tensor, batch: Batch, _task: Task, _smoothing: float) -> Tensor:
    error = (outputs[:, 0] - batch.target.float()).square()
    return weighted_mean(error, batch)


def _summarise(draws: Iterable[Draw], _task: Task) -> dict[str, Tensor]:
    """Return mean (M, B), and var (M, B) where the outputs are pairs of both."""
    values = torch.stack([draw.outputs for draw in draws])
    return dict(zip(("mean", "var"), values.unbind(2), strict=False))


def _example_target(_x: Tensor, level: Tensor) -> Tensor:
    return 10 * level + 5


LEARNING = Learning(
    head=_head,
    loss=_loss,
    summarise=_summarise,
    example=Task(name="regression"),
    example_target=_example_target,
    needed=(("mean", "lower"),),
)
