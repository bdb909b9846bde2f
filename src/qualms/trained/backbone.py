"""A trained model in the shape that methods know: a backbone and its last layer.

The last layer is the linear one whose outputs are those of the model, up to a softmax
or an interpolation. It is found by what it computes, not by its name: the model sees a
few items, and the layers that were called are tried, the latest first. A copy of it is
the head; what it reads are the features. Where there is no such layer, the whole model
is the backbone and the head changes nothing, which most methods can do with.
"""

from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from qualms.methods import Readout, read_head, upsampled
from qualms.trained.outputs import OutputReader
from qualms.wording import suggest

_TRIED = 8
"""Layers that are tried, counted from the end."""
_ROUNDING = 1e-3
"""By which probabilities, or shares of a value, may differ from those of the model."""
_HALF_ROUNDING = 3e-2
_FLAT = 2
Linear = nn.Linear | nn.Conv2d | nn.Conv3d


class TrainedBackbone(nn.Module):
    """A trained model, which gives what its last layer reads."""

    def __init__(self, model: nn.Module, reader: OutputReader) -> None:
        super().__init__()
        self.model = model
        self.reader = reader
        self.last: Linear | None = None
        self.features = 0
        self._caught: Tensor | None = None

    def split_at(self, layer: Linear) -> None:
        """Give the inputs of `layer` from now on."""
        self.last = _copied(layer)
        self.features = self.last.weight.shape[1]
        layer.register_forward_pre_hook(self._catch)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F, *space), or outputs (B, K, *space) without a last layer."""
        outputs = self.reader(self.model(x), x)
        if self.last is None:
            return outputs
        features, self._caught = self._caught, None
        flat = outputs.ndim == _FLAT
        if features is None or (flat and not self.gives(self.last, features, outputs)):
            raise ValueError(
                "the outputs of the model are not those of its last layer for some"
                " items; say last=False to predict with the model as a whole"
            )
        return features

    def gives(self, last: Linear, features: Tensor, outputs: Tensor) -> bool:
        """Whether `last` makes the same predictions of `features` as `outputs` are."""
        if features.ndim != outputs.ndim:
            return False
        own = upsampled(read_head(last, features), outputs)
        if own.shape != outputs.shape:
            return False
        half = features.dtype in (torch.float16, torch.bfloat16)
        room = _HALF_ROUNDING if half else _ROUNDING
        if self.reader.task == "regression":
            return _close(own, outputs, share=room, room=room * 1e-2)
        one, other = (
            o.softmax(1) if o.shape[1] > 1 else o.sigmoid() for o in (own, outputs)
        )
        return _close(one, other, share=0.0, room=room)

    def trained_head(self, outputs: int | None) -> Readout:
        """The head that the model came with, for `outputs` numbers."""
        if self.last is None:
            return Readout(nn.Identity(), nn.Identity())
        held = len(self.last.weight)
        if outputs is None or outputs == held:
            return Readout(nn.Identity(), self.last)
        raise ValueError(
            f"the last layer of the model has {held} outputs, and this method needs"
            f" {outputs}"
        )

    def _catch(self, _layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._caught = inputs[0]


class Seen(NamedTuple):
    """What a model did with a few items."""

    backbone: TrainedBackbone
    outputs: Tensor
    """(B, K, *space)."""


def make_backbone(
    model: nn.Module, x: Tensor, reader: OutputReader, last: str | bool | None
) -> Seen:
    """`model` as a backbone, split at its last layer as it is seen on items `x`.

    `last` names that layer; None looks for it, and False leaves the model whole.
    """
    if last is True or (last is not None and not isinstance(last, str | bool)):
        raise ValueError(f"last must be the name of a layer, or False, got {last!r}")
    backbone = TrainedBackbone(model, reader).eval()
    named = None if not isinstance(last, str) else _named(model, last)
    called, returned = _calls(model, x)
    outputs = upsampled(reader(returned, x), x)
    reader.check_form(outputs)
    if last is False:
        return Seen(backbone, outputs)
    for call in reversed(called):
        if named not in (None, call.layer) or len(call.features) != len(x):
            continue
        if backbone.gives(_copied(call.layer), call.features, outputs):
            backbone.split_at(call.layer)
            break
    if named is not None and backbone.last is None:
        raise ValueError(
            f"the outputs of the model are not those of its layer {last!r}, which must"
            " be the last linear one, called once and followed by a softmax or an"
            " interpolation at most; name another one, or leave 'last' out"
        )
    return Seen(backbone, outputs)


class _Call(NamedTuple):
    layer: Linear
    features: Tensor


def _calls(model: nn.Module, x: Tensor) -> tuple[list[_Call], Any]:
    """The linear layers that `model` calls once, in order, and what it returns.

    A layer that a dropout follows is not the last one: in other passes the model gives
    something else.
    """
    called: list[_Call] = []
    times: Counter[nn.Module] = Counter()

    def note(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        times[layer] += 1
        if isinstance(layer, _DropoutNd):
            called.clear()
        elif _is_linear(layer) and inputs and isinstance(inputs[0], Tensor):
            assert isinstance(layer, Linear)
            called.append(_Call(layer, inputs[0]))
            del called[:-_TRIED]

    hooks = [layer.register_forward_pre_hook(note) for layer in model.modules()]
    try:
        returned = model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return [call for call in called if times[call.layer] == 1], returned


def _is_linear(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Linear):
        return True
    if not isinstance(layer, nn.Conv2d | nn.Conv3d):
        return False
    ones = {*layer.kernel_size, *layer.stride, layer.groups}
    return ones == {1} and layer.padding in ("valid", (0,) * len(layer.kernel_size))


def _close(one: Tensor, other: Tensor, *, share: float, room: float) -> bool:
    # What is not a number is refused later, in a sentence of its own.
    return torch.allclose(one, other, rtol=share, atol=room, equal_nan=True)


def _named(model: nn.Module, name: str) -> Linear:
    known = [n for n, layer in model.named_modules() if _is_linear(layer)]
    if name not in known:
        raise LookupError(
            f"the model has no linear layer {name!r}.{suggest(name, known)} Its last"
            f" ones are {', '.join(map(repr, known[-5:])) or 'none'}."
        )
    found = model.get_submodule(name)
    assert isinstance(found, Linear)
    return found


def _copied(layer: Linear) -> Linear:
    """`layer` in float32, with a bias of 0 where it has none."""
    weight = layer.weight.detach()
    made: Linear
    if isinstance(layer, nn.Linear):
        made = nn.Linear(weight.shape[1], len(weight))
    else:
        kind = nn.Conv2d if isinstance(layer, nn.Conv2d) else nn.Conv3d
        made = kind(weight.shape[1], len(weight), 1)
    made = made.to(weight.device)
    assert made.bias is not None
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(0 * made.bias if layer.bias is None else layer.bias)
    return made
