"""The shape of a network in training: a backbone and the head that reads it.

All methods share one convention. `build` returns a `Headed` network, or a network that
holds one. `network.backbone(x)` gives features (B, F) or (B, F, *space), and
`network(x)` gives outputs (B, K, *space) in float32 with K on axis 1: one logit per
class, a single one for two classes, or the numbers that a regression method needs.
Maps of features may be coarser than the image; outputs have the size of the image.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._windows import Windows
from qualms.networks import as_backbone
from qualms.spec import Task

HIDDEN = 512
_FLAT = 2
"""Axes of features without space."""


class Headed(nn.Module):
    """A backbone, the head that reads its features, and what `after` fits."""

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        task: Task,
        fitted: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.task = task
        self.fitted = nn.Identity() if fitted is None else fitted
        self.windows: Windows | None = None
        """Windows through which large images are seen; None to see them as a whole."""

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (B, K, *space) of inputs (B, channels, *space)."""
        if self.windows is not None:
            return self.windows.stitched(self._pass, x)
        return self._pass(x)

    def _pass(self, x: Tensor) -> Tensor:
        return upsampled(read_head(self.head, self.backbone(x)), x)


@contextmanager
def through_windows(network: nn.Module, windows: Windows | None) -> Iterator[None]:
    """Pass images through `windows` to `network` inside the context."""
    parts = [part for part in network.modules() if isinstance(part, Headed)]
    if windows is not None and not parts:
        raise TypeError(
            "a network that sees images through windows must hold one that"
            f" `plain_head` made, got {type(network).__name__}"
        )
    for part in parts:
        part.windows = windows
    try:
        yield
    finally:
        for part in parts:
            part.windows = None


def upsampled(maps: Tensor, image: Tensor) -> Tensor:
    """Interpolate `maps` (B, K, *space) linearly to the size of `image`.

    Interpolation commutes with a 1x1 convolution, so interpolating the outputs of a
    head on coarse maps equals a head on interpolated maps, and costs less.
    """
    size = image.shape[2:]
    if maps.shape[2:] == size or maps.ndim == _FLAT:
        return maps
    mode = "bilinear" if len(size) == 2 else "trilinear"
    return functional.interpolate(maps, size=size, mode=mode, align_corners=False)


def headed(network: nn.Module) -> Headed:
    """Return `network` with the type `Headed`; raise if it is of another type."""
    if not isinstance(network, Headed):
        raise TypeError(
            "this method needs the network that its own build returned, got "
            f"{type(network).__name__}; compile a network in place, and hand over what "
            "a wrapper holds"
        )
    return network


def read_head(head: nn.Module, features: Tensor) -> Tensor:
    """Return outputs (B, K, *space) of `head` in float32.

    Half precision would round a count of 150 to an integer, so the head runs in full
    precision whatever the backbone runs in. For maps this would cost too much.
    """
    if features.ndim > _FLAT:
        maps: Tensor = head(features)
        return maps.float()
    with torch.autocast(features.device.type, enabled=False):
        outputs: Tensor = head(features.float())
        return outputs


class Readout(nn.Module):
    """A head in two parts: its last linear layer, and the layers before it.

    A second head `beside` the last layer may read the same inputs.
    """

    def __init__(
        self, trunk: nn.Module, last: nn.Module, beside: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.last = last
        self.register_module("beside", beside)

    def forward(self, features: Tensor) -> Tensor:
        """Return outputs (B, K, *space) of features (B, F, *space)."""
        outputs: Tensor = self.last(self.trunk(features))
        return outputs


class TwoHeads(nn.Module):
    """Two separate regression heads side by side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = regression_readout(width)
        self.second = regression_readout(width)

    def forward(self, features: Tensor) -> Tensor:
        """Return outputs (B, 2) of features (B, F)."""
        return torch.cat([self.first(features), self.second(features)], 1)


def features_of(backbone: nn.Module) -> int:
    """Return the number of features that a backbone states."""
    width = backbone.features
    if not isinstance(width, int):
        raise TypeError(
            "a backbone must state its number of features as a whole number in the "
            f"attribute 'features', got {type(width).__name__}"
        )
    return width


def class_readout(
    backbone: nn.Module, outputs: int, *, projection: int | None = None
) -> Readout:
    """Return a linear layer on the features, or on a linear `projection` of them.

    It starts as the `classifier` of the backbone if the shapes agree, else with weights
    of standard deviation `head_sd` if the backbone states it, else as torch has it.
    """
    trunk, width = _projected(backbone, projection)
    last = nn.Linear(width, outputs)
    if start_as_classifier(last, backbone):
        return Readout(trunk, last)
    sd = as_backbone(backbone).head_sd
    if sd is not None:
        nn.init.normal_(last.weight, std=sd)
        nn.init.zeros_(last.bias)
    return Readout(trunk, last)


def start_as_classifier(last: nn.Linear, backbone: nn.Module) -> bool:
    """Copy the `classifier` of a backbone to `last`, if it has one of the same shape.

    Returns:
        True if there was one.
    """
    classifier = as_backbone(backbone).classifier
    if classifier is None or classifier.weight.shape != last.weight.shape:
        return False
    with torch.no_grad():
        last.weight.copy_(classifier.weight)
        if last.bias is not None:
            last.bias.copy_(classifier.bias)
    return True


def embedding_readout(backbone: nn.Module, projection: int | None) -> Readout:
    """Return a head without a classifier: its outputs are the embedding itself."""
    return Readout(_projected(backbone, projection)[0], nn.Identity())


def _projected(backbone: nn.Module, projection: int | None) -> tuple[nn.Module, int]:
    width = features_of(backbone)
    if projection is None:
        return nn.Identity(), width
    if projection < 1:
        raise ValueError(f"projection must be at least 1 wide, got {projection}")
    return nn.Linear(width, projection), projection


def regression_readout(width: int) -> Readout:
    """Return the head of Gustafsson et al. (2023), with one hidden layer of 512."""
    trunk = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU())
    return Readout(trunk, nn.Linear(HIDDEN, 1))


def last_inputs(network: Headed, x: Tensor) -> Tensor:
    """Return the inputs (B, F, *space) of the last layer of a `Readout`, in float32."""
    features = network.backbone(x).float()
    head = network.head
    assert isinstance(head, Readout)
    with torch.autocast(features.device.type, enabled=False):
        inputs: Tensor = head.trunk(features)
        return inputs


class Draw(NamedTuple):
    """One draw of a network."""

    outputs: Tensor
    """(B, K, *space); the embedding where there is no classifier."""
    inputs: Tensor | None = None
    """(B, F) inputs of the last layer, for tasks that keep them."""


def output_draw(network: nn.Module, x: Tensor) -> Draw:
    """Return the outputs of one pass."""
    return Draw(network(x))


def embed(network: nn.Module, x: Tensor) -> Draw:
    """Return embedding and outputs of one pass; the last layer reads the embedding."""
    network = headed(network)
    embedding = last_inputs(network, x)
    head = network.head
    assert isinstance(head, Readout)
    with torch.autocast(embedding.device.type, enabled=False):
        return Draw(head.last(embedding), embedding)


class FittedBuffers(nn.Module):
    """Named buffers for the results of `after`, so that a checkpoint holds them.

    They are empty at first. Their shapes may depend on the training split, which is
    unknown when the network is built; so on loading they take the shapes and dtypes of
    the stored values.
    """

    device_of: Tensor

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("device_of", torch.empty(0), persistent=False)
        for name in self.names:
            self.register_buffer(name, None)
        self.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
            _take_shapes
        )

    def keep(self, name: str, values: Tensor) -> None:
        """Store `values` under `name`."""
        assert name in self.names
        self.register_buffer(name, values.detach().clone())

    def get(self, name: str) -> Tensor:
        """Return what is stored under `name`."""
        values = self._buffers[name]
        assert values is not None
        return values

    def forget(self, name: str) -> None:
        """Remove what is stored under `name`."""
        assert name in self.names
        self.register_buffer(name, None)

    def has(self, name: str) -> bool:
        """Return whether something is stored under `name`."""
        return self._buffers[name] is not None

    @property
    def ready(self) -> bool:
        """True if something is stored under every name."""
        return all(self.has(name) for name in self.names)


def _take_shapes(
    module: nn.Module, state: Mapping[str, Tensor], prefix: str, *_: object
) -> None:
    assert isinstance(module, FittedBuffers)
    for name in module.names:
        stored = state.get(prefix + name)
        empty = (
            None
            if stored is None
            else torch.empty_like(stored, device=module.device_of.device)
        )
        module.register_buffer(name, empty)
