"""Rank-1 Bayesian networks (Dusenberry et al., 2020, arXiv:2005.07186).

One component, as trained by Band et al. (2021). The kernel W of every convolution and
linear layer is not random, but two vectors are, s over input channels and r over output
channels: the layer has the kernel W * (r s^T). Biases and normalisation are not random.
This is one multiplication before the layer and one after it, so every item has its own
vectors, in training and in every draw, as in the released code. Networks are refused,
and the KL term is divided, as for `mfvi`.

The released code multiplies by its fast learning rate the gradients of all variables
whose names contain neither "kernel" nor "batch_norm". Its normalisation layers have
other names, so they and the biases learn at that rate too. Its penalty l2 acts on
kernels and on the bias of the last layer. Here `fast_lr` acts only on the random
vectors, and the run's weight decay only on kernels. The squared error of a regression
stands for Gaussian noise of variance 1/2.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import Headed, headed
from qualms.methods._layers import (
    ItemCounter,
    Layer,
    channels_of,
    check_first_pass,
    copy_sizes,
    is_transposed,
    replace_layers,
    to_rows,
    transposed_operation,
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
from qualms.methods._variational import Annealing, check_annealing, kl_weight
from qualms.spec import Task

_POSITIVE = 0.75
"""Share of entries whose mean starts at 1; all others start at -1."""
_SPREAD = 0.1
"""Standard deviation of rho, the inverse softplus of their deviations, at the start."""
_FEW = 4
"""Channels up to which folding is faster."""


def rank1(
    *,
    dropout_rate: float = 1e-3,
    prior_stddev: float = 0.05,
    fast_lr: float = 1.0,
    annealing: Annealing = "linear",
    annealing_epochs: int = 200,
    draws: int = 5,
) -> Method:
    """Scale the channels of every layer by Gaussian vectors; predict by `draws` passes.

    Args:
        dropout_rate: p; the vectors start as noisy as Gaussian dropout of that rate,
            with a standard deviation of sqrt(p / (1 - p)), by default 0.0316.
        prior_stddev: standard deviation of the Gaussian prior of the vectors around 1.
        fast_lr: factor of the learning rate of the vectors.
        annealing: schedule of the weight of the KL term: "linear", "cyclical", "none".
        annealing_epochs: length of the linear rise.
        draws: passes for each item.
    """
    check_annealing(annealing=annealing, epochs=annealing_epochs, tempering=1.0)
    if not 0 < dropout_rate < 1:
        raise ValueError(f"dropout_rate must lie between 0 and 1, got {dropout_rate}")
    if not (prior_stddev > 0 and fast_lr > 0):
        raise ValueError(
            f"prior_stddev and fast_lr must be positive, got {prior_stddev} and "
            f"{fast_lr}"
        )
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    weight = partial(kl_weight, annealing=annealing, epochs=annealing_epochs)

    def loss(network: nn.Module, batch: Batch, moment: Moment) -> Tensor:
        terms = moment.items * likelihood_terms(batch, headed(network).task)
        share = weight(moment) / terms
        divergence = _divergence(network, prior_stddev)
        return plain_loss(network, batch, moment) + share * divergence

    return Method(
        build=partial(_build, math.sqrt(dropout_rate / (1 - dropout_rate))),
        loss=loss,
        predict=partial(passes, draws),
        groups=partial(_groups, fast_lr),
        epoch=partial(check_first_pass, _ScaledLayer),
        header={"draws": "models"},
    )


class _ScaledLayer(nn.Module):
    """A layer between two random scalings of its channels.

    Axis 0 of its input counts items, or parts of items side by side. Both vectors lie
    in one tensor, input channels first, so that one draw makes both.
    """

    def __init__(
        self, layer: Layer, stddev: float, items: ItemCounter | None = None
    ) -> None:
        super().__init__()
        copy_sizes(self, layer)
        self.layer = layer
        self._items = items or ItemCounter()
        self._linear = isinstance(layer, nn.Linear)
        self._channels = channels_of(layer)
        size = sum(self._channels)
        signs = torch.where(torch.rand(size) < _POSITIVE, 1.0, -1.0)
        self.mean = nn.Parameter(signs.to(layer.weight))
        middle = math.log(math.expm1(stddev))
        self.rho = nn.Parameter(middle + _SPREAD * truncated_normal(self.mean.data))
        """Standard deviations before a softplus."""

    @property
    def weight(self) -> Tensor:
        """Kernel, for networks that read it."""
        return self.layer.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (B, C, *space), or (B, ..., C) of a linear layer."""
        noise = torch.randn(
            self._items.items_of(len(x)),
            len(self.mean),
            dtype=self.mean.dtype,
            device=x.device,
        )
        scales = torch.addcmul(self.mean, functional.softplus(self.rho), noise)
        scales = to_rows(scales, len(x))
        before, after = torch.split_with_sizes(scales, self._channels, 1)
        y = _without_bias(self.layer, x * self._broadcast(before, x))
        y = y * self._broadcast(after, y)
        bias = self.layer.bias
        return y if bias is None else y + self._broadcast(bias[None], y)

    def _broadcast(self, scales: Tensor, maps: Tensor) -> Tensor:
        """Return `scales` (B, C) in the dtype of `maps`, with axes of 1 for space."""
        ones = (1,) * (maps.ndim - 2)
        rows, count = scales.shape
        shape = (rows, *ones, count) if self._linear else (rows, count, *ones)
        return scales.to(maps.dtype).view(shape)


def _without_bias(layer: Layer, x: Tensor) -> Tensor:
    if isinstance(layer, nn.Linear):
        return functional.linear(x, layer.weight)
    if is_transposed(layer):
        return transposed_operation(layer)(x, layer.weight, None)
    if worth_folding(layer, x):
        assert not isinstance(layer.padding, str)
        return folded(x, layer.weight, layer.padding)
    outputs: Tensor = layer._conv_forward(x, layer.weight, None)
    return outputs


def _build(stddev: float, backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    items = ItemCounter()
    replace_layers(network, lambda layer: _ScaledLayer(layer, stddev, items))
    items.watch(network.backbone)
    return network


def _divergence(network: nn.Module, stddev: float) -> Tensor:
    """Return the KL of all random vectors from their prior around 1, in nats."""
    layers = list(_layers(network))
    # All at once: a sum for each layer would take hundreds of tiny kernels.
    mean = torch.cat([layer.mean for layer in layers])
    ratio = functional.softplus(torch.cat([layer.rho for layer in layers])) / stddev
    distance = (mean - 1) / stddev
    return 0.5 * (ratio.square() + distance.square() - 1 - 2 * ratio.log()).sum()


def _groups(fast_lr: float, network: nn.Module) -> list[dict[str, Any]]:
    fast = [weight for layer in _layers(network) for weight in (layer.mean, layer.rho)]
    random = {"params": fast, "weight_decay": 0.0, "lr_scale": fast_lr}
    return [*kernels_decay(network, apart=fast), random]


def _layers(network: nn.Module) -> Iterator[_ScaledLayer]:
    return (layer for layer in network.modules() if isinstance(layer, _ScaledLayer))


def worth_folding(layer: nn.Module, x: Tensor) -> bool:
    """Return whether `folded` computes what `layer` does with `x`, and faster."""
    return (
        x.is_cuda
        and isinstance(layer, nn.Conv2d)
        and layer.in_channels <= _FEW
        and layer.stride == (2, 2)
        and layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )


def folded(x: Tensor, weight: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Compute `conv2d` with stride 2, up to rounding, over squares of pixels.

    Every window of such a convolution starts at the corner of a 2x2 square once the
    image is padded accordingly, so it is a convolution of stride 1 over squares, with
    half the side and four times the channels. On a GPU the gradient of an image of
    three channels then takes a third of the time: 2.4 instead of 8.2 ms for 128 images
    of 512 pixels on an H200. Only a method that scales the image by learned numbers
    needs that gradient. The result has the memory layout of `x`.
    """
    margins = [
        _margins(*sizes)
        for sizes in zip(x.shape[2:], weight.shape[2:], padding, strict=True)
    ]
    (image_rows, weight_rows), (image_columns, weight_columns) = margins
    squares = functional.pixel_unshuffle(
        functional.pad(x, (*image_columns, *image_rows)), 2
    )
    kernel = functional.pixel_unshuffle(
        functional.pad(weight, (*weight_columns, *weight_rows)), 2
    )
    last = x.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if last else torch.contiguous_format
    return functional.conv2d(squares.contiguous(memory_format=layout), kernel)


def _margins(
    side: int, width: int, padding: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the padding of image and weights, before and after, along one axis.

    Windows start at whole squares. Where the padding is odd they start a pixel earlier,
    and a window whose width would be odd ends a pixel later; the weights there are 0.
    """
    early = padding % 2
    late = (width + early) % 2
    windows = (side + 2 * padding - width) // 2 + 1
    before = padding + early
    covered = 2 * (windows - 1) + early + width + late
    return (before, covered - before - side), (early, late)
