"""Sets of weights of one network; each set gives a draw.

The weights of the backbone come first and those of the head last. Where only the head
is trained, on cached features, a set holds the weights of the head alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from qualms.methods._headed import FittedBuffers, Headed, headed
from qualms.methods._plain import one_pass, plain_predict, summarise
from qualms.spec import Task

WEIGHTS = "weights"


def trained_parts(network: Headed) -> list[Tensor]:
    """Return all parameters."""
    return [*network.backbone.parameters(), *network.head.parameters()]


def all_parts(network: Headed) -> list[Tensor]:
    """Return all parameters and all buffers of floats, such as running means."""
    return [
        tensor
        for part in (network.backbone, network.head)
        for tensor in (*part.parameters(), *part.buffers())
        if tensor.is_floating_point()
    ]


def flattened(parts: Sequence[Tensor]) -> Tensor:
    """Copy all numbers of `parts` into one vector (P,) of float32."""
    return torch.cat([part.detach().flatten().float() for part in parts])


def assign(parts: Sequence[Tensor], values: Tensor) -> None:
    """Set `parts`, or the last of them, to `values` (P,)."""
    end = len(values)
    for part in reversed(parts):
        if not end:
            return
        start = end - part.numel()
        part.detach().copy_(values[start:end].view(part.shape))
        end = start


@contextmanager
def restoring(parts: Sequence[Tensor]) -> Iterator[None]:
    """Restore the values of `parts` at the end, also after an error."""
    before = flattened(parts)
    try:
        yield
    finally:
        assign(parts, before)


def weight_sets(network: nn.Module) -> FittedBuffers:
    """Return the buffers that hold the sets of weights, as `WEIGHTS` (M, P)."""
    buffers = headed(network).fitted
    assert isinstance(buffers, FittedBuffers)
    return buffers


def predict_by_sets(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """Predict a draw for each set of weights; one plain pass if there is no set."""
    network = headed(network)
    if not weight_sets(network).has(WEIGHTS):
        return plain_predict(network, x, task)
    parts = all_parts(network)
    with restoring(parts):
        members = _members(network, parts)
        return summarise((one_pass(member, x, task) for member in members), task)


def _members(network: Headed, parts: Sequence[Tensor]) -> Iterator[Headed]:
    """Yield `network` with each set of weights in turn."""
    for values in weight_sets(network).get(WEIGHTS):
        assign(parts, values)
        yield network
