"""Monte Carlo dropout (Gal & Ghahramani, 2016, arXiv:1506.02142).

Dropout stays on at test time; each pass is a draw from an approximate posterior. What
lies before the first dropout is the same in all passes, and is computed once.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import get_args

from torch import Tensor, nn

from qualms.methods._dropout_layers import (
    DropoutPlace,
    activate_dropout,
    dropout_active,
    insert_dropout,
)
from qualms.methods._headed import Headed, headed
from qualms.methods._method import Method
from qualms.methods._pass_cache import cached_passes
from qualms.methods._plain import (
    check_smoothing,
    passes,
    plain_head,
    plain_loss,
    smoothed_loss,
)
from qualms.networks import as_backbone
from qualms.spec import Task


def mc_dropout(
    *,
    rate: float = 0.1,
    draws: int = 10,
    place: DropoutPlace | None = None,
    projection: int | None = None,
    smoothing: float = 0.0,
) -> Method:
    """Insert dropout of `rate` all over the network; predict by `draws` passes.

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
        predict=partial(_predict, draws),
        header={"draws": "models"},
    )


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
    trained = as_backbone(backbone).trained_head is not None
    if place == "own" or (place is None and trained):
        activate_dropout(network)
    else:
        insert_dropout(network, rate, place)
    return network


def _predict(
    draws: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    with dropout_active(network), _shared_passes(draws, headed(network)):
        return passes(draws, network, x, task)


def _shared_passes(draws: int, network: Headed) -> AbstractContextManager[None]:
    """Return a context in which passes share what comes before the first dropout."""
    compiled = any(m._compiled_call_impl is not None for m in network.modules())
    # Compiled code calls no layer, and windows are inputs of their own.
    if draws == 1 or compiled or network.windows is not None:
        return nullcontext()
    return cached_passes(network)
