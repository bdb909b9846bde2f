"""Passes over the same inputs that share what comes before the first dropout.

The first pass records the outputs of the layers that are done before any dropout, only
those of the outermost ones. Later passes get copies of these outputs, as the next layer
may change its input in place.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from qualms.methods._dropout_layers import ActiveDropout, InsertedDropout
from qualms.methods._headed import Headed


@contextmanager
def cached_passes(network: Headed) -> Iterator[None]:
    """Compute what comes before the first dropout only in the first pass within.

    All passes must be of the same inputs.
    """
    cache = _PassCache(network)
    try:
        yield
    finally:
        cache.close()


class _PassCache:
    """Hooks that record outputs in the first pass, and replay them in later ones."""

    def __init__(self, network: Headed) -> None:
        self.outputs: dict[nn.Module, list[Tensor]] = {}
        self.calls: Counter[nn.Module] = Counter()
        """Number of calls of each layer in this pass."""
        layers = list(network.modules())
        self.ends = {
            layer.layer for layer in layers if isinstance(layer, InsertedDropout)
        }
        self.hooks = [layer.register_forward_hook(self.record) for layer in layers]
        self.hooks += [
            layer.register_forward_pre_hook(lambda *_: self.replay())
            for layer in layers
            if isinstance(layer, ActiveDropout)
        ]
        self.start = network.backbone.register_forward_pre_hook(
            lambda *_: self.calls.clear()
        )

    def record(self, layer: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            for inner in layer.modules():
                if inner is not layer:
                    self.outputs.pop(inner, None)
            self.outputs.setdefault(layer, []).append(output.clone())
        if layer in self.ends:
            self.replay()

    def replay(self) -> None:
        """Replay the recorded outputs from now on; this pass has used its own."""
        for hook in self.hooks:
            hook.remove()
        for layer, outputs in self.outputs.items():
            self.calls[layer] = len(outputs)
            layer.__dict__["forward"] = _replayed(layer, outputs, self.calls)

    def close(self) -> None:
        for hook in (*self.hooks, self.start):
            hook.remove()
        for layer in self.outputs:
            layer.__dict__.pop("forward", None)


def _replayed(
    layer: nn.Module, outputs: list[Tensor], calls: Counter[nn.Module]
) -> Callable[..., object]:
    """Return a forward function that gives `outputs` to the first calls of a pass."""
    compute = layer.forward

    def forward(*inputs: object, **options: object) -> object:
        calls[layer] += 1
        if calls[layer] > len(outputs):
            return compute(*inputs, **options)
        return outputs[calls[layer] - 1].clone()

    return forward
