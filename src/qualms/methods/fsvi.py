"""Function-space variational inference (Rudner et al., 2021; Band et al., 2021).

The last layer has a Gaussian of its own for every weight and bias, all else is fixed.
What is pulled to the prior is not weights but functions: the outputs at inducing inputs
x, where the network is linearised in its random weights. Its outputs are then Gaussian
with variance sum_j J_j(x)^2 sigma_j^2, and for a last layer the Jacobian J is what the
layer sees, and 1 for the bias; so this is exact, and costs next to nothing. The
objective is the one released: outputs count as independent, and the KL term of a batch
is divided by the number of inducing inputs and by the batch, not by the training split.

Inducing inputs are items of the batch. In the released code they pass the network once
more, normalised as a batch of their own; here the features of the batch serve for both.
Draws share the features too: several cost one pass. The published runs begin with a
network whose option `zero_last` is true. The squared error of a regression stands for
Gaussian noise of variance 1/2.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._groups import kernels_decay
from qualms.methods._headed import (
    Headed,
    Readout,
    features_of,
    headed,
    last_inputs,
    regression_readout,
)
from qualms.methods._method import Batch, Method, Moment
from qualms.methods._plain import likelihood_loss, summarise
from qualms.spec import Task

_LOG_VARIANCE = (-20.0, -18.0)
"""Between which every logarithm of a variance begins."""
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)


def fsvi(
    *,
    prior_cov: float = 15.0,
    inducing: int = 10,
    stochastic_linearisation: bool = False,
    l2: float = 0.0,
    train_draws: int = 5,
    draws: int = 5,
) -> Method:
    """A Gaussian last layer under a prior on functions; `draws` of it to predict.

    Args:
        prior_cov: variance of the prior of every output, around 0.
        inducing: items of a batch at which outputs are compared with the prior.
        stochastic_linearisation: take the mean of the outputs there from a draw of the
            weights, as some of the published runs do. Their true mean, for a network
            that is linear in its random weights, is that of the mean weights.
        l2: what the sum of squares of the parameters of normalisation is multiplied by
            in the loss: 0 for the released code's loss type 3, more for its type 5.
        train_draws: of the last layer, over which the likelihood is averaged.
        draws: of the last layer, each one network for all items of a batch.
    """
    _check(prior_cov, l2)
    _check_counts(inducing=inducing, train_draws=train_draws, draws=draws)

    def loss(network: nn.Module, batch: Batch, moment: Moment) -> Tensor:
        whole, last = headed(network), _last(network)
        inputs = last_inputs(whole, batch.x)
        with torch.autocast(inputs.device.type, enabled=False):
            drawn = last.draws(inputs, train_draws)
            fits = [likelihood_loss(outputs, batch, whole.task) for outputs in drawn]
            # A batch comes in random order: its first items are a random choice.
            chosen = inputs[:inducing]
            mean = last(chosen) if stochastic_linearisation else last.mean(chosen)
            pull = _divergence(mean, last.variance(chosen), prior_cov) / len(chosen)
        objective = torch.stack(fits).mean() + pull / moment.batch
        return objective + l2 * _squares(network) if l2 else objective

    return Method(
        build=_build,
        loss=loss,
        predict=partial(_predict, draws),
        groups=_groups,
        tasks=frozenset({"classification", "regression"}),
    )


def _check(prior_cov: float, l2: float) -> None:
    if not prior_cov > 0:
        raise ValueError(f"prior_cov must be positive, got {prior_cov}")
    if not l2 >= 0:
        raise ValueError(f"l2 must not be negative, got {l2}")


def _check_counts(*, inducing: int, train_draws: int, draws: int) -> None:
    if min(inducing, train_draws, draws) < 1:
        raise ValueError(
            "inducing, train_draws and draws must be at least 1, got "
            f"{inducing}, {train_draws} and {draws}"
        )


class _GaussianLast(nn.Module):
    """A linear layer whose every weight and bias is Gaussian."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.mean = nn.Linear(width, outputs)
        self.log_variance = nn.Parameter(
            torch.empty(outputs, width + 1).uniform_(*_LOG_VARIANCE)
        )
        """Of the weights, and in the last column of the biases."""

    def forward(self, inputs: Tensor) -> Tensor:
        """One draw of the outputs (B, K) of inputs (B, F)."""
        return self.draws(inputs, 1)[0]

    def draws(self, inputs: Tensor, count: int) -> Tensor:
        """Outputs (count, B, K) of as many draws of the layer."""
        logs = self.log_variance
        noise = torch.randn(count, *logs.shape, dtype=logs.dtype, device=logs.device)
        shifts = (0.5 * logs).exp() * noise
        weights = self.mean.weight + shifts[..., :-1]
        biases = self.mean.bias + shifts[..., -1]
        return torch.einsum("bf,skf->sbk", inputs, weights) + biases[:, None]

    def variance(self, inputs: Tensor) -> Tensor:
        """(B, K) of the outputs over all draws."""
        variances = self.log_variance.exp()
        return functional.linear(inputs.square(), variances[:, :-1], variances[:, -1])


def _build(backbone: nn.Module, task: Task) -> Headed:
    """Softmax over one logit for each class, for two classes too."""
    trunk: nn.Module = nn.Identity()
    width, outputs = features_of(backbone), task.classes
    if task.name == "regression":
        plain = regression_readout(width)
        assert isinstance(plain.last, nn.Linear)
        trunk, width, outputs = plain.trunk, plain.last.in_features, 1
    if outputs is None:
        raise ValueError(f"fsvi needs a number of classes, got {task}")
    return Headed(backbone, Readout(trunk, _GaussianLast(width, outputs)), task)


def _divergence(mean: Tensor, variance: Tensor, prior: float) -> Tensor:
    """Summed KL of N(mean, variance) from N(0, prior) in nats, 0-d."""
    excess = (variance + mean.square()) / prior - 1
    return 0.5 * (excess + math.log(prior) - variance.log()).sum()


def _squares(network: nn.Module) -> Tensor:
    norms = [layer for layer in network.modules() if isinstance(layer, _NORMS)]
    parts = [weight.flatten() for layer in norms for weight in layer.parameters()]
    return torch.cat(parts).square().sum() if parts else torch.zeros(())


def _groups(network: nn.Module) -> list[dict[str, Any]]:
    """No weight decay for the last layer, whose prior is one on functions."""
    random = list(_last(network).parameters())
    last = {"params": random, "weight_decay": 0.0}
    return [*kernels_decay(network, apart=random), last]


def _predict(
    draws: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    inputs = last_inputs(headed(network), x)
    with torch.autocast(inputs.device.type, enabled=False):
        return summarise(_last(network).draws(inputs, draws), task)


def _last(network: nn.Module) -> _GaussianLast:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, _GaussianLast)
    return head.last
