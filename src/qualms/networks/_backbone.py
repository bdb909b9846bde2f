"""The contract between networks and methods: what a backbone is and may declare."""

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from torch import Tensor, nn

from qualms.networks._weights import Classifier


class Backbone(Protocol):
    """A network without a head, from inputs (B, channels, *space) to features.

    Every `nn.Module` that states its `features` is one. All other attributes are
    optional: `as_backbone` adds the defaults of those that a module leaves out.
    """

    features: int
    """Number F of features, (B, F), or (B, F, *space) for segmentation."""
    dropout_after: Sequence[str] = ()
    """Names of the layers after which Monte Carlo dropout acts."""
    head_sd: float | None = None
    """Standard deviation of the initial weights of a classifier, whose biases then
    start at 0; None for torch's own initialisation."""
    classifier: Classifier | nn.Linear | None = None
    """Last layer that came with the weights; a head of the same shape starts as it."""
    trained_head: Callable[[int | None], nn.Module] | None = None
    """Function that returns the head that came with a trained network. It takes the
    number of outputs that a method needs; None for the network's own."""
    note: str = ""
    """Note for the user about the weights."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the features of `x`."""
        ...


_OPTIONAL = ("dropout_after", "head_sd", "classifier", "trained_head", "note")


def as_backbone(network: nn.Module) -> Backbone:
    """Return `network`, with the defaults of the optional attributes that it lacks."""
    for name in _OPTIONAL:
        if not hasattr(network, name):
            setattr(network, name, getattr(Backbone, name))
    return cast(Backbone, network)
