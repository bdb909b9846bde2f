"""Function-space variational inference (Rudner et al., 2021; Band et al., 2021).

Every weight and bias of the last layer has its own Gaussian; everything else is fixed.
The prior is one on functions, not on weights: it pulls the outputs at inducing inputs
x, where the network is linearised in its random weights. The outputs are then Gaussian
with variance sum_j J_j(x)^2 sigma_j^2. For a last layer the Jacobian J is the input of
that layer, and 1 for the bias, so this is exact and costs next to nothing. The
objective is the released one: outputs count as independent, and the KL term of a batch
is divided by the number of inducing inputs and by the batch, not by the training split.

Inducing inputs are items of the batch. In the released code they pass through the
network once more, normalised as a separate batch; here they keep the features that they
have in the full batch. Draws share the features too, so several cost one pass. The
squared error of a regression stands for Gaussian noise of variance 1/2.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import (
    Draw,
    Headed,
    Readout,
    features_of,
    headed,
    last_inputs,
    regression_readout,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    kernels_decay,
    likelihood_loss,
    summarise,
)
from qualms.shelf import traits
from qualms.spec import Task

_LOG_VARIANCE = (-20.0, -18.0)
"""Range of the initial logarithms of variances."""
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
    """Train a Gaussian last layer under a prior on functions; predict by `draws` of it.

    Args:
        prior_cov: variance of the prior of every output, around 0.
        inducing: number of items of a batch at which outputs are compared with the
            prior.
        stochastic_linearisation: take the mean of these outputs from a draw of the
            weights, as some of the published runs do. The true mean, of a network that
            is linear in its random weights, is the output of the mean weights.
        l2: factor of the sum of squares of the parameters of normalisation in the
            loss: 0 for the released code's loss type 3, more for its type 5.
        train_draws: draws of the last layer over which the likelihood is averaged.
        draws: draws of the last layer to predict, each for all items of a batch.
    """
    _check(prior_cov, l2)
    _check_counts(inducing=inducing, train_draws=train_draws, draws=draws)

    def loss(network: nn.Module, batch: Batch, moment: Moment) -> Tensor:
        network = headed(network)
        last, inputs = _last(network), last_inputs(network, batch.x)
        with torch.autocast(inputs.device.type, enabled=False):
            drawn = last.draws(inputs, train_draws)
            fits = [likelihood_loss(outputs, batch, network.task) for outputs in drawn]
            # A batch comes in random order: its first items are a random choice.
            points = inputs[:inducing]
            mean = last(points) if stochastic_linearisation else last.mean(points)
            kl = _divergence(mean, last.variance(points), prior_cov) / len(points)
        objective = torch.stack(fits).mean() + kl / moment.batch
        return objective + l2 * _squares(network) if l2 else objective

    return Method(
        build=_build,
        loss=loss,
        predict=partial(_predict, draws),
        groups=_groups,
        needs=("items classes", "items values"),
        header={"draws": "models"},
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
        """Log-variances of the weights, and in the last column of the biases."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Draw outputs (B, K) of inputs (B, F) once."""
        return self.draws(inputs, 1)[0]

    def draws(self, inputs: Tensor, count: int) -> Tensor:
        """Return the outputs (count, B, K) of `count` draws of the layer."""
        logs = self.log_variance
        noise = torch.randn(count, *logs.shape, dtype=logs.dtype, device=logs.device)
        shifts = (0.5 * logs).exp() * noise
        weights = self.mean.weight + shifts[..., :-1]
        biases = self.mean.bias + shifts[..., -1]
        return torch.einsum("bf,skf->sbk", inputs, weights) + biases[:, None]

    def variance(self, inputs: Tensor) -> Tensor:
        """Return the variance (B, K) of the outputs over all draws."""
        variances = self.log_variance.exp()
        return functional.linear(inputs.square(), variances[:, :-1], variances[:, -1])


def _build(backbone: nn.Module, task: Task) -> Headed:
    """Build a head with one logit for each class, for two classes too."""
    trunk: nn.Module = nn.Identity()
    width, outputs = features_of(backbone), task.classes
    if "values" in traits(task.name):
        plain = regression_readout(width)
        assert isinstance(plain.last, nn.Linear)
        trunk, width, outputs = plain.trunk, plain.last.in_features, 1
    if outputs is None:
        raise ValueError(f"fsvi needs a number of classes, got {task}")
    return Headed(backbone, Readout(trunk, _GaussianLast(width, outputs)), task)


def _divergence(mean: Tensor, variance: Tensor, prior: float) -> Tensor:
    """Return the summed KL of N(mean, variance) from N(0, prior) in nats, 0-d."""
    excess = (variance + mean.square()) / prior - 1
    return 0.5 * (excess + math.log(prior) - variance.log()).sum()


def _squares(network: nn.Module) -> Tensor:
    norms = [layer for layer in network.modules() if isinstance(layer, _NORMS)]
    parts = [weight.flatten() for layer in norms for weight in layer.parameters()]
    return torch.cat(parts).square().sum() if parts else torch.zeros(())


def _groups(network: nn.Module) -> list[dict[str, Any]]:
    """Return parameter groups; the last layer does not decay, as it has a prior."""
    random = list(_last(network).parameters())
    last = {"params": random, "weight_decay": 0.0}
    return [*kernels_decay(network, apart=random), last]


def _predict(
    draws: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    inputs = last_inputs(headed(network), x)
    with torch.autocast(inputs.device.type, enabled=False):
        outputs = _last(network).draws(inputs, draws)
        return summarise((Draw(each, inputs) for each in outputs), task)


def _last(network: nn.Module) -> _GaussianLast:
    head = headed(network).head
    assert isinstance(head, Readout)
    assert isinstance(head.last, _GaussianLast)
    return head.last
