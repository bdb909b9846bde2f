"""The U-Net of the VALUES benchmark (Kahl et al., 2024), for volumes and for images.

Ronneberger et al. (2015) with instance normalisation, as in the released code: two
convolutions on each level, max-pooling on the way down, transposed convolutions on the
way up. Only the way down is normalised, without parameters and without running
statistics, so a pass is the same in training and in evaluation mode.

The released code counts 1,411,787 parameters for 8 filters and 5,644,947 for 16. That
is this backbone, a 1x1x1 convolution to two classes, and another one to a single
channel, which it declares for reconstruction and never uses.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


def unet(
    *, channels: int, space: int = 3, width: int = 8, levels: int = 4
) -> nn.Module:
    """A map of `width` features for every voxel; 1,411,760 parameters by default.

    Dropout acts after every activation of the convolutions and at the end of the
    bottleneck: at 17 places for four levels.

    Args:
        channels: of the images.
        space: axes of the images, 3 for volumes and 2 for pictures.
        width: filters of the first level; they double with every level. The paper has 8
            for the toy data and 16 for LIDC.
        levels: above the bottleneck.
    """
    if space not in _KINDS:
        raise ValueError(f"space must be 2 or 3, got {space}")
    if width < 1 or levels < 1:
        raise ValueError(
            f"width and levels must be at least 1, got {width} and {levels}"
        )
    return UNet(channels=channels, space=space, width=width, levels=levels)


class UNet(nn.Module):
    """Images (B, channels, *space) become maps (B, features, *space) of their size.

    `dropout_after` names the layers after which Monte Carlo dropout acts.
    """

    def __init__(self, *, channels: int, space: int, width: int, levels: int) -> None:
        super().__init__()
        kind = _KINDS[space]
        self.features = width
        self.space = space
        widths = [width * 2**level for level in range(levels)]
        befores = [channels, *widths]
        self.down = nn.ModuleList(
            nn.Sequential(_contracted(kind, a, b), _contracted(kind, b, b))
            for a, b in zip(befores, widths, strict=False)
        )
        self.pool = kind.pool(2)
        self.bottom = _bottleneck(kind, widths[-1])
        self.up = nn.ModuleList(
            nn.Sequential(_expanded(kind, 2 * a, a), _expanded(kind, a, a))
            for a in reversed(widths)
        )
        self.scale = nn.ModuleList(
            kind.transposed(a, a // 2, 2, stride=2) for a in reversed(widths[1:])
        )
        self.dropout_after = tuple(_places(levels))

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, features, *space) of images (B, channels, *space)."""
        if x.ndim != self.space + 2:
            raise ValueError(
                f"this unet sees images of {self.space} axes, got {x.ndim - 2}; set its"
                " option 'space'"
            )
        seen = []
        for level in self.down:
            x = level(x)
            seen.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for number, level in enumerate(self.up):
            if number:
                x = self.scale[number - 1](x)
            beside = seen.pop()
            x = level(torch.cat([_stretched(x, beside), beside], 1))
        return x


class _Kind(NamedTuple):
    convolution: type[nn.Conv2d] | type[nn.Conv3d]
    transposed: type[nn.ConvTranspose2d] | type[nn.ConvTranspose3d]
    norm: type[nn.InstanceNorm2d] | type[nn.InstanceNorm3d]
    pool: type[nn.MaxPool2d] | type[nn.MaxPool3d]


_KINDS = {
    2: _Kind(nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d, nn.MaxPool2d),
    3: _Kind(nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d, nn.MaxPool3d),
}


def _contracted(kind: _Kind, before: int, after: int) -> nn.Sequential:
    convolution = kind.convolution(before, after, 3, padding=1)
    return nn.Sequential(convolution, kind.norm(after), nn.LeakyReLU(inplace=True))


def _expanded(kind: _Kind, before: int, after: int) -> nn.Sequential:
    convolution = kind.convolution(before, after, 3, padding=1)
    return nn.Sequential(convolution, nn.LeakyReLU(inplace=True))


def _bottleneck(kind: _Kind, width: int) -> nn.Sequential:
    return nn.Sequential(
        kind.convolution(width, 2 * width, 3, padding=1),
        nn.ReLU(inplace=True),
        kind.convolution(2 * width, 2 * width, 3, padding=1),
        nn.ReLU(inplace=True),
        kind.transposed(2 * width, width, 2, stride=2),
        nn.ReLU(inplace=True),
    )


def _places(levels: int) -> list[str]:
    both = [(level, number) for level in range(levels) for number in (0, 1)]
    down = [f"down.{level}.{number}.2" for level, number in both]
    up = [f"up.{level}.{number}.1" for level, number in both]
    return [*down, "bottom.5", *up]


def _stretched(x: Tensor, beside: Tensor) -> Tensor:
    """`x` with the sides of `beside`: pooling has left out the end of an odd side."""
    missing = [b - a for a, b in zip(x.shape[2:], beside.shape[2:], strict=True)]
    if not any(missing):
        return x
    margins = [margin for count in reversed(missing) for margin in (0, count)]
    return functional.pad(x, margins, mode="replicate")
