"""Variational inference over the kernels of a network, for any noise on them.

The weight of the KL term may rise during training. Band et al. (2021) describe a
cyclical schedule after Bowman et al. (2015), whose schedule rises only once, and give
no constants; their runs rose linearly over 200 epochs and stopped after 90, at 0.45.
Here "cyclical" is the schedule of that name (Fu et al., 2019, arXiv:1903.10145) with
its authors' four cycles, each rising in its first half.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from qualms.methods._batch import Batch, Moment
from qualms.methods._flipout import Flipout, Noise, divergence
from qualms.methods._headed import Headed, headed
from qualms.methods._layers import (
    ItemCounter,
    Layer,
    check_first_pass,
    replace_layers,
    truncated_normal,
)
from qualms.methods._method import Method
from qualms.methods._plain import (
    kernels_decay,
    likelihood_terms,
    passes,
    plain_head,
    plain_loss,
)
from qualms.spec import Task

Annealing = Literal["linear", "cyclical", "none"]
Prior = Literal["tied", "centred"] | float


@dataclass(frozen=True, slots=True, kw_only=True)
class VariationalOptions:
    """Options of a variational method; `mfvi` explains each."""

    stddev_mean: float
    stddev_stddev: float
    prior: Prior
    annealing: Annealing
    annealing_epochs: int
    tempering: float
    l2: float
    draws: int

    def __post_init__(self) -> None:
        check_annealing(
            annealing=self.annealing,
            epochs=self.annealing_epochs,
            tempering=self.tempering,
        )
        _check_prior(self.prior)
        if not (self.stddev_mean > 0 and self.stddev_stddev >= 0):
            raise ValueError(
                "stddev_mean must be positive and stddev_stddev not negative, got "
                f"{self.stddev_mean} and {self.stddev_stddev}"
            )
        if not self.l2 >= 0:
            raise ValueError(f"l2 must not be negative, got {self.l2}")
        if self.draws < 1:
            raise ValueError(f"draws must be at least 1, got {self.draws}")


def variational(noise: Noise, options: VariationalOptions) -> Method:
    """Return the method whose kernels are means plus deviations times `noise`."""
    return Method(
        build=partial(_build, noise, options),
        loss=partial(_loss, options),
        predict=partial(passes, options.draws),
        groups=partial(_groups, options),
        epoch=partial(check_first_pass, Flipout),
        header={"draws": "models"},
    )


def with_random_kernels(
    network: Headed, noise: Noise, options: VariationalOptions
) -> Headed:
    """Make the kernels of `network` random, in place."""
    items = ItemCounter()
    replace_layers(network, partial(_random, noise, options, items))
    items.watch(network.backbone)
    return network


def kl_weight(
    moment: Moment,
    *,
    annealing: Annealing,
    epochs: int = 200,
    cycles: int = 4,
    rising: float = 0.5,
    tempering: float = 1.0,
) -> Tensor:
    """Return the factor of the KL term in this step, 0-d, at most `tempering`.

    Args:
        moment: how far training has come.
        annealing: "linear" rises from 0 over `epochs` and then stays, "cyclical"
            restarts in each of `cycles` equal parts of training, "none" is constant.
        epochs: length of the linear rise, which training need not reach.
        cycles: parts of the cyclical schedule.
        rising: share of a cycle in which the factor rises.
        tempering: factor at the end of a rise; below 1 for a cold posterior.
    """
    match annealing:
        case "linear":
            weight = moment.progress * (moment.epochs / epochs)
        case "cyclical":
            # Progress counts this step, so positions within a cycle lie in (0, 1].
            position = moment.progress * cycles
            weight = (position - position.ceil() + 1) / rising
        case "none":
            weight = moment.progress.new_ones(())
    return weight.clamp(max=1.0) * tempering


def check_annealing(*, annealing: str, epochs: int, tempering: float) -> None:
    """Raise unless the schedule exists and its numbers are valid."""
    if annealing not in get_args(Annealing):
        raise ValueError(
            f"annealing must be 'linear', 'cyclical' or 'none', got {annealing!r}"
        )
    if epochs < 1:
        raise ValueError(
            f"a linear rise takes at least 1 epoch, got {epochs}; choose annealing "
            "'none' for no rise"
        )
    if not tempering >= 0:
        raise ValueError(f"tempering must not be negative, got {tempering}")


def _check_prior(prior: Prior) -> None:
    if isinstance(prior, str) and prior not in get_args(get_args(Prior)[0]):
        raise ValueError(
            f"prior must be 'tied', 'centred' or a standard deviation, got {prior!r}"
        )
    if not isinstance(prior, str) and not prior > 0:
        raise ValueError(
            f"the prior's standard deviation must be positive, got {prior}"
        )


def _build(
    noise: Noise, options: VariationalOptions, backbone: nn.Module, task: Task
) -> Headed:
    return with_random_kernels(plain_head(backbone, task), noise, options)


def _random(
    noise: Noise, options: VariationalOptions, items: ItemCounter, layer: Layer
) -> Flipout:
    middle = math.log(math.expm1(options.stddev_mean))
    spread = options.stddev_stddev * truncated_normal(layer.weight)
    return Flipout(layer, noise, middle + spread, items)


def _loss(
    options: VariationalOptions, network: nn.Module, batch: Batch, moment: Moment
) -> Tensor:
    weight = kl_weight(
        moment,
        annealing=options.annealing,
        epochs=options.annealing_epochs,
        tempering=options.tempering,
    )
    terms = moment.items * likelihood_terms(batch, headed(network).task)
    loss = plain_loss(network, batch, moment)
    loss = loss + weight * _divergence(options.prior, network) / terms
    return loss + options.l2 * _squares(network) if options.l2 else loss


def _divergence(prior: Prior, network: nn.Module) -> Tensor:
    """Return the KL of all random kernels from the prior, 0-d."""
    terms = [
        divergence(layer, stddev=_prior_stddev(prior, layer), tied=prior == "tied")
        for layer in _layers(network)
    ]
    return torch.stack(terms).sum()


def _prior_stddev(prior: Prior, layer: Flipout) -> float:
    if not isinstance(prior, str):
        return prior
    return math.sqrt(2 / layer.fan_in)


def _squares(network: nn.Module) -> Tensor:
    """Return the sum of squares of biases and of normalisation parameters."""
    fixed: list[Tensor] = [w for w in network.parameters() if w.ndim == 1]
    return torch.cat(fixed).square().sum() if fixed else torch.zeros(())


def _groups(options: VariationalOptions, network: nn.Module) -> list[dict[str, Any]]:
    """Return parameter groups; kernels decay unless the prior pulls them to 0."""
    layers = list(_layers(network))
    steady: list[Tensor] = [layer.rho for layer in layers]
    if options.prior != "tied":
        steady += [layer.weight for layer in layers]
    random = {"params": steady, "weight_decay": 0.0}
    return [*kernels_decay(network, apart=steady), random]


def _layers(network: nn.Module) -> Iterator[Flipout]:
    return (layer for layer in network.modules() if isinstance(layer, Flipout))
