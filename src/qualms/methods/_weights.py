"""Sets of weights of one network, each of which gives a draw.

The backbone's weights come first and those of the head last. Where only the head is
trained, on features that are computed once, a set has the last of them alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from qualms.methods._headed import FittedBuffers, Headed, embed, headed
from qualms.methods._plain import plain_predict, summarise, summarise_embeddings
from qualms.spec import Task

WEIGHTS = "weights"


def trained_parts(network: Headed) -> list[Tensor]:
    """All parameters."""
    return [*network.backbone.parameters(), *network.head.parameters()]


def all_parts(network: Headed) -> list[Tensor]:
    """All parameters, and buffers of real numbers such as normalisation statistics."""
    parts = (network.backbone, network.head)
    return [
        held
        for part in parts
        for held in (*part.parameters(), *part.buffers())
        if held.is_floating_point()
    ]


def flattened(parts: Sequence[Tensor]) -> Tensor:
    """A copy of all numbers of `parts`, (P,) float32."""
    return torch.cat([part.detach().flatten().float() for part in parts])


def put_back(parts: Sequence[Tensor], values: Tensor) -> None:
    """Set `parts`, or the last of them, to `values` (P,)."""
    end = len(values)
    for part in reversed(parts):
        if not end:
            return
        start = end - part.numel()
        part.detach().copy_(values[start:end].view(part.shape))
        end = start


@contextmanager
def borrowed(parts: Sequence[Tensor]) -> Iterator[None]:
    """Give `parts` their values back at the end, also after an error."""
    own = flattened(parts)
    try:
        yield
    finally:
        put_back(parts, own)


def weight_sets(network: nn.Module) -> FittedBuffers:
    """Where the sets of weights of `network` are kept, as `WEIGHTS` (M, P)."""
    found = headed(network).found
    assert isinstance(found, FittedBuffers)
    return found


def predict_by_sets(network: nn.Module, x: Tensor, task: Task) -> dict[str, Tensor]:
    """One draw for each set of weights; one pass as it is where there are none yet."""
    whole, found = headed(network), weight_sets(network)
    if not found.has(WEIGHTS):
        return plain_predict(network, x, task)
    parts = all_parts(whole)
    with borrowed(parts):
        if task.name == "embedding":
            drawn = (embed(net, x) for net in _each(whole, parts))
            return summarise_embeddings(drawn, task)
        return summarise((net(x) for net in _each(whole, parts)), task)


def _each(network: Headed, parts: Sequence[Tensor]) -> Iterator[Headed]:
    for values in weight_sets(network).held(WEIGHTS):
        put_back(parts, values)
        yield network
