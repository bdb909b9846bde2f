"""Networks, one file per family; the folder is the registry.

A network is a function of its options that returns an `nn.Module`, from inputs
(B, channels, *space) to features. `Backbone` says which attributes it has, and which it
may have. Networks of timm need no file.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from qualms.networks._backbone import Backbone, as_backbone
from qualms.networks._onnx import onnx_classifier
from qualms.networks._open_clip import open_clip_network
from qualms.networks._pictures import PictureNetwork
from qualms.networks._timm import (
    IMAGENET,
    Colours,
    TimmBackbone,
    is_timm_name,
    load_torchvision,
    timm_colours,
    timm_names,
    timm_network,
)
from qualms.shelf import find, names
from qualms.spec import Part
from qualms.wording import suggest

__all__ = [
    "IMAGENET",
    "Backbone",
    "Colours",
    "PictureNetwork",
    "as_backbone",
    "load_torchvision",
    "make_network",
    "network_colours",
    "onnx_classifier",
    "picture_network",
]

_PREFIX = "timm:"
_OPEN_CLIP = "open_clip:"


def make_network(part: Part, *, channels: int) -> nn.Module:
    """Return the backbone that `part` names, for images with `channels` channels.

    A name is looked up on our own shelf, then among timm's networks; `timm:<name>`
    always means timm's.
    """
    shelf = names("networks")
    if part.name in shelf:
        network: nn.Module = _call(find("networks", part.name), part, channels)
        return network
    name = part.name.removeprefix(_PREFIX)
    if not is_timm_name(name):
        hint = suggest(name, (*shelf, *timm_names()))
        raise LookupError(
            f"no {part.name!r} in networks, nor in timm.{hint} Known:"
            f" {', '.join(shelf)}, and any timm name."
        )
    return TimmBackbone(name, channels=channels, options=part.options)


def picture_network(name: str, weights: str) -> PictureNetwork:
    """Return a trained network by name: `timm:<name>`, or `open_clip:<name>`.

    A name without a prefix is one of timm.

    Args:
        name: Name of the network.
        weights: "pretrained" for timm's own, the name of open_clip's, the path of a
            file, or "package:NAME" for the file in an installed package.
    """
    if name.startswith(_OPEN_CLIP):
        return open_clip_network(name.removeprefix(_OPEN_CLIP), weights)
    plain = name.removeprefix(_PREFIX)
    if not is_timm_name(plain):
        raise LookupError(f"no {plain!r} in timm.{suggest(plain, timm_names())}")
    return timm_network(plain, weights)


def network_colours(part: Part) -> Colours:
    """Return the colours by which images are normalised for the network of `part`.

    Networks of timm state the colours that their weights were trained with. Those of
    our own shelf take the colours of ImageNet.
    """
    if part.name in names("networks"):
        return IMAGENET
    name = part.name.removeprefix(_PREFIX)
    return timm_colours(name) if is_timm_name(name) else IMAGENET


def _call(make: Callable[..., Any], part: Part, channels: int) -> Any:
    options: Mapping[str, Any] = part.options
    allowed = [
        name for name in inspect.signature(make).parameters if name != "channels"
    ]
    for name in options:
        if name not in allowed:
            raise ValueError(
                f"network {part.name!r} has no option {name!r}."
                f"{suggest(name, allowed)} Known: {', '.join(allowed)}."
            )
    return make(channels=channels, **options)
