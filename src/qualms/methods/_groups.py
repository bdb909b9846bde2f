"""Which weights decay: kernels do, and what shifts or scales does not."""

from collections.abc import Iterable
from typing import Any

from torch import nn

_KERNEL_AXES = 2


def kernels_decay(weights: Iterable[nn.Parameter]) -> list[dict[str, Any]]:
    """Parameter groups in which the weight decay of the run acts on kernels only.

    Kernels are the parameters of two axes or more, those of convolutions and dense
    layers; biases and the parameters of normalisation are pulled nowhere. Parameters
    without a gradient are left out.
    """
    trained = [weight for weight in weights if weight.requires_grad]
    kernels = [weight for weight in trained if weight.ndim >= _KERNEL_AXES]
    others = [weight for weight in trained if weight.ndim < _KERNEL_AXES]
    decaying: dict[str, Any] = {"params": kernels}
    steady: dict[str, Any] = {"params": others, "weight_decay": 0.0}
    return [group for group in (decaying, steady) if group["params"]]
