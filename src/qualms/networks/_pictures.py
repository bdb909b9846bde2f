"""The record of a network that is trained already, with the form of its pictures."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn


class PictureNetwork(NamedTuple):
    """A trained network, and the preparation of its pictures."""

    network: nn.Module
    """From images (B, C, H, W) to outputs (B, K), or to embeddings (B, D)."""
    outputs: int
    """Number K of outputs of its classifier; 0 for a network without one."""
    prepare: Callable[[Any], Tensor]
    """From a picture of Pillow to (C, H, W), resized, cropped and normalised."""
    note: str
    """Note for the user about the weights or the preparation, or ''."""
