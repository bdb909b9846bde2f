"""Layers of a network exchanged for others, heads included."""

from collections.abc import Callable

from torch import nn

Layer = nn.Conv2d | nn.Conv3d | nn.Linear
_TYPES = (nn.Conv2d, nn.Conv3d, nn.Linear)


def replaced(
    network: nn.Module, make: Callable[[Layer], nn.Module | None]
) -> nn.Module:
    """`network` with what `make` gives in place of its convolutions and linear layers.

    Works in place; None keeps a layer, and a layer that stands in several places is
    made once and stays shared. Exact types only: what a subclass does with its weights
    nobody knows here, so it stays as it is.
    """
    made: dict[nn.Module, nn.Module] = {}
    for name, layer in list(network.named_modules(remove_duplicate=False)):
        if type(layer) not in _TYPES:
            continue
        assert isinstance(layer, _TYPES)
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
