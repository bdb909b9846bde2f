"""Dropout layers that stay on in evaluation mode, and where in a network they act."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from qualms.methods._fused_dropout import fused_dropout
from qualms.methods._headed import Headed
from qualms.networks import as_backbone

DropoutPlace = Literal["declared", "activations", "blocks", "own"]

# By name, as libraries have classes of their own. Gates such as the sigmoid are not
# among them: what a gate switches off must stay a choice of the network.
_ACTIVATIONS = {
    *("celu", "elu", "gelu", "gelutanh", "hardmish", "hardswish", "leakyrelu", "mish"),
    *("prelu", "quickgelu", "relu", "relu6", "rrelu", "selu", "silu", "softplus"),
    *("swish", "tanh"),
}


class InsertedDropout(nn.Module):
    """A layer whose output is dropped out, in evaluation mode too."""

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.layer = layer
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return fused_dropout(self.layer(x), self.rate)


class ActiveDropout(nn.Module):
    """A dropout layer of the network's own, which evaluation mode does not switch."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.train()

    def train(self, mode: bool = True) -> "ActiveDropout":  # noqa: ARG002
        return super().train(True)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.layer(x)
        return outputs


def insert_dropout(network: Headed, rate: float, place: DropoutPlace | None) -> None:
    """Insert dropout of `rate` into `network`, as `mc_dropout` explains `place`."""
    children = _children_to_follow(network, place)
    if not children:
        raise ValueError(
            f"mc_dropout found no layer to follow for place={place!r}; try another "
            "'place', or a network whose activations are layers of their own"
        )
    for parent, name, layer in children:
        parent.add_module(name, InsertedDropout(layer, rate))


def activate_dropout(network: Headed) -> None:
    """Keep the dropout layers that `network` has on in every pass."""
    children = [c for c in _children(network) if isinstance(c.layer, _DropoutNd)]
    active = [c for c in children if isinstance(c.layer, _DropoutNd) and c.layer.p > 0]
    if not active:
        has = "only dropout layers of rate 0" if children else "no dropout layer"
        raise ValueError(
            f"the network has {has}, such as torch.nn.Dropout(0.1), so all draws of"
            " mc_dropout would be the same; choose another method, or say"
            " place='activations' (or 'blocks') and a small rate to insert dropout that"
            " it was not trained with"
        )
    for parent, name, layer in active:
        parent.add_module(name, ActiveDropout(layer))


@contextmanager
def dropout_active(network: nn.Module) -> Iterator[None]:
    """Raise if `network` has `ActiveDropout` layers and none is called within."""
    layers = [layer for layer in network.modules() if isinstance(layer, ActiveDropout)]
    if not layers:
        yield
        return
    called: set[nn.Module] = set()
    hooks = [m.register_forward_hook(lambda m, *_: called.add(m)) for m in layers]
    try:
        with _no_fast_path():
            yield
    finally:
        for hook in hooks:
            hook.remove()
    if not called:
        raise ValueError(
            f"the network has {len(layers)} dropout layers and calls none of them, so"
            " all draws of mc_dropout would be the same; choose another method"
        )


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Switch off the form of torch's transformers for evaluation, without dropout."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


class _Child(NamedTuple):
    parent: nn.Module
    name: str
    layer: nn.Module


def _children_to_follow(network: Headed, place: DropoutPlace | None) -> list[_Child]:
    declared = list(_declared(network.backbone))
    if place == "declared" or (place is None and declared):
        return declared
    return list(_blocks(network) if place == "blocks" else _activations(network))


def _declared(backbone: nn.Module) -> Iterator[_Child]:
    for path in as_backbone(backbone).dropout_after:
        above, _, name = path.rpartition(".")
        parent = backbone.get_submodule(above)
        yield _Child(parent, name, parent.get_submodule(name))


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
