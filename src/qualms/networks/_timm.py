"""Any network of timm as a backbone, and torchvision beside any build of torch.

The torchvision wheel of PyPI is compiled for the CUDA build of torch. Beside the CPU
build its library does not load: importing it fails with "operator torchvision::nms does
not exist", and so do timm and torchmetrics, which import it. It is enough to declare
the two operators that it needs; detection operators remain unavailable. Call
`load_torchvision` before importing anything that imports torchvision.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from qualms.networks._hub import quick_hub
from qualms.networks._pictures import PictureNetwork
from qualms.networks._weights import Classifier, load_weights, weights_file

Pool = Literal["own", "average", "max"]
_SET_BY_US = ("num_classes", "in_chans", "global_pool", "pretrained", "checkpoint_path")
_INSTEAD = {
    "global_pool": "; state pool='average' or 'max'",
    "pretrained": "; state weights='pretrained'",
    "checkpoint_path": "; state weights=PATH",
}
_POOLS = {"average": "avg", "max": "max"}
# The windows of an image meet the global queries of another image: timm repeats the
# queries in another order than the windows.
_MIXING = ("gcvit",)
_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
# The declarations live as long as this object does.
_DECLARED: list[torch.library.Library] = []


class Colours(NamedTuple):
    """Mean and standard deviation of each colour, of images in 0..1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET = Colours((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class TimmBackbone(nn.Module):
    """A timm network without its classifier.

    Images (B, channels, H, W) become pooled features (B, features). Besides the options
    of timm there are two more. `weights` is "random"; "pretrained" for those of timm,
    which are read from its cache or downloaded; the path of a file with a state dict or
    safetensors; or "package:NAME" for the file of weights in an installed package.
    `pool` is "own" for the network's pooling (the mean in most networks), "average" or
    "max".
    """

    def __init__(self, name: str, *, channels: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        of_timm = {"weights": "random", "pool": "own", **options}
        weights, pool = of_timm.pop("weights"), of_timm.pop("pool")
        if pool not in get_args(Pool):
            raise ValueError(f"pool must be 'own', 'average' or 'max', got {pool!r}")
        if pool != "own":
            of_timm["global_pool"] = _POOLS[pool]
        _check(name, options)
        self.classifier: Classifier | None = None
        self.note = ""
        if weights == "pretrained":
            self.network = _pretrained(name, channels, of_timm)
            self.classifier = _split_off(self.network)
        else:
            self.network = _created(name, channels, {**of_timm, "num_classes": 0})
        if weights not in ("pretrained", "random"):
            path = weights_file(str(weights))
            self.classifier, self.note = load_weights(self.network, path)
        # Not every network states how many inputs its classifier would have.
        width = getattr(self.network, "head_hidden_size", self.network.num_features)
        self.features = int(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, features) of images (B, channels, H, W)."""
        features: Tensor = self.network(x)
        return features


def timm_colours(name: str) -> Colours:
    """Return the colours by which timm normalises images for its network `name`."""
    load_timm()
    config = import_module("timm.models").get_pretrained_cfg(name)
    if config is None:
        return IMAGENET
    return Colours(tuple(config.mean), tuple(config.std))


def timm_network(name: str, weights: str) -> PictureNetwork:
    """Return the network `name` of timm with the classifier of its `weights`, if any.

    They are "pretrained", or the path of a file.
    """
    backbone = TimmBackbone(name, channels=3, options={"weights": weights})
    data = import_module("timm.data")
    prepare = data.create_transform(**data.resolve_model_data_config(backbone.network))
    classifier = backbone.classifier
    if classifier is None:
        return PictureNetwork(backbone.eval(), 0, prepare, backbone.note)
    last = nn.Linear(classifier.weight.shape[1], len(classifier.weight))
    with torch.no_grad():
        last.weight.copy_(classifier.weight)
        last.bias.copy_(classifier.bias)
    network = nn.Sequential(backbone, last).eval()
    return PictureNetwork(network, len(last.weight), prepare, backbone.note)


def is_timm_name(name: str) -> bool:
    """Return whether timm has a network `name`, with or without a tag of weights."""
    return bool(load_timm().is_model(name))


def timm_names() -> list[str]:
    """Return the names of all networks of timm."""
    return list(load_timm().list_models())


@cache
def load_timm() -> Any:
    """Import timm, which imports torchvision."""
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


def _check(name: str, options: Mapping[str, Any]) -> None:
    refused = sorted(set(options) & set(_SET_BY_US))
    if refused:
        instead = "".join(_INSTEAD.get(option, "") for option in refused)
        raise ValueError(
            f"{', '.join(refused)} of {name!r} follow from the task and the data; "
            f"leave them out{instead}"
        )
    if name.startswith(_MIXING):
        raise ValueError(
            f"timm's {name!r} mixes the items of a batch, so a prediction would depend "
            "on the items that are predicted with it; choose another network"
        )


def _created(name: str, channels: int, options: Mapping[str, Any]) -> Any:
    of_user = {k: v for k, v in options.items() if k not in _SET_BY_US}
    try:
        create = load_timm().create_model
        return create(name, in_chans=channels, **options)
    except TypeError as error:
        raise ValueError(
            f"timm's {name!r} cannot be made with the options {of_user}: {error}"
        ) from error


def _pretrained(name: str, channels: int, options: Mapping[str, Any]) -> Any:
    with quick_hub() as hub:
        try:
            return _created(name, channels, {**options, "pretrained": True})
        except (OSError, RuntimeError) as error:
            raise ValueError(
                f"the pretrained weights of timm's {name!r} cannot be loaded:"
                f" {hub.reason(error)}; state the path of a file in 'weights'"
                " (--weights FILE), 'package:NAME' for those of an installed package,"
                " or train from weights='random'"
            ) from error


def _split_off(network: Any) -> Classifier | None:
    """Remove the classifier of `network` and return it."""
    last = network.get_classifier()
    network.reset_classifier(0)
    if not isinstance(last, nn.Linear) or last.bias is None:
        return None
    return Classifier(last.weight.detach(), last.bias.detach())
