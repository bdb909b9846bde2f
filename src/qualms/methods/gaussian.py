"""A mean and a variance for every item (Nix & Weigend, 1994).

As trained by Gustafsson et al. (2023, arXiv:2302.03679): two separate heads, for the
mean and for the logarithm of the variance. Training has three phases: the squared
error, the likelihood with the backbone frozen, and the likelihood for all. While
frozen, only the normalisation statistics of the backbone move, as in their code with a
current torch.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Batches, Moment
from qualms.methods._headed import Headed, TwoHeads, features_of, headed, read_head
from qualms.methods._method import Method
from qualms.methods._plain import check_epochs, weighted_mean
from qualms.methods._select import SelectionScores, pooling_rules
from qualms.spec import Task

_LARGEST = 80.0
"""Logarithm of a variance beyond which it is infinite in float32."""


def gaussian(
    *,
    warmup: int = 20,
    frozen: int = 5,
    select: Sequence[str] = (),
    ridge: float = 1e-6,
) -> Method:
    """Predict mean and variance of a Gaussian likelihood, and scores that select items.

    Args:
        warmup: epochs of squared error, for the mean alone.
        frozen: epochs after them in which the likelihood trains only the heads.
        select: scores of the features to predict as select/<name>, larger for items to
            leave out: gmm<components>, knn<neighbours>, knn<neighbours>_l2.
        ridge: number added to the variance of every feature within a component of a
            mixture.
    """
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must be a finite number, at least 0, got {ridge}")
    check_epochs(warmup=warmup, frozen=frozen)
    phase = partial(_phase, warmup, frozen)
    return Method(
        build=partial(_build, tuple(select), ridge),
        loss=partial(_loss, phase),
        predict=_predict,
        phase=phase,
        after=_after,
        needs=("values",),
        select=pooling_rules(select),
    )


def _phase(warmup: int, frozen: int, epoch: int) -> str:
    if epoch < warmup:
        return "warmup"
    return "frozen" if epoch < warmup + frozen else "all"


def _build(
    select: tuple[str, ...], ridge: float, backbone: nn.Module, task: Task
) -> Headed:
    heads = TwoHeads(features_of(backbone))
    return Headed(backbone, heads, task, SelectionScores(select, ridge=ridge))


def _loss(
    phase: Callable[[int], str], network: nn.Module, batch: Batch, moment: Moment
) -> Tensor:
    network = headed(network)
    heads, target = network.head, batch.target.float()
    assert isinstance(heads, TwoHeads)
    current = phase(moment.epoch)
    with torch.no_grad() if current == "frozen" else nullcontext():
        features = network.backbone(batch.x)
    if current == "warmup":
        # The other head is left out: its gradient must be None rather than zero, so
        # that the optimiser counts no steps for it.
        mean = read_head(heads.first, features)[:, 0]
        return weighted_mean((target - mean).square(), batch)
    mean, log_variance = read_head(heads, features).unbind(1)
    error = (target - mean).square()
    return weighted_mean((-log_variance).exp() * error + log_variance, batch)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    network = headed(network)
    features = network.backbone(x)
    mean, log_variance = read_head(network.head, features).unbind(1)
    var = log_variance.clamp(-_LARGEST, _LARGEST).exp()
    scores: dict[str, Tensor] = network.fitted(features)
    return {"mean": mean[None], "var": var[None], **scores}


def _after(network: nn.Module, batches: Batches) -> None:
    network = headed(network)
    scores = network.fitted
    assert isinstance(scores, SelectionScores)
    scores.fit(network.backbone(batch.x) for batch in batches())
