"""HRNet-W48 as the VALUES benchmark segments street scenes (Kahl et al., 2024).

The backbone of Wang et al. (2020) is timm's; the layers after it are those of the
released code. The four branches are resized to a quarter of the image and joined, and a
1x1 convolution with normalisation mixes them. The last convolution belongs to the head,
and its outputs are interpolated to the size of the image.

Two things differ from timm's own forward pass and are as in the released code: coarse
branches are interpolated bilinearly, and to the exact size of the finer one, so that
sides need not be multiples of 32.
"""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from qualms.networks._timm import load_timm

_STEM = 4
"""Pixels of the image for one of the finest branch, along an axis."""


def hrnet_w48(
    *,
    channels: int,
    weights: str = "random",
    batch_statistics: bool = False,
    variant: str = "hrnet_w48",
) -> nn.Module:
    """Return a network that maps an image to 720 features at a quarter of its size.

    It has 65,845,680 parameters.

    Dropout acts after each of the four branches.

    Args:
        channels: channels of the images.
        weights: "random"; "imagenet" for timm's, which are read from its cache or
            downloaded; or the path of a file with weights of timm's network.
        batch_statistics: whether normalisation uses the mean and variance of the batch
            in evaluation mode too, as the released code does. A prediction then depends
            on the other items of its batch, of 12 items there.
        variant: another HRNet of timm, such as "hrnet_w18_small".
    """
    if not variant.startswith("hrnet"):
        raise ValueError(
            f"variant must be an HRNet of timm, such as 'hrnet_w48', got {variant!r}"
        )
    network = HRNet(_created(variant, channels, weights))
    if batch_statistics:
        _forget_statistics(network)
    return network


class HRNet(nn.Module):
    """Network from images (B, channels, H, W) to maps (B, features, H / 4, W / 4)."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        widths = network.feature_info.channels()
        self.network = network
        self.branches = nn.ModuleList(nn.Identity() for _ in widths)
        self.features = sum(widths)
        self.mix = nn.Sequential(
            nn.Conv2d(self.features, self.features, 1),
            nn.BatchNorm2d(self.features),
            nn.ReLU(inplace=True),
        )
        self.dropout_after = tuple(f"branches.{i}" for i in range(len(widths)))
        self._sizes = _BranchSizes(len(widths))
        _fit_branches(network, self._sizes)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, features, H / 4, W / 4) of images (B, channels, H, W)."""
        self._sizes.note(x)
        maps = [
            branch(features)
            for branch, features in zip(self.branches, self.network(x), strict=True)
        ]
        finest = maps[0].shape[2:]
        maps = [maps[0], *(_interpolated(coarse, finest) for coarse in maps[1:])]
        mixed: Tensor = self.mix(torch.cat(maps, 1))
        return mixed


class _BranchSizes:
    """Sizes of all branches, which follow from that of the image."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.sizes: list[tuple[int, ...]] = []

    def note(self, image: Tensor) -> None:
        strides = [_STEM * 2**branch for branch in range(self._count)]
        # Each halving rounds up, and so do all of them together.
        self.sizes = [tuple(-(-n // by) for n in image.shape[2:]) for by in strides]


class _Interpolation(nn.Module):
    """Interpolation of a coarse map to the size of a finer branch."""

    def __init__(self, branch: int, sizes: _BranchSizes) -> None:
        super().__init__()
        self.branch = branch
        self._sizes = sizes

    def forward(self, x: Tensor) -> Tensor:
        return _interpolated(x, self._sizes.sizes[self.branch])


def _interpolated(x: Tensor, size: tuple[int, ...]) -> Tensor:
    return functional.interpolate(x, list(size), mode="bilinear", align_corners=False)


def _fit_branches(network: nn.Module, sizes: _BranchSizes) -> None:
    """Replace the layers that resize a coarse branch to a finer one."""
    for name, layer in list(network.named_modules()):
        if isinstance(layer, nn.Upsample):
            # Its name ends in fuse_layers.<finer>.<coarser>.<number>.
            parent, _, last = name.rpartition(".")
            finer = int(parent.split(".")[-2])
            network.get_submodule(parent).add_module(last, _Interpolation(finer, sizes))


def _forget_statistics(network: nn.Module) -> None:
    for layer in network.modules():
        if isinstance(layer, _BatchNorm):
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None


def _created(variant: str, channels: int, weights: str) -> Any:
    timm = load_timm()
    options: dict[str, Any] = {"pretrained": weights != "random"}
    if weights not in ("random", "imagenet"):
        if not Path(weights).is_file():
            raise ValueError(
                "weights must be 'random', 'imagenet' or the path of a file, got"
                f" {weights!r}, which is no file"
            )
        options["pretrained_cfg_overlay"] = {"file": weights}
    try:
        return timm.create_model(
            variant,
            in_chans=channels,
            features_only=True,
            feature_location="",
            out_indices=(1, 2, 3, 4),
            **options,
        )
    except (OSError, RuntimeError, UnpicklingError) as error:
        if weights == "random":
            raise
        why = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"the weights {weights!r} of {variant} cannot be read: {why}; give the path"
            " of another file, or train from weights='random'"
        ) from error
