"""Layers of a network replaced by random ones, and the items whose rows they see.

Within a network axis 0 need not count items: Swin cuts every image into windows and
passes them to its linear layers as rows, those of an image side by side. The random
numbers of an item must be the same for all of its rows. Networks that cut images into
parts order the rows in this way; the number of rows alone cannot show it.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd

from qualms.methods._batch import Batches, Moment
from qualms.methods._headed import headed

Transposed = nn.ConvTranspose2d | nn.ConvTranspose3d
Layer = nn.Conv2d | nn.Conv3d | Transposed | nn.Linear
_TYPES = (
    *(nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    nn.Linear,
)
WITH_KERNELS = (_ConvNd, nn.Linear, nn.Bilinear, nn.MultiheadAttention, nn.RNNBase)
"""Convolutions and linear layers, and modules that multiply by weights as they do."""


def replace_layers(
    network: nn.Module, make: Callable[[Layer], nn.Module | None]
) -> nn.Module:
    """Replace each convolution and linear layer by what `make` returns for it.

    The network is changed in place. None keeps a layer. A layer that is used in several
    places is replaced once and stays shared. A network with subclasses of these layers,
    or with parametrised ones, is refused: how they use their weights is unknown.
    """
    _check(network)
    replacements: dict[nn.Module, nn.Module] = {}
    for name, layer in list(network.named_modules(remove_duplicate=False)):
        if not _replaceable(layer):
            continue
        if layer not in replacements:
            replacements[layer] = make(layer) or layer
        if not name:
            return replacements[layer]
        parent, _, child = name.rpartition(".")
        network.get_submodule(parent).add_module(child, replacements[layer])
    return network


def channels_of(layer: Layer) -> list[int]:
    """Return the numbers of input and of output channels."""
    if isinstance(layer, nn.Linear):
        return [layer.in_features, layer.out_features]
    return [layer.in_channels, layer.out_channels]


def is_transposed(layer: nn.Module) -> TypeGuard[Transposed]:
    """Return whether axis 0 of the weight of `layer` counts input channels."""
    return isinstance(layer, Transposed)


def fan_in_of(layer: Layer) -> int:
    """Return how many inputs an output sees; a mean for transposed convolutions."""
    if is_transposed(layer):
        return layer.weight[:, 0].numel() // math.prod(layer.stride)
    return layer.weight[0].numel()


Operation = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""From (x, weight, bias) to outputs."""


def transposed_operation(layer: Transposed) -> Operation:
    """Return the function of `layer`, for any weight and bias."""
    assert not isinstance(layer.padding, str)  # torch allows none here
    flat = isinstance(layer, nn.ConvTranspose2d)
    return partial(
        functional.conv_transpose2d if flat else functional.conv_transpose3d,
        stride=layer.stride,
        padding=layer.padding,
        output_padding=layer.output_padding,
        dilation=layer.dilation,
    )


def copy_sizes(random: nn.Module, layer: Layer) -> None:
    """Copy the sizes of `layer`, which networks read, to its replacement `random`."""
    for name in layer.__constants__:
        setattr(random, name, getattr(layer, name))


class ItemCounter:
    """Number of items in the batch that a network sees, for the layers within it."""

    def __init__(self) -> None:
        self._count: int | None = None

    def watch(self, network: nn.Module) -> None:
        """Count the items of every batch that enters `network`."""
        network.register_forward_pre_hook(self._note)

    def items_of(self, rows: int) -> int:
        """Return how many items `rows` belong to; before any batch, as many."""
        count = rows if self._count is None else self._count
        if rows % count:
            raise ValueError(
                "a layer whose weights are random for every item must see the same "
                f"number of rows of each item, got {rows} rows of {count} items; "
                "choose a network whose layers have items along their first axis"
            )
        return count

    def _note(self, _network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # A compiler treats it as a constant, and compiles anew for another size.
        self._count = len(inputs[0])


def to_rows(values: Tensor, rows: int) -> Tensor:
    """Repeat `values` (B, ...) of items for their `rows`, which lie side by side."""
    count = len(values)
    return values if count == rows else values.repeat_interleave(rows // count, 0)


def check_first_pass(
    kind: type[nn.Module], network: nn.Module, moment: Moment, batches: Batches
) -> None:
    """Raise if a backbone uses the weights of random layers without calling them.

    Some networks read `layer.weight` and multiply by it themselves, but a layer of
    `kind` is random only when it is called. One pass before training shows which layers
    are called; it has random numbers of its own.
    """
    if moment.epoch > 0:
        return
    backbone = headed(network).backbone
    names = {m: name for name, m in backbone.named_modules() if isinstance(m, kind)}
    called: set[nn.Module] = set()
    hooks = [m.register_forward_hook(lambda m, *_: called.add(m)) for m in names]
    x = next(iter(batches())).x[:2]
    with torch.random.fork_rng([x.device] if x.is_cuda else []):
        # Not the compiled form, which has no hooks on its layers.
        backbone._call_impl(x)  # type: ignore[no-untyped-call]
    for hook in hooks:
        hook.remove()
    missed = [name for layer, name in names.items() if layer not in called]
    if missed:
        raise ValueError(
            "this method makes layers random that are called, and the network uses the "
            f"weights of {len(missed)} layers without calling them, such as "
            f"{missed[0]!r}, which would not be random; choose another network"
        )


def truncated_normal(like: Tensor) -> Tensor:
    """Draw standard normal numbers between -2 and 2, with the shape of `like`.

    By the inverse distribution function, so that no code depends on a value.
    """
    tail = math.erfc(math.sqrt(2)) / 2
    inner = torch.rand_like(like) * (1 - 2 * tail) + tail
    numbers: Tensor = torch.special.ndtri(inner)
    return numbers


def _check(network: nn.Module) -> None:
    refused = Counter(
        type(layer).__name__
        for layer in network.modules()
        if isinstance(layer, WITH_KERNELS) and not _replaceable(layer)
    )
    if refused:
        kinds = ", ".join(f"{count} of type {name}" for name, count in refused.items())
        raise ValueError(
            "this method makes every convolution and linear layer random, and the "
            f"network has layers for which it cannot: {kinds}; choose a network "
            "without them"
        )


def _replaceable(layer: nn.Module) -> TypeGuard[Layer]:
    """Return whether `layer` is of our types, and its weight a plain parameter.

    The weight of a transposed convolution in groups has no axis for its outputs.
    """
    if is_transposed(layer) and layer.groups > 1:
        return False
    return type(layer) in _TYPES and "weight" in layer._parameters
