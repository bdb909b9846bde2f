"""Training of counts: the logarithm of the rate, and Poisson's likelihood."""

import torch
from torch import nn
from torch.nn import functional

from qualms.methods import Learning, Readout, features_of, weighted_mean
from qualms.spec import Task


def _head(backbone, _task, _outputs, _projection):
    return Readout(nn.Identity(), nn.Linear(features_of(backbone), 1))


def _loss(outputs, batch, _task, _smoothing):
    target = batch.target.float()
    loss = functional.poisson_nll_loss(outputs[:, 0], target, reduction="none")
    return weighted_mean(loss, batch)


def _summarise(draws, _task):
    return {"rate": torch.stack([draw.outputs[:, 0].exp() for draw in draws])}


LEARNING = Learning(
    head=_head,
    loss=_loss,
    summarise=_summarise,
    example=Task(name="counts"),
    example_target=lambda _x, level: (5 * level).floor(),
    needed=(("rate",),),
)
