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
from qualms.networks._onnx import OnnxClassifier, onnx_classifier
from qualms.networks._timm import (
    IMAGENET,
    Colours,
    TimmBackbone,
    TimmClassifier,
    is_timm_name,
    load_torchvision,
    timm_classifier,
    timm_colours,
    timm_names,
)
from qualms.shelf import find, names
from qualms.spec import Part
from qualms.wording import suggest

__all__ = [
    "IMAGENET",
    "Backbone",
    "Colours",
    "OnnxClassifier",
    "TimmClassifier",
    "as_backbone",
    "load_torchvision",
    "make_classifier",
    "make_network",
    "network_colours",
    "onnx_classifier",
]

_PREFIX = "timm:"


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


def make_classifier(name: str, weights: str) -> TimmClassifier:
    """Return the network `name` or `timm:<name>` of timm, with its classifier."""
    plain = name.removeprefix(_PREFIX)
    if not is_timm_name(plain):
        raise LookupError(f"no {plain!r} in timm.{suggest(plain, timm_names())}")
    return timm_classifier(plain, weights)


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
