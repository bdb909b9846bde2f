"""Monte Carlo dropout (Gal & Ghahramani, 2016, arXiv:1506.02142).

Dropout stays on at test time; each pass is a draw from an approximate posterior. What
lies before the first dropout is the same in all passes, and is computed once.

On a GPU a compiler makes this dropout part of the layers around it: whether an entry
stays is a hash of its position and of two random numbers per call. These are a few
integer operations, cheap enough to be repeated in the backward pass. The usual
generator takes ten rounds for every entry, and its mask, a byte per entry, is kept
until the backward pass. Uncompiled, each of these operations would be a pass over
memory, so there `functional.dropout` is faster.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from qualms.methods._headed import Headed, headed
from qualms.methods._method import Method
from qualms.methods._plain import (
    check_smoothing,
    passes,
    plain_head,
    plain_loss,
    smoothed_loss,
)
from qualms.spec import Task

DropoutPlace = Literal["declared", "activations", "blocks", "own"]

# By name, as libraries have classes of their own. Gates such as the sigmoid are not
# among them: what a gate switches off must stay a choice of the network.
_ACTIVATIONS = {
    *("celu", "elu", "gelu", "gelutanh", "hardmish", "hardswish", "leakyrelu", "mish"),
    *("prelu", "quickgelu", "relu", "relu6", "rrelu", "selu", "silu", "softplus"),
    *("swish", "tanh"),
}
_MOST = 2**31
"""Entries that 32 bits can count, with one bit for the sign."""
_STRIDE = 0x9E3779B9 - 2**32
"""From the golden ratio: it puts neighbours far apart. As a signed number."""
_SHIFTS = (16, 15)
_FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
"""Of a hash with little bias (Wellons, 2018)."""


def mc_dropout(
    *,
    rate: float = 0.1,
    draws: int = 10,
    place: DropoutPlace | None = None,
    projection: int | None = None,
    smoothing: float = 0.0,
) -> Method:
    """Dropout of `rate` all over the network, and `draws` passes to predict.

    Args:
        rate: share of the entries that are dropped.
        draws: passes for each item.
        place: "declared" is after the layers that the network itself states in
            `dropout_after`; "activations" after every activation layer, the head's
            included; "blocks" after every block: a composite member of a sequence, such
            as a residual or transformer block. "own" is where the network has dropout
            layers already, which keep their rates. None takes what a network declares,
            and activations where it declares nothing; of a network that is trained
            already it takes the own ones.
        projection: width of the embedding, a linear projection of the features; None
            for the features themselves. For the task embedding only.
        smoothing: share of each label that is spread over all classes in the loss.
    """
    check_smoothing(smoothing)
    if not 0 < rate < 1:
        raise ValueError(f"rate must lie between 0 and 1, got {rate}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if place is not None and place not in get_args(DropoutPlace):
        raise ValueError(
            f"place must be 'declared', 'activations', 'blocks' or 'own', got {place!r}"
        )
    return Method(
        build=partial(_build, rate, place, projection, smoothing),
        loss=partial(smoothed_loss, smoothing) if smoothing else plain_loss,
        predict=partial(_passes, draws),
    )


class _Dropped(nn.Module):
    """A layer whose output is dropped out, in evaluation mode too."""

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.layer = layer
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return fused_dropout(self.layer(x), self.rate)


class _KeptOn(nn.Module):
    """A dropout layer of the network's own, which evaluation mode does not switch."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.train()

    def train(self, mode: bool = True) -> "_KeptOn":  # noqa: ARG002
        return super().train(True)

    def forward(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.layer(x)
        return dropped


def _build(
    rate: float,
    place: DropoutPlace | None,
    projection: int | None,
    smoothing: float,
    backbone: nn.Module,
    task: Task,
) -> Headed:
    check_smoothing(smoothing, task)
    network = plain_head(backbone, task, projection=projection)
    trained = getattr(backbone, "trained_head", None) is not None
    if place == "own" or (place is None and trained):
        _keep_on(network)
        return network
    found = _found(network, place)
    if not found:
        raise ValueError(
            f"mc_dropout found no layer to follow for place={place!r}; try another "
            "'place', or a network whose activations are layers of their own"
        )
    for parent, name, layer in found:
        parent.add_module(name, _Dropped(layer, rate))
    return network


def _keep_on(network: Headed) -> None:
    """Keep the dropout layers that a network has on in every pass."""
    layers = [c for c in _children(network) if isinstance(c.layer, _DropoutNd)]
    active = [c for c in layers if isinstance(c.layer, _DropoutNd) and c.layer.p > 0]
    if not active:
        has = "has only dropout layers of rate 0" if layers else "has no dropout layer"
        raise ValueError(
            f"the network {has}, such as torch.nn.Dropout(0.1), so all draws of"
            " mc_dropout would be the same; choose another method, or say"
            " place='activations' (or 'blocks') and a small rate to insert dropout that"
            " it was not trained with"
        )
    for parent, name, layer in active:
        parent.add_module(name, _KeptOn(layer))


def _passes(draws: int, network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    kept_on = [layer for layer in network.modules() if isinstance(layer, _KeptOn)]
    if not kept_on:
        return _drawn(draws, network, x, task)
    with _no_fast_path(), _called(kept_on):
        return _drawn(draws, network, x, task)


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Transformers of torch have a faster form for evaluation, without dropout."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _called(layers: list[_KeptOn]) -> Iterator[None]:
    """Refuse a network that calls none of its dropout layers within."""
    called: set[nn.Module] = set()
    hooks = [m.register_forward_hook(lambda m, *_: called.add(m)) for m in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    if not called:
        raise ValueError(
            f"the network has {len(layers)} dropout layers and calls none of them, so"
            " all draws of mc_dropout would be the same; choose another method"
        )


def _drawn(draws: int, network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    compiled = any(m._compiled_call_impl is not None for m in network.modules())
    whole = headed(network)
    # Compiled code calls no layer, and windows are inputs of their own.
    if draws == 1 or compiled or whole.windows is not None:
        return passes(draws, network, x, task)
    with before_dropout_once(whole):
        return passes(draws, network, x, task)


@contextmanager
def before_dropout_once(network: Headed) -> Iterator[None]:
    """Compute what comes before the first dropout only in the first pass within.

    All passes must be of the same inputs. The first one notes the outputs of layers
    that are done before any dropout, of the outermost ones; later passes are given
    copies of them, as the next layer may change its input in place.
    """
    notes = _Notes(network)
    try:
        yield
    finally:
        notes.close()


class _Notes:
    def __init__(self, network: Headed) -> None:
        self.outputs: dict[nn.Module, list[Tensor]] = {}
        self.asked: Counter[nn.Module] = Counter()
        """How often a layer was called in this pass."""
        layers = list(network.modules())
        self.ends = {layer.layer for layer in layers if isinstance(layer, _Dropped)}
        self.hooks = [layer.register_forward_hook(self.note) for layer in layers]
        self.hooks += [
            layer.register_forward_pre_hook(lambda *_: self.give())
            for layer in layers
            if isinstance(layer, _KeptOn)
        ]
        self.begin = network.backbone.register_forward_pre_hook(
            lambda *_: self.asked.clear()
        )

    def note(self, layer: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            for inner in layer.modules():
                if inner is not layer:
                    self.outputs.pop(inner, None)
            self.outputs.setdefault(layer, []).append(output.clone())
        if layer in self.ends:
            self.give()

    def give(self) -> None:
        """From now on give what is noted; this pass has had its part already."""
        for hook in self.hooks:
            hook.remove()
        for layer, outputs in self.outputs.items():
            self.asked[layer] = len(outputs)
            layer.__dict__["forward"] = _given(layer, outputs, self.asked)

    def close(self) -> None:
        for hook in (*self.hooks, self.begin):
            hook.remove()
        for layer in self.outputs:
            layer.__dict__.pop("forward", None)


def _given(
    layer: nn.Module, outputs: list[Tensor], asked: Counter[nn.Module]
) -> Callable[..., object]:
    compute = layer.forward

    def forward(*inputs: object, **options: object) -> object:
        asked[layer] += 1
        if asked[layer] > len(outputs):
            return compute(*inputs, **options)
        return outputs[asked[layer] - 1].clone()

    return forward


class _Child(NamedTuple):
    parent: nn.Module
    name: str
    layer: nn.Module


def _found(network: Headed, place: DropoutPlace | None) -> list[_Child]:
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


def fused_dropout(x: Tensor, rate: float) -> Tensor:
    """Each entry of `x` 0 with probability `rate`, else divided by 1 - `rate`."""
    if torch.compiler.is_compiling() and _on_gpu(x) and x.numel() < _MOST:
        ends = (-_MOST, _MOST)
        numbers = torch.randint(*ends, (2,), dtype=torch.int32, device=x.device)
        return torch.where(kept(x, rate, numbers), x / (1 - rate), 0.0)
    return functional.dropout(x, rate)


def kept(x: Tensor, rate: float, numbers: Tensor) -> Tensor:
    """Which entries of `x` stay, by two random integers of 32 bits."""
    # The number is added first: a compiler multiplies positions alone as integers
    # without a limit, which it then cannot write in 32 bits.
    mixed = (_places(x) + numbers[0]) * _STRIDE
    # With one number alone, another call would have the same sequence, shifted; with
    # this one any later, calls with positions in common would be correlated.
    mixed = mixed ^ numbers[1]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ _shifted(mixed, _SHIFTS[1])) * _FACTORS[1]
    # The highest bits decide, and another shift would leave them as they are.
    least = round(rate * 2 * _MOST) - _MOST
    # A rate close to 1 would ask for a number past the last one.
    return mixed.ge(min(least, _MOST - 1))


def _on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _places(x: Tensor) -> Tensor:
    """Position of each entry in memory, a number that a kernel has at hand."""
    order = sorted(range(x.dim()), key=x.stride, reverse=True)
    places = torch.arange(x.numel(), dtype=torch.int32, device=x.device)
    sizes = [x.shape[axis] for axis in order]
    return places.view(sizes).permute([order.index(axis) for axis in range(x.dim())])


def _shifted(number: Tensor, bits: int) -> Tensor:
    """`number`, taken as unsigned, shifted to the right."""
    return number.bitwise_right_shift(bits).bitwise_and(2 ** (32 - bits) - 1)
