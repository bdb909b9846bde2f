"""Loss prediction (Yoo & Kweon, 2019, arXiv:1905.03677), in two forms.

A classifier, and beside its last layer a head that predicts the loss of each item; no
gradient flows through the losses that it is compared with. As in URL (Kirchhof et al.,
2023, arXiv:2307.03810, equation 8) the head learns the value of the loss. By "ranking"
it learns which of two items has the larger loss, from an embedding that it does not
change (Kirchhof et al., 2024, arXiv:2402.16569); with cached features of a frozen
backbone that takes minutes.
"""

from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import Draw, Headed, Readout, headed, last_inputs
from qualms.methods._method import Method
from qualms.methods._plain import (
    class_losses,
    classes_of,
    plain_head,
    summarise,
    weighted_mean,
)
from qualms.methods._uncertain import (
    check_uncertainty,
    start_uncertainty,
    uncertainty_head,
    with_uncertainty,
)
from qualms.spec import Task

LossGoal = Literal["value", "ranking"]


def losspred(
    *,
    weight: float = 0.041375,
    goal: LossGoal = "value",
    margin: float = 0.1,
    initial_uncertainty: float | None = None,
    width: int = 1024,
) -> Method:
    """Predict classes or embeddings, and their loss as `uncertainty/head`.

    Args:
        weight: factor of the error of the prediction in the loss. The default is URL's
            best for ResNet-50; that for ViT-Medium is 0.011425, the range of its search
            0.01 to 0.99.
        goal: "value" for the squared error of the predicted loss; "ranking" for the
            hinge loss of pairs, the first item and the second, the third and the
            fourth ..., which leaves the backbone alone.
        margin: least distance of the predictions of a pair, for "ranking" only.
        initial_uncertainty: mean prediction before the first step; None leaves it as
            the head starts, near 0.7. URL has 0.001 for ViT-Medium.
        width: width of the three hidden layers of the uncertainty head.
    """
    if weight <= 0 or margin < 0:
        raise ValueError(
            f"weight must be positive and margin at least 0, got {weight} and {margin}"
        )
    if goal not in get_args(LossGoal):
        raise ValueError(f"goal must be 'value' or 'ranking', got {goal!r}")
    check_uncertainty(initial=initial_uncertainty, width=width)
    return Method(
        build=partial(_build, width),
        loss=partial(_loss, weight, margin if goal == "ranking" else None),
        predict=_predict,
        epoch=partial(start_uncertainty, initial_uncertainty),
        needs=("items classes",),
    )


def _build(width: int, backbone: nn.Module, task: Task) -> Headed:
    classes_of(task, "losspred")
    return with_uncertainty(plain_head(backbone, task), width)


def _loss(
    weight: float,
    margin: float | None,
    network: nn.Module,
    batch: Batch,
    _moment: Moment,
) -> Tensor:
    network = headed(network)
    embedding = last_inputs(network, batch.x)
    with torch.autocast(embedding.device.type, enabled=False):
        losses = class_losses(_last(network)(embedding), batch.target, network.task)
        fixed, head = losses.detach(), uncertainty_head(network)
        if margin is None:
            error = (head(embedding) - fixed).square()
            return weighted_mean(losses + weight * error, batch).float()
        pairs = ranking_losses(head(embedding.detach()), fixed, margin)
        if batch.weight is not None:
            pairs = pairs * _pairs(batch.weight).mean(1)
        # A single item makes no pair.
        ranking = pairs.sum() / max(len(pairs), 1)
        return weighted_mean(losses, batch) + weight * ranking.float()


def ranking_losses(predicted: Tensor, losses: Tensor, margin: float) -> Tensor:
    """Return the hinge losses (B // 2,) of pairs of neighbours, by their losses."""
    first, second = _pairs(predicted).unbind(1)
    first_loss, second_loss = _pairs(losses).unbind(1)
    sign = torch.where(first_loss > second_loss, 1.0, -1.0).to(predicted.dtype)
    return (margin - sign * (first - second)).clamp(min=0)


def _pairs(values: Tensor) -> Tensor:
    """Return neighbours as pairs (B // 2, 2), without an odd last one."""
    return values[: len(values) // 2 * 2].view(-1, 2)


def _predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    network = headed(network)
    embedding = last_inputs(network, x)
    with torch.autocast(embedding.device.type, enabled=False):
        outputs: Tensor = _last(network)(embedding)
        uncertainty = {"uncertainty/head": uncertainty_head(network)(embedding)}
    return {**summarise([Draw(outputs, embedding)], task), **uncertainty}


def _last(network: Headed) -> nn.Module:
    head = network.head
    assert isinstance(head, Readout)
    return head.last
