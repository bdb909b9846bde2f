"""A trained model in the shape that methods read: a backbone and its last layer.

The last layer is the linear layer whose outputs are those of the model, up to a softmax
or an interpolation. It is recognised by what it computes, not by its name: the model
sees a few items, and the layers that it calls are compared, the latest first. A copy of
that layer is the head, and its inputs are the features. Without such a layer the model
as a whole is the backbone and the head changes nothing; most methods need no more.
"""

from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from qualms.methods import Readout, read_head, upsampled
from qualms.shelf import traits
from qualms.trained._outputs import OutputReader
from qualms.trained._several_inputs import SeveralInputs
from qualms.wording import error_words, suggest

_TRIED = 8
"""Layers that are compared, counted from the end."""
_ROUNDING = 1e-3
"""Largest difference of probabilities, or relative difference of values."""
_HALF_ROUNDING = 3e-2
_FLAT = 2
Linear = nn.Linear | nn.Conv2d | nn.Conv3d


class TrainedBackbone(nn.Module):
    """A trained model whose outputs are the inputs of its last layer."""

    def __init__(self, model: nn.Module, reader: OutputReader) -> None:
        super().__init__()
        self.model = model
        self.reader = reader
        self.last: Linear | None = None
        self.features = 0
        self._caught: Tensor | None = None

    @property
    def is_compiled(self) -> bool:
        """True if a part of the model is compiled by `torch.jit`."""
        parts = self.model.modules()
        return any(isinstance(part, torch.jit.ScriptModule) for part in parts)

    def split_at(self, layer: Linear) -> None:
        """Return the inputs of `layer` from now on."""
        self.last = _copied(layer)
        self.features = self.last.weight.shape[1]
        layer.register_forward_pre_hook(self._catch)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, F, *space), or without a last layer outputs."""
        outputs = self.reader(_returned(self.model, x), x)
        if self.last is None:
            return outputs
        features, self._caught = self._caught, None
        flat = outputs.ndim == _FLAT
        if features is None or (
            flat and not self.reproduces(self.last, features, outputs)
        ):
            raise ValueError(
                "the outputs of the model are not those of its last layer for some"
                " items; say last=False to predict with the model as a whole"
            )
        return features

    def reproduces(self, last: Linear, features: Tensor, outputs: Tensor) -> bool:
        """Return whether `last` computes the predictions `outputs` from `features`."""
        if features.ndim != outputs.ndim:
            return False
        computed = upsampled(read_head(last, features), outputs)
        if computed.shape != outputs.shape:
            return False
        half = features.dtype in (torch.float16, torch.bfloat16)
        tolerance = _HALF_ROUNDING if half else _ROUNDING
        if "values" in traits(self.reader.task):
            return _close(computed, outputs, relative=tolerance, room=tolerance * 1e-2)
        first, second = (
            o.softmax(1) if o.shape[1] > 1 else o.sigmoid() for o in (computed, outputs)
        )
        return _close(first, second, relative=0.0, room=tolerance)

    def trained_head(self, outputs: int | None) -> Readout:
        """Return the head that the model came with, if it has that many outputs."""
        if self.last is None:
            return Readout(nn.Identity(), nn.Identity())
        count = len(self.last.weight)
        if outputs is None or outputs == count:
            return Readout(nn.Identity(), self.last)
        raise ValueError(
            f"the last layer of the model has {count} outputs, and this method needs"
            f" {outputs}"
        )

    def _catch(self, _layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._caught = inputs[0]


class ProbedModel(NamedTuple):
    """A model as a backbone, and its outputs for a few items."""

    backbone: TrainedBackbone
    outputs: Tensor
    """(B, K, *space)."""


def make_backbone(
    model: nn.Module, x: Tensor, reader: OutputReader, last: str | bool | None
) -> ProbedModel:
    """Split `model` at the last layer that it shows on items `x`.

    `last` names that layer; None searches for it, and False leaves the model whole.
    """
    if last is True or (last is not None and not isinstance(last, str | bool)):
        raise ValueError(f"last must be the name of a layer, or False, got {last!r}")
    backbone = TrainedBackbone(model, reader).eval()
    named = None if not isinstance(last, str) else _named(model, last)
    calls, returned = _calls(model, x)
    outputs = upsampled(reader(returned, x), x)
    reader.check_form(outputs)
    if last is False:
        return ProbedModel(backbone, outputs)
    for call in reversed(calls):
        if named not in (None, call.layer) or len(call.features) != len(x):
            continue
        if backbone.reproduces(_copied(call.layer), call.features, outputs):
            backbone.split_at(call.layer)
            break
    if named is not None and backbone.last is None:
        raise ValueError(
            f"the outputs of the model are not those of its layer {last!r}, which must"
            " be the last linear one, called once and followed by a softmax or an"
            " interpolation at most; name another one, or leave 'last' out"
        )
    return ProbedModel(backbone, outputs)


class _Call(NamedTuple):
    layer: Linear
    features: Tensor


def _calls(model: nn.Module, x: Tensor) -> tuple[list[_Call], Any]:
    """Return the linear layers that `model` calls once, in order, and its output.

    A layer that a dropout follows is not the last one: other passes give other outputs.
    """
    calls: list[_Call] = []
    times: Counter[nn.Module] = Counter()

    def note(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        times[layer] += 1
        if isinstance(layer, _DropoutNd):
            calls.clear()
        elif _is_linear(layer) and inputs and isinstance(inputs[0], Tensor):
            assert isinstance(layer, Linear)
            calls.append(_Call(layer, inputs[0]))
            del calls[:-_TRIED]

    # Compiled modules take no hooks: such a model is used as a whole.
    layers = (m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule))
    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    try:
        returned = _returned(model, x)
    finally:
        for hook in hooks:
            hook.remove()
    return [call for call in calls if times[call.layer] == 1], returned


def _returned(model: nn.Module, x: Tensor) -> Any:
    """Return what the model returns; raise a sentence if it fails."""
    try:
        return model(x)
    except (ValueError, torch.cuda.OutOfMemoryError):
        raise
    # The code of somebody else may raise anything.
    except Exception as error:
        shapes = [tuple(x.shape)]
        if isinstance(model, SeveralInputs):
            shapes = [(len(x), *shape) for shape in model.layout.shapes]
        raise ValueError(
            f"the model fails on inputs of shape {', '.join(map(str, shapes))}"
            f" ({error_words(error)}); the loader must give what the model takes, items"
            " first"
        ) from error


def _is_linear(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Linear):
        return True
    if not isinstance(layer, nn.Conv2d | nn.Conv3d):
        return False
    ones = {*layer.kernel_size, *layer.stride, layer.groups}
    return ones == {1} and layer.padding in ("valid", (0,) * len(layer.kernel_size))


def _close(first: Tensor, second: Tensor, *, relative: float, room: float) -> bool:
    # Numbers that are NaN are refused later, in a sentence of their own.
    return torch.allclose(first, second, rtol=relative, atol=room, equal_nan=True)


def _named(model: nn.Module, name: str) -> Linear:
    names = [n for n, layer in model.named_modules() if _is_linear(layer)]
    if name not in names:
        raise LookupError(
            f"the model has no linear layer {name!r}.{suggest(name, names)} Its last"
            f" ones are {', '.join(map(repr, names[-5:])) or 'none'}."
        )
    layer = model.get_submodule(name)
    assert isinstance(layer, Linear)
    return layer


def _copied(layer: Linear) -> Linear:
    """Copy `layer` in float32, with a bias of 0 where it has none."""
    weight = layer.weight.detach()
    copy: Linear
    if isinstance(layer, nn.Linear):
        copy = nn.Linear(weight.shape[1], len(weight))
    else:
        kind = nn.Conv2d if isinstance(layer, nn.Conv2d) else nn.Conv3d
        copy = kind(weight.shape[1], len(weight), 1)
    copy = copy.to(weight.device)
    assert copy.bias is not None
    with torch.no_grad():
        copy.weight.copy_(weight)
        copy.bias.copy_(0 * copy.bias if layer.bias is None else layer.bias)
    return copy
