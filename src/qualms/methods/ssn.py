"""Stochastic segmentation networks (Monteiro et al., 2020, arXiv:2006.06015).

The logits of all pixels of an image have a joint Gaussian: a mean, a separate variance
of each logit, and a factor of low rank that correlates all of them. Three 1x1
convolutions on the features predict the three. Draws of the logits are complete label
maps that raters could have drawn, at the cost of one pass of the network. For the label
of an image, this is the heteroscedastic classifier of Collier et al. (2021).

A draw is mean + deviation * noise + factor @ noise. No covariance is ever computed or
factorised, so no factorisation can fail. The released code of VALUES (Kahl et al.,
2024) builds a distribution from a Cholesky decomposition, and falls back to independent
logits where it fails. Its HRNet uses the logits of the mean as the logarithm of the
variance; here both have separate outputs.

The loss is the negative logarithm of the mean likelihood of a label map over a few
draws. It is a sum over pixels, as in the paper, so it is large: thousands for a volume.
Adam and RMSprop are not affected; a norm at which gradients are clipped has to be large
too, and the weight decay of a run weighs less than beside a mean over pixels.

The factor starts small, at a hundredth of the outputs of a new layer, and learns at a
tenth of the rate of the other outputs. At the usual size, as in the released code
(`factor_scale=1`), it fills complete images with either class, and the loss, which
rewards the best of a few draws, never makes it small again: after a thousand steps such
a network segments worse than a plain one.

For two classes the difference of their logits is drawn, which determines their
probabilities, in half of the time.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import Headed, Readout, headed
from qualms.methods._method import Method
from qualms.methods._plain import plain_head, summarise, weighted_mean
from qualms.shelf import traits
from qualms.spec import Task

_TOGETHER = 5
"""Draws whose correlated part is computed at once: time against memory."""
_TWO = 2


def ssn(
    *,
    rank: int = 10,
    draws: int = 10,
    train_draws: int = 10,
    mean_epochs: int = 5,
    least_variance: float = 1e-5,
    factor_scale: float = 0.1,
) -> Method:
    """Learn a Gaussian over all logits of an item; predict by `draws` of them.

    Args:
        rank: columns of the factor. Kahl et al. (2024) have 10 for street scenes and
            state 5 for volumes.
        draws: draws for each item.
        train_draws: draws for the likelihood of an item in training.
        mean_epochs: epochs at the start in which the factor is 0.
        least_variance: number added to the variances.
        factor_scale: multiplies the outputs for the factor, and also their initial
            weights; 1 for the released code.
    """
    if rank < 1 or draws < 1 or train_draws < 1:
        raise ValueError(
            "rank, draws and train_draws must be at least 1, got "
            f"{rank}, {draws} and {train_draws}"
        )
    if mean_epochs < 0 or not least_variance >= 0:
        raise ValueError(
            "mean_epochs and least_variance must not be negative, got "
            f"{mean_epochs} and {least_variance}"
        )
    if not 0 < factor_scale < math.inf:
        raise ValueError(f"factor_scale must be above 0, got {factor_scale}")
    gaussian = partial(
        logit_gaussian, rank=rank, least=least_variance, scale=factor_scale
    )

    def loss(network: nn.Module, batch: Batch, moment: Moment) -> Tensor:
        task = headed(network).task
        logits = gaussian(network(batch.x), task)
        if moment.epoch < mean_epochs:
            logits = logits._replace(factor=None)
        logs = draw_likelihoods(logits, batch.target, task, train_draws)
        return weighted_mean(math.log(train_draws) - logs.logsumexp(1), batch)

    def predict(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
        drawn = _in_parts(gaussian(network(x), task), draws)
        shape = (len(x), -1, *x.shape[2:]) if "pixels" in traits(task.name) else None
        logits = (draw.reshape(shape or draw.shape) for draw in drawn)
        return _checked(summarise(logits, task))

    return Method(
        build=partial(_build, rank, factor_scale),
        loss=loss,
        predict=predict,
        phase=lambda epoch: "correlated" if epoch >= mean_epochs else "independent",
        needs=("probabilities",),
        header={"draws": "labels"},
    )


class LogitGaussian(NamedTuple):
    """A Gaussian over the K logits of V pixels, for every item; all in float32.

    K is the number of classes, or 1 for two classes: the difference of their logits.
    """

    mean: Tensor
    """(B, K * V)."""
    deviation: Tensor
    """(B, K * V) standard deviations of the independent part of each logit."""
    factor: Tensor | None
    """(B, rank, K * V); its product with its transpose is what logits have in common.
    None for independent logits."""


def logit_gaussian(
    outputs: Tensor, task: Task, *, rank: int, least: float, scale: float = 1.0
) -> LogitGaussian:
    """Return the Gaussian that `outputs` (B, (2 + rank) * C, *space) define.

    They are C means, C logarithms of variances, and `rank` times C entries of the
    factor, which are multiplied by `scale`.
    """
    assert task.classes is not None
    count, space = len(outputs), outputs.shape[2:]
    parts = outputs.float().view(count, 2 + rank, task.classes, *space)
    mean, variance, factor = parts[:, 0], parts[:, 1].exp() + least, parts[:, 2:]
    if task.classes == _TWO:
        mean = mean[:, 1] - mean[:, 0]
        variance = variance[:, 0] + variance[:, 1]
        factor = factor[:, :, 1] - factor[:, :, 0]
    # Flattened last, as maps with channels last need no copy then.
    return LogitGaussian(
        mean.reshape(count, -1),
        variance.sqrt().reshape(count, -1),
        factor.reshape(count, rank, -1) * scale,
    )


def draw_likelihoods(
    gaussian: LogitGaussian, target: Tensor, task: Task, draws: int
) -> Tensor:
    """Draw logits and return the log-likelihoods (B, draws) of `target` (B, *space).

    They are sums over pixels; those with the task's `ignore` label add 0.
    """
    logits = logit_draws(gaussian, draws)
    labels = target.long().view(len(target), -1)
    if task.classes == _TWO:
        signed = torch.where(labels[:, None] == 1, logits, -logits)
        logs = functional.logsigmoid(signed)
        if task.ignore is not None:
            logs = torch.where(labels[:, None] == task.ignore, 0.0, logs)
        return logs.sum(2)
    assert task.classes is not None
    flat = logits.view(logits.shape[0] * draws, task.classes, -1)
    ignored = -100 if task.ignore is None else task.ignore
    loss = functional.cross_entropy(
        flat, labels.repeat_interleave(draws, 0), ignore_index=ignored, reduction="none"
    )
    return -loss.view(len(logits), draws, -1).sum(2)


def _build(rank: int, scale: float, backbone: nn.Module, task: Task) -> Headed:
    if task.classes is None:
        raise ValueError(f"ssn needs a number of classes, got {task}")
    network = plain_head(backbone, task, (2 + rank) * task.classes)
    assert isinstance(network.head, Readout)
    last = network.head.last
    assert isinstance(last, nn.Linear | nn.Conv2d | nn.Conv3d)
    with torch.no_grad():
        last.weight[2 * task.classes :] *= scale
        if last.bias is not None:
            last.bias[2 * task.classes :] *= scale
    return network


def _in_parts(gaussian: LogitGaussian, draws: int) -> Iterator[Tensor]:
    """Yield draws (B, K * V) of the logits, computed a few at a time."""
    for first in range(0, draws, _TOGETHER):
        yield from logit_draws(gaussian, min(_TOGETHER, draws - first)).unbind(1)


def logit_draws(gaussian: LogitGaussian, draws: int) -> Tensor:
    """Draw logits (B, draws, K * V)."""
    mean, deviation, factor = gaussian
    centre = mean[:, None].expand(-1, draws, -1)
    normal = partial(torch.randn, dtype=mean.dtype, device=mean.device)
    if factor is not None:
        noise = normal(len(mean), draws, factor.shape[1])
        with torch.autocast(mean.device.type, enabled=False):
            centre = torch.baddbmm(centre, noise, factor)
    return torch.addcmul(centre, deviation[:, None], normal(*centre.shape))


def _checked(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return `arrays`; raise if logits that are not finite led to them."""
    for values in arrays.values():
        if values.is_floating_point() and not bool(values.isfinite().all()):
            raise ValueError(
                "the means, variances and factors of ssn must be finite, and some are "
                "not: its training has diverged; train with a smaller learning rate, "
                "or clip gradients"
            )
    return arrays
