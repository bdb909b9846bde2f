"""Any network of timm as a backbone, and torchvision beside any torch.

The torchvision wheel of PyPI is compiled for the CUDA build of torch. Beside the CPU
build its library does not load: importing it fails with "operator torchvision::nms does
not exist", and so do timm and torchmetrics, which import it. It is enough to declare
the two operators that it looks for; detection operators remain unavailable. Call
`load_torchvision` before anything that imports torchvision.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

_OURS = ("num_classes", "in_chans", "global_pool")
# The windows of an image meet the global queries of another one: timm repeats them in
# another order than the windows.
_MIXING = ("gcvit",)
_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
# The declarations live as long as this object does.
_DECLARED: list[torch.library.Library] = []


class TimmBackbone(nn.Module):
    """A timm network without its classifier.

    Images (B, channels, H, W) become pooled features (B, features).
    """

    def __init__(self, name: str, *, channels: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.network = _created(name, channels, options)
        # Where a network does not state what its classifier would read, these are that.
        width = getattr(self.network, "head_hidden_size", self.network.num_features)
        self.features = int(width)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, features) of images (B, channels, H, W)."""
        features: Tensor = self.network(x)
        return features


def is_timm_name(name: str) -> bool:
    """Whether timm has a network `name`, with or without the tag of its weights."""
    return bool(load_timm().is_model(name))


def timm_names() -> list[str]:
    """The names of all networks of timm."""
    return list(load_timm().list_models())


@cache
def load_timm() -> Any:
    """The package timm, which imports torchvision."""
    load_torchvision()
    return import_module("timm")


def load_torchvision() -> None:
    """Import torchvision, and declare the missing operators where that fails."""
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        _declare()
        import_module("torchvision")


def _declare() -> None:
    library = torch.library.Library(  # type: ignore[no-untyped-call]
        "torchvision", "DEF"
    )
    for schema in _OPERATORS:
        library.define(schema)  # type: ignore[no-untyped-call]
    _DECLARED.append(library)
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]


def _created(name: str, channels: int, options: Mapping[str, Any]) -> Any:
    taken = sorted(set(options) & set(_OURS))
    if taken:
        raise ValueError(
            f"{', '.join(taken)} of {name!r} follow from the task and the data; leave "
            "them out"
        )
    if name.startswith(_MIXING):
        raise ValueError(
            f"timm's {name!r} mixes the items of a batch, so a prediction would depend "
            "on the items that are predicted with it; choose another network"
        )
    try:
        create = load_timm().create_model
        return create(name, num_classes=0, in_chans=channels, **options)
    except TypeError as error:
        raise ValueError(
            f"timm's {name!r} cannot be made with the options {dict(options)}: {error}"
        ) from error
