"""Layers of a network exchanged for others, heads included."""

from collections import Counter
from collections.abc import Callable
from typing import TypeGuard

from torch import nn
from torch.nn.modules.conv import _ConvNd

Layer = nn.Conv2d | nn.Conv3d | nn.Linear
_TYPES = (nn.Conv2d, nn.Conv3d, nn.Linear)
WITH_KERNELS = (_ConvNd, nn.Linear, nn.Bilinear, nn.MultiheadAttention, nn.RNNBase)
"""Convolutions and linear layers, and modules that multiply by weights as they do."""


def replaced(
    network: nn.Module, make: Callable[[Layer], nn.Module | None]
) -> nn.Module:
    """`network` with what `make` gives in place of its convolutions and linear layers.

    Works in place; None keeps a layer, and a layer that stands in several places is
    made once and stays shared. Exact types only: what a subclass or a parametrisation
    does with weights nobody knows here, so a network that has such layers is refused.
    """
    _check(network)
    made: dict[nn.Module, nn.Module] = {}
    for name, layer in list(network.named_modules(remove_duplicate=False)):
        if not _replaceable(layer):
            continue
        if layer not in made:
            made[layer] = make(layer) or layer
        if not name:
            return made[layer]
        parent, _, child = name.rpartition(".")
        network.get_submodule(parent).add_module(child, made[layer])
    return network


def channels_of(layer: Layer) -> list[int]:
    """Channels that go in and come out."""
    if isinstance(layer, nn.Linear):
        return [layer.in_features, layer.out_features]
    return [layer.in_channels, layer.out_channels]


def _check(network: nn.Module) -> None:
    left = Counter(
        type(layer).__name__
        for layer in network.modules()
        if isinstance(layer, WITH_KERNELS) and not _replaceable(layer)
    )
    if left:
        kinds = ", ".join(f"{count} of type {name}" for name, count in left.items())
        raise ValueError(
            "this method makes every convolution and linear layer random, and there "
            f"are layers for which it cannot: {kinds}; choose a network without them"
        )


def _replaceable(layer: nn.Module) -> TypeGuard[Layer]:
    """Whether `layer` is one of our types, with a weight that is its own parameter."""
    return type(layer) in _TYPES and "weight" in layer._parameters
