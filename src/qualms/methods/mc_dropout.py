"""Monte Carlo dropout (Gal & Ghahramani, 2016, arXiv:1506.02142).

Dropout stays on at test time; each pass is a draw from an approximate posterior.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

from torch import Tensor, nn

from qualms.methods._fused_dropout import fused_dropout
from qualms.methods._headed import Headed
from qualms.methods._method import Method
from qualms.methods._plain import passes, plain_head
from qualms.spec import Task

Place = Literal["declared", "activations", "blocks"]

# By name, as libraries bring classes of their own. Gates such as the sigmoid are no
# activations: what they switch off must stay a choice of the network.
_ACTIVATIONS = {
    *("celu", "elu", "gelu", "gelutanh", "hardmish", "hardswish", "leakyrelu", "mish"),
    *("prelu", "quickgelu", "relu", "relu6", "rrelu", "selu", "silu", "softplus"),
    *("swish", "tanh"),
}


def mc_dropout(
    *, rate: float = 0.1, draws: int = 10, place: Place | None = None
) -> Method:
    """Dropout of `rate` all over the network, and `draws` passes to predict.

    Args:
        rate: share of the entries that are dropped.
        draws: passes for each item.
        place: "declared" is after the layers that the network itself states in
            `dropout_after`; "activations" after every activation layer, the head's
            included; "blocks" after every block: a composite member of a sequence, such
            as a residual or transformer block. None takes what a network declares, and
            activations where it declares nothing.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate must lie between 0 and 1, got {rate}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if place is not None and place not in get_args(Place):
        raise ValueError(
            f"place must be 'declared', 'activations' or 'blocks', got {place!r}"
        )
    return Method(build=partial(_build, rate, place), predict=partial(passes, draws))


class _Dropped(nn.Module):
    """A layer whose output is dropped out, in evaluation mode too."""

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.layer = layer
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return fused_dropout(self.layer(x), self.rate)


def _build(rate: float, place: Place | None, backbone: nn.Module, task: Task) -> Headed:
    network = plain_head(backbone, task)
    found = _found(network, place)
    if not found:
        raise ValueError(
            f"mc_dropout found no layer to follow for place={place!r}; try another "
            "'place', or a network whose activations are layers of their own"
        )
    for parent, name, layer in found:
        parent.add_module(name, _Dropped(layer, rate))
    return network


class _Child(NamedTuple):
    parent: nn.Module
    name: str
    layer: nn.Module


def _found(network: Headed, place: Place | None) -> list[_Child]:
    declared = list(_declared(network.backbone))
    if place == "declared" or (place is None and declared):
        return declared
    return list(_blocks(network) if place == "blocks" else _activations(network))


def _declared(backbone: nn.Module) -> Iterator[_Child]:
    for path in getattr(backbone, "dropout_after", ()):
        parent, _, name = path.rpartition(".")
        above = backbone.get_submodule(parent)
        yield _Child(above, name, above.get_submodule(name))


def _activations(network: nn.Module) -> Iterator[_Child]:
    for child in _children(network):
        if type(child.layer).__name__.lower() in _ACTIVATIONS:
            yield child


def _blocks(network: nn.Module) -> Iterator[_Child]:
    for child in _children(network):
        if _is_block(child) and not any(map(_is_block, _children(child.layer))):
            yield child


def _children(network: nn.Module) -> Iterator[_Child]:
    for parent in network.modules():
        for name, layer in parent.named_children():
            yield _Child(parent, name, layer)


def _is_block(child: _Child) -> bool:
    sequences = nn.Sequential | nn.ModuleList
    composite = any(True for _ in child.layer.children())
    in_sequence = isinstance(child.parent, sequences)
    return in_sequence and composite and not isinstance(child.layer, sequences)
