"""Layers with random weights: flipout (Wen et al., 2018, arXiv:1803.04386).

A weight is its mean plus its standard deviation times noise. The noise is drawn once
for a batch, and every item multiplies it by its own random signs, one for each input
and one for each output channel. If the signs do not change the distribution of the
noise, each item has a fair draw of the weights, the draws of two items are
uncorrelated, and the cost is that of two convolutions.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._layers import (
    ItemCounter,
    Layer,
    Operation,
    channels_of,
    copy_sizes,
    fan_in_of,
    is_transposed,
    to_rows,
    transposed_operation,
)


class Noise(NamedTuple):
    """Distribution of the noise on the weights of a layer; signs do not change it."""

    shared: Callable[[Tensor], Tensor]
    """From a tensor to noise of its shape: the part that all items of a batch share."""
    per_item: Callable[[Tensor], Tensor]
    """From signs (B, ...) of a batch to signs times the part that each item draws."""
    variance: Callable[[torch.Size], float]
    """From the shape of the weights, outputs first, to the variance of their noise."""
    entropy: Callable[[torch.Size], float]
    """From the shape of the weights to the entropy of their noise, in nats."""


class Flipout(nn.Module):
    """A convolution or linear layer with random weights and a fixed bias.

    The means of its weights are the weights of the layer that it replaces, under the
    same name. Axis 0 of the input counts items, or parts of items side by side.
    """

    def __init__(
        self, layer: Layer, noise: Noise, rho: Tensor, items: ItemCounter | None = None
    ) -> None:
        super().__init__()
        copy_sizes(self, layer)
        self.weight = layer.weight
        self.rho = nn.Parameter(rho)
        """Standard deviations before a softplus."""
        self.bias = layer.bias
        self.noise = noise
        self.fan_in = fan_in_of(layer)
        self._items = items or ItemCounter()
        self._run = _operation(layer)
        self._transposed = is_transposed(layer)
        self._channels = channels_of(layer)
        self._axis = -1 if isinstance(layer, nn.Linear) else 1

    @property
    def stddev(self) -> Tensor:
        """Standard deviations, by which the noise is multiplied."""
        return functional.softplus(self.rho)

    def outputs_first(self, weight: Tensor) -> Tensor:
        """View a tensor of the weights' shape with output channels on axis 0."""
        return weight.transpose(0, 1) if self._transposed else weight

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (B, C, *space), or (B, ..., C) of a linear layer."""
        incoming, outgoing = self._signs(x)
        noise = self.noise.shared(self.outputs_first(self.rho))
        disturbance = self.stddev * self.outputs_first(noise)
        mean = self._run(x, self.weight, self.bias)
        shared = self._run(x * to_rows(incoming, len(x)), disturbance, None)
        signs = to_rows(self.noise.per_item(outgoing), len(x))
        # One pass over the outputs, in their own precision.
        return torch.addcmul(mean, shared, signs.to(mean.dtype))

    def _signs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Draw signs of input and of output channels for each item."""
        shape = [self._items.items_of(len(x))] + [1] * (x.ndim - 1)
        shape[self._axis] = sum(self._channels)
        return torch.split(random_signs(shape, x), self._channels, self._axis)


def random_signs(shape: Sequence[int], like: Tensor) -> Tensor:
    """Draw +1 or -1 with equal chances, with dtype and device of `like`."""
    return torch.randint(0, 2, shape, dtype=like.dtype, device=like.device) * 2 - 1


def divergence(layer: Flipout, *, stddev: float, tied: bool) -> Tensor:
    """Return the exact KL of the weights of `layer` from a Gaussian prior, in nats.

    It is the cross-entropy minus the entropy. The cross-entropy depends on the noise
    only through its variance. The entropy is that of the noise plus the sum of the
    logarithms of the standard deviations.

    Args:
        layer: a layer with random weights.
        stddev: standard deviation of the prior.
        tied: whether the mean of the prior is that of the weights, rather than 0.
    """
    spread, shape = layer.stddev, layer.outputs_first(layer.rho).shape
    square = layer.noise.variance(shape) * spread.square().sum()
    if not tied:
        square = square + layer.weight.square().sum()
    constant = shape.numel() * math.log(stddev * math.sqrt(2 * math.pi))
    constant -= layer.noise.entropy(shape)
    return square / (2 * stddev**2) - spread.log().sum() + constant


def _operation(layer: Layer) -> Operation:
    """Return the function of `layer`, for any weight and bias."""
    if isinstance(layer, nn.Linear):
        return functional.linear
    if is_transposed(layer):
        return transposed_operation(layer)
    if layer.padding_mode != "zeros":
        raise ValueError(
            "a convolution with random weights must pad with zeros, got padding_mode "
            f"{layer.padding_mode!r}; choose a network that pads with zeros"
        )
    run = functional.conv2d if isinstance(layer, nn.Conv2d) else functional.conv3d
    return partial(
        run,
        stride=layer.stride,
        padding=layer.padding,
        dilation=layer.dilation,
        groups=layer.groups,
    )
