"""Networks of open_clip (Ilharco et al., 2021), which embed pictures.

Of both towers the one for pictures is taken. Its embedding is not normalised, so that
its length says something.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from qualms.networks._hub import quick_hub
from qualms.networks._pictures import PictureNetwork
from qualms.networks._timm import load_torchvision
from qualms.networks._weights import weights_file
from qualms.wording import suggest


def open_clip_network(name: str, weights: str) -> PictureNetwork:
    """Return the tower for pictures of the network `name` of open_clip.

    Args:
        name: such as "ViT-B-32".
        weights: name of open_clip's own weights, such as "laion2b_s34b_b79k", the path
            of a file, or "package:NAME".
    """
    open_clip = _library(name)
    known = open_clip.list_models()
    if name not in known:
        raise LookupError(f"no {name!r} in open_clip.{suggest(name, known)}")
    tags = open_clip.list_pretrained_tags_by_model(name)
    if weights not in tags:
        weights = str(_file(name, weights, tags))
    model, _, prepare = _created(open_clip, name, weights)
    return PictureNetwork(_PictureTower(model).eval(), 0, prepare, "")


class _PictureTower(nn.Module):
    """The tower for pictures of a network of open_clip."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower: nn.Module = model.visual

    def forward(self, x: Tensor) -> Tensor:
        """Return embeddings (B, D) of images (B, 3, H, W)."""
        embedding: Tensor = self.tower(x)
        return embedding


def _library(name: str) -> Any:
    load_torchvision()
    try:
        return import_module("open_clip")
    except ImportError as error:
        raise ValueError(
            f"'open_clip:{name}' needs open_clip, which is not installed; install"
            " 'open_clip_torch'"
        ) from error


def _file(name: str, weights: str, tags: list[str]) -> Path:
    """Return the file of weights; raise where it is neither a file nor a known name."""
    if weights == "pretrained":
        raise ValueError(
            f"open_clip has several weights of {name!r}: say which with --weights"
            f" ({', '.join(tags) or 'none'}), or give the path of a file"
        )
    path = weights_file(weights)
    if not path.is_file():
        raise ValueError(
            f"weights of {name!r} must be a file, 'package:NAME', or a name of"
            f" open_clip, got {weights!r}.{suggest(weights, tags)} Known:"
            f" {', '.join(tags) or 'none'}"
        )
    return path


def _created(open_clip: Any, name: str, weights: str) -> Any:
    with quick_hub() as hub:
        try:
            return open_clip.create_model_and_transforms(
                name, pretrained=weights, weights_only=True
            )
        except (OSError, RuntimeError, ValueError, LookupError) as error:
            raise ValueError(
                f"the weights {weights!r} of open_clip's {name!r} cannot be loaded:"
                f" {hub.reason(error)}; give the path of a file with --weights"
            ) from error
