"""Variational inference over the kernels of a network, whatever noise they have."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from qualms.methods._annealing import Annealing, check_annealing, kl_weight
from qualms.methods._flipout import Flipout, Noise, divergence
from qualms.methods._groups import kernels_decay
from qualms.methods._headed import Headed, headed
from qualms.methods._items import Items
from qualms.methods._layers import Layer, replaced
from qualms.methods._method import Batch, Method, Moment
from qualms.methods._plain import likelihood_terms, passes, plain_head, plain_loss
from qualms.methods._truncated import truncated_normal
from qualms.spec import Task

Prior = Literal["tied", "centred"] | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a variational method is told; see `mfvi` for each."""

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


def variational(noise: Noise, options: Options) -> Method:
    """The method whose kernels are means plus standard deviations times `noise`."""
    return Method(
        build=partial(_build, noise, options),
        loss=partial(_loss, options),
        predict=partial(passes, options.draws),
        groups=partial(_groups, options),
    )


def flipped(network: Headed, noise: Noise, options: Options) -> Headed:
    """`network` with random kernels, in place."""
    items = Items()
    replaced(network, partial(_random, noise, options, items))
    items.watch(network.backbone)
    return network


def _check_prior(prior: Prior) -> None:
    if isinstance(prior, str) and prior not in get_args(get_args(Prior)[0]):
        raise ValueError(
            f"prior must be 'tied', 'centred' or a standard deviation, got {prior!r}"
        )
    if not isinstance(prior, str) and not prior > 0:
        raise ValueError(f"the prior's standard deviation is positive, got {prior}")


def _build(noise: Noise, options: Options, backbone: nn.Module, task: Task) -> Headed:
    return flipped(plain_head(backbone, task), noise, options)


def _random(noise: Noise, options: Options, items: Items, layer: Layer) -> Flipout:
    middle = math.log(math.expm1(options.stddev_mean))
    spread = options.stddev_stddev * truncated_normal(layer.weight)
    return Flipout(layer, noise, middle + spread, items)


def _loss(options: Options, network: nn.Module, batch: Batch, moment: Moment) -> Tensor:
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
    """KL of all random kernels from the prior, 0-d."""
    terms = [
        divergence(layer, stddev=_prior_stddev(prior, layer), tied=prior == "tied")
        for layer in _layers(network)
    ]
    return torch.stack(terms).sum()


def _prior_stddev(prior: Prior, layer: Flipout) -> float:
    if not isinstance(prior, str):
        return prior
    fan_in = layer.weight[0].numel()
    return math.sqrt(2 / fan_in)


def _squares(network: nn.Module) -> Tensor:
    """Sum of squares of biases and of what normalisation shifts and scales by."""
    fixed: list[Tensor] = [w for w in network.parameters() if w.ndim == 1]
    return torch.cat(fixed).square().sum() if fixed else torch.zeros(())


def _groups(options: Options, network: nn.Module) -> list[dict[str, Any]]:
    """The run's weight decay acts on kernels that no prior pulls to 0 already."""
    layers = list(_layers(network))
    steady: list[Tensor] = [layer.rho for layer in layers]
    if options.prior != "tied":
        steady += [layer.weight for layer in layers]
    random = {"params": steady, "weight_decay": 0.0}
    return [*kernels_decay(network, apart=steady), random]


def _layers(network: nn.Module) -> Iterator[Flipout]:
    return (layer for layer in network.modules() if isinstance(layer, Flipout))
