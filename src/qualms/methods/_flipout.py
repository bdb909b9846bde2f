"""Layers with random weights: flipout (Wen et al., 2018, arXiv:1803.04386).

A weight is its mean plus its standard deviation times noise. The noise is drawn once
for a batch; every item turns it by signs of its own, one for each input and one for
each output channel. As long as noise and turned noise are equally distributed each item
has a fair draw of the weights, no two items have correlated ones, and the cost is that
of two convolutions.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._items import Items, spread
from qualms.methods._layers import Layer, channels_of


class Noise(NamedTuple):
    """What disturbs the D weights of a layer: a distribution that signs leave alone."""

    shared: Callable[[Tensor], Tensor]
    """Noise of the shape of a tensor: the part that all items of a batch share."""
    own: Callable[[Tensor], Tensor]
    """Signs (B, ...) of a batch to signs times what else each item has of its own."""
    variance: Callable[[int], float]
    """D to the variance of the noise of one weight."""
    entropy: Callable[[int], float]
    """D to the differential entropy of the noise, in nats."""


class Flipout(nn.Module):
    """A convolution or linear layer with random weights and a fixed bias.

    The weights' means are the weights of the layer it replaces, under the same name.
    Axis 0 of the input counts items, or parts of them side by side.
    """

    def __init__(
        self, layer: Layer, noise: Noise, rho: Tensor, items: Items | None = None
    ) -> None:
        super().__init__()
        self.weight = layer.weight
        self.rho = nn.Parameter(rho)
        """Standard deviations before a softplus."""
        self.bias = layer.bias
        self.noise = noise
        self._items = items or Items()
        self._run = _operation(layer)
        self._channels = channels_of(layer)
        self._axis = -1 if isinstance(layer, nn.Linear) else 1

    @property
    def stddev(self) -> Tensor:
        """Standard deviations, to be multiplied by the noise."""
        return functional.softplus(self.rho)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, C, *space), or (B, ..., C) of a linear layer."""
        incoming, outgoing = self._signs(x)
        disturbance = self.stddev * self.noise.shared(self.rho)
        mean = self._run(x, self.weight, self.bias)
        turned = self._run(x * spread(incoming, len(x)), disturbance, None)
        own = spread(self.noise.own(outgoing), len(x))
        # One pass over the outputs, in their own precision.
        return torch.addcmul(mean, turned, own.to(mean.dtype))

    def _signs(self, x: Tensor) -> tuple[Tensor, ...]:
        """For each item, signs of the input channels and of the output channels."""
        shape = [self._items.among(len(x))] + [1] * (x.ndim - 1)
        shape[self._axis] = sum(self._channels)
        return torch.split(random_signs(shape, x), self._channels, self._axis)


def random_signs(shape: Sequence[int], like: Tensor) -> Tensor:
    """+1 or -1 with equal chances, with dtype and device of `like`."""
    return torch.randint(0, 2, shape, dtype=like.dtype, device=like.device) * 2 - 1


def divergence(layer: Flipout, *, stddev: float, tied: bool) -> Tensor:
    """KL of the weights from a Gaussian prior with `stddev` in nats, 0-d, exact.

    Cross-entropy minus entropy. The cross-entropy needs no more of the noise than its
    variance; the entropy is that of the noise plus the logarithms of what it is
    multiplied by.

    Args:
        layer: whose weights.
        stddev: of the prior.
        tied: the prior's mean is the weights' own, rather than 0.
    """
    spread, count = layer.stddev, layer.rho.numel()
    square = layer.noise.variance(count) * spread.square().sum()
    if not tied:
        square = square + layer.weight.square().sum()
    constant = count * math.log(stddev * math.sqrt(2 * math.pi))
    constant -= layer.noise.entropy(count)
    return square / (2 * stddev**2) - spread.log().sum() + constant


_Operation = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def _operation(layer: Layer) -> _Operation:
    """(x, weight, bias) to outputs, as `layer` would."""
    if isinstance(layer, nn.Linear):
        return functional.linear
    if layer.padding_mode != "zeros":
        raise ValueError(
            "a convolution with random weights pads with zeros, got padding_mode "
            f"{layer.padding_mode!r}; pad before it"
        )
    run = functional.conv2d if isinstance(layer, nn.Conv2d) else functional.conv3d
    return partial(
        run,
        stride=layer.stride,
        padding=layer.padding,
        dilation=layer.dilation,
        groups=layer.groups,
    )
