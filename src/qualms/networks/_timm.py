"""Any network timm knows, as a backbone."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from qualms.networks import _torchvision

_torchvision.load()  # before timm, which imports torchvision

import timm  # noqa: E402

_OURS = ("num_classes", "in_chans", "global_pool")


class Timm(nn.Module):
    """A timm network without its classifier.

    Images (B, channels, H, W) become pooled features (B, features).
    """

    def __init__(self, name: str, *, channels: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.network = _created(name, channels, options)
        self.features = int(self.network.head_hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, features) of images (B, channels, H, W)."""
        features: Tensor = self.network(x)
        return features


def known(name: str) -> bool:
    """Whether timm has a network `name`, with or without the tag of its weights."""
    return bool(timm.is_model(name))


def names() -> list[str]:
    """Every network of timm."""
    return list(timm.list_models())


def _created(name: str, channels: int, options: Mapping[str, Any]) -> Any:
    taken = sorted(set(options) & set(_OURS))
    if taken:
        raise ValueError(
            f"{', '.join(taken)} of {name!r} follow from the task and the data; leave "
            "them out"
        )
    try:
        return timm.create_model(name, num_classes=0, in_chans=channels, **options)
    except TypeError as error:
        raise ValueError(
            f"timm's {name!r} cannot be made with the options {dict(options)}: {error}"
        ) from error
