"""The shape of a network in training: a backbone and the head that reads it.

The convention all methods share: what `build` returns is a `Headed` network (or holds
one), `network.backbone(x)` gives features (B, F) or (B, F, *space), and `network(x)`
gives the outputs (B, K, *space) in float32, K on axis 1: one logit per class, a single
one for two classes, or the numbers a regression method asks for.
"""

import torch
from torch import Tensor, nn

from qualms.spec import Task

HIDDEN = 512


class Headed(nn.Module):
    """A backbone, the head that reads its features, and what `after` finds."""

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        task: Task,
        found: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.task = task
        self.found = nn.Identity() if found is None else found

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, K, *space) of inputs (B, channels, *space)."""
        return read(self.head, self.backbone(x))


def read(head: nn.Module, features: Tensor) -> Tensor:
    """Outputs (B, K, *space) of `head` in float32, whatever the backbone runs in.

    Half precision would round a count of 150 to a whole number; so the head runs in
    full precision too, but for maps, where that would cost too much.
    """
    if features.ndim > 2:
        maps: Tensor = head(features)
        return maps.float()
    with torch.autocast(features.device.type, enabled=False):
        outputs: Tensor = head(features.float())
        return outputs


class Readout(nn.Module):
    """A head as two parts: what its last linear layer sees, and that layer."""

    def __init__(self, trunk: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.last = last

    def forward(self, features: Tensor) -> Tensor:
        """Outputs (B, K, *space) of features (B, F, *space)."""
        outputs: Tensor = self.last(self.trunk(features))
        return outputs


def features_of(backbone: nn.Module) -> int:
    """The number of features a backbone states in its attribute `features`."""
    width = backbone.features
    if not isinstance(width, int):
        raise TypeError(
            "a backbone must state its number of features as a whole number in the "
            f"attribute 'features', got {type(width).__name__}"
        )
    return width


def class_readout(backbone: nn.Module, outputs: int) -> Readout:
    """One linear layer, begun as the backbone states.

    A backbone may state in `head_sd` the standard deviation of its classifier's first
    weights, whose biases then begin at 0; otherwise torch's own beginning holds.
    """
    last = nn.Linear(features_of(backbone), outputs)
    sd = getattr(backbone, "head_sd", None)
    if sd is not None:
        nn.init.normal_(last.weight, std=sd)
        nn.init.zeros_(last.bias)
    return Readout(nn.Identity(), last)


def regression_readout(width: int) -> Readout:
    """The head of Gustafsson et al. (2023): one hidden layer of 512, one output."""
    trunk = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU())
    return Readout(trunk, nn.Linear(HIDDEN, 1))


def last_inputs(network: Headed, x: Tensor) -> Tensor:
    """What the last layer of a `Readout` sees (B, F, *space), in float32."""
    features = network.backbone(x).float()
    head = network.head
    assert isinstance(head, Readout)
    with torch.autocast(features.device.type, enabled=False):
        inputs: Tensor = head.trunk(features)
        return inputs


class TwoHeads(nn.Module):
    """Two separate regression heads side by side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = regression_readout(width)
        self.second = regression_readout(width)

    def forward(self, features: Tensor) -> Tensor:
        """Outputs (B, 2) of features (B, F)."""
        return torch.cat([self.first(features), self.second(features)], 1)


def headed(network: nn.Module) -> Headed:
    """`network` as the `Headed` it must be; told apart here, once, for the types."""
    if not isinstance(network, Headed):
        raise TypeError(
            "this method needs the network its own build returned, got "
            f"{type(network).__name__}; compile a network in place and hand over what "
            "a wrapper holds"
        )
    return network
