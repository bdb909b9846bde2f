"""A mean and a variance for every item (Nix & Weigend, 1994).

As trained by Gustafsson et al. (2023, arXiv:2302.03679): two separate heads, for the
mean and the logarithm of the variance; the squared error first, then the likelihood
with the backbone held still, then the likelihood for all. The held backbone does stand
still, but for its normalisation statistics: their code with a current torch.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor, nn

from qualms.methods._headed import Headed, TwoHeads, features_of, headed, read
from qualms.methods._method import Batch, Batches, Method, Moment
from qualms.methods._mixture import RIDGE
from qualms.methods._plain import check_epochs, weighted_mean
from qualms.methods._select import Selectors, rules
from qualms.spec import Task

# Beyond it a variance in float32 is infinite, and no file would take it.
_LARGEST = 80.0


def gaussian(
    *,
    warmup: int = 20,
    frozen: int = 5,
    select: Sequence[str] = (),
    ridge: float = RIDGE,
) -> Method:
    """Mean and variance of a Gaussian likelihood, and scores that select items.

    Args:
        warmup: epochs of squared error on the mean alone.
        frozen: epochs of likelihood after them that train the heads only.
        select: scores of the features to predict as select/<name>, larger for items to
            leave out: gmm<components>, knn<neighbours>, knn<neighbours>_l2.
        ridge: added to the variance of every feature within a component of a mixture.
    """
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must be a number from 0 on, got {ridge}")
    check_epochs(warmup=warmup, frozen=frozen)
    phase = partial(_phase, warmup, frozen)
    return Method(
        build=partial(_build, tuple(select), ridge),
        loss=partial(_loss, phase),
        predict=_predict,
        phase=phase,
        after=_after,
        tasks=frozenset({"regression"}),
        select=rules(select),
    )


def _phase(warmup: int, frozen: int, epoch: int) -> str:
    if epoch < warmup:
        return "warmup"
    return "frozen" if epoch < warmup + frozen else "all"


def _build(
    select: tuple[str, ...], ridge: float, backbone: nn.Module, task: Task
) -> Headed:
    heads = TwoHeads(features_of(backbone))
    return Headed(backbone, heads, task, Selectors(select, ridge=ridge))


def _loss(
    phase: Callable[[int], str], network: nn.Module, batch: Batch, moment: Moment
) -> Tensor:
    heads, target = headed(network).head, batch.target.float()
    assert isinstance(heads, TwoHeads)
    form = phase(moment.epoch)
    with torch.no_grad() if form == "frozen" else nullcontext():
        features = headed(network).backbone(batch.x)
    if form == "warmup":
        # Without the other head, whose gradient must be none rather than zero: the
        # optimiser is not to count steps for it.
        mean = read(heads.first, features)[:, 0]
        return weighted_mean((target - mean).square(), batch)
    mean, log_variance = read(heads, features).unbind(1)
    error = (target - mean).square()
    return weighted_mean((-log_variance).exp() * error + log_variance, batch)


def _predict(network: nn.Module, x: Tensor, _task: Task) -> dict[str, Tensor]:
    features = headed(network).backbone(x)
    mean, log_variance = read(headed(network).head, features).unbind(1)
    var = log_variance.clamp(-_LARGEST, _LARGEST).exp()
    scores: dict[str, Tensor] = headed(network).found(features)
    return {"mean": mean[None], "var": var[None], **scores}


def _after(network: nn.Module, batches: Batches) -> None:
    found = headed(network).found
    assert isinstance(found, Selectors)
    found.fit(headed(network).backbone(batch.x) for batch in batches())
