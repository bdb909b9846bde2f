"""Which weights decay: kernels do, and what shifts, scales or embeds does not."""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn

from qualms.methods._flipout import Flipout
from qualms.methods._layers import WITH_KERNELS

_KERNEL_AXES = 2


def kernels_decay(
    network: nn.Module, apart: Iterable[Tensor] = ()
) -> list[dict[str, Any]]:
    """Parameter groups in which the weight decay of the run acts on kernels only.

    Kernels are the weights of convolutions and linear layers. Biases, the parameters of
    normalisation, gains, and embeddings of classes and places are pulled nowhere.
    Parameters without a gradient are left out.

    Args:
        network: whose parameters.
        apart: those that have a group of their own, to be left out too.
    """
    held = {id(weight) for weight in apart}
    kernels = {id(weight) for weight in _kernels(network)}
    trained = [
        weight
        for weight in network.parameters()
        if weight.requires_grad and id(weight) not in held
    ]
    decaying: dict[str, Any] = {"params": [w for w in trained if id(w) in kernels]}
    steady: dict[str, Any] = {"params": [w for w in trained if id(w) not in kernels]}
    steady["weight_decay"] = 0.0
    return [group for group in (decaying, steady) if group["params"]]


def _kernels(network: nn.Module) -> Iterator[nn.Parameter]:
    for layer in network.modules():
        if not isinstance(layer, (*WITH_KERNELS, Flipout)):
            continue
        # All within, as a parametrisation keeps the weight in a module of its own.
        for name, weight in layer.named_parameters():
            if weight.ndim >= _KERNEL_AXES and "bias" not in name:
                yield weight
