"""The U-Net of the VALUES benchmark (Kahl et al., 2024), for volumes and for images.

Ronneberger et al. (2015) with instance normalisation, as in the released code: two
convolutions on each level, max-pooling on the way down, transposed convolutions on the
way up. Only the way down is normalised, without parameters and without running
statistics, so a pass is the same in training and in evaluation mode.

The released code has 1,411,787 parameters for 8 filters and 5,644,947 for 16: this
backbone, a 1x1x1 convolution to two classes, and another one to a single channel, which
it declares for reconstruction and never uses.

Convolutions of few filters leave the tensor cores of a GPU mostly idle. With channels
last, neighbours along the last axis lie side by side in memory, so a few voxels can be
read as one with more channels, at no cost. A convolution over such groups, whose kernel
is 0 where two voxels are not neighbours, does more products in less time.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


def unet(
    *,
    channels: int,
    space: int = 3,
    width: int = 8,
    levels: int = 4,
    group: int = 1,
) -> nn.Module:
    """Return a network from images to `width` features for every voxel.

    It has 1,411,760 parameters by default. Dropout acts after every activation of the
    convolutions and at the end of the bottleneck: at 17 places for four levels.

    Args:
        channels: channels of the images.
        space: axes of the images, 3 for volumes and 2 for pictures.
        width: filters of the first level; they double with every level. The paper has 8
            for the toy data and 16 for LIDC.
        levels: number of levels above the bottleneck.
        group: voxels that convolutions of the first level read as one, for speed on a
            GPU with channels last; half as many on every further level. It changes
            only rounding.
    """
    if space not in _LAYERS:
        raise ValueError(f"space must be 2 or 3, got {space}")
    if width < 1 or levels < 1 or group < 1:
        raise ValueError(
            "width, levels and group must be at least 1, got "
            f"{width}, {levels} and {group}"
        )
    network = UNet(channels=channels, space=space, width=width, levels=levels)
    for level, sides in enumerate(zip(network.down, reversed(network.up), strict=True)):
        for block in (block for side in sides for block in side.children()):
            assert isinstance(block, _ConvolutionBlock)
            block.group = max(1, group >> level)
    return network


class UNet(nn.Module):
    """Network from images (B, channels, *space) to maps (B, features, *space)."""

    def __init__(self, *, channels: int, space: int, width: int, levels: int) -> None:
        super().__init__()
        layers = _LAYERS[space]
        self.features = width
        self.space = space
        widths = [width * 2**level for level in range(levels)]
        befores = [channels, *widths]
        self.down = nn.ModuleList(
            nn.Sequential(_down_block(layers, a, b), _down_block(layers, b, b))
            for a, b in zip(befores, widths, strict=False)
        )
        self.pool = layers.pool(2)
        self.bottom = _bottleneck(layers, widths[-1])
        self.up = nn.ModuleList(
            nn.Sequential(_up_block(layers, 2 * a, a), _up_block(layers, a, a))
            for a in reversed(widths)
        )
        self.scale = nn.ModuleList(
            layers.transposed(a, a // 2, 2, stride=2) for a in reversed(widths[1:])
        )
        self.dropout_after = tuple(_dropout_places(levels))

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, features, *space) of images (B, channels, *space)."""
        if x.ndim != self.space + 2:
            raise ValueError(
                f"this unet sees images of {self.space} axes, got {x.ndim - 2}; set its"
                " option 'space'"
            )
        if min(x.shape[2:]) < 2 ** len(self.down):
            sides = " x ".join(map(str, x.shape[2:]))
            raise ValueError(
                f"a unet of {len(self.down)} levels sees images of at least"
                f" {2 ** len(self.down)} pixels a side, got {sides}; set its option"
                " 'levels'"
            )
        skips = []
        for level in self.down:
            x = level(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for number, level in enumerate(self.up):
            if number:
                x = self.scale[number - 1](x)
            skip = skips.pop()
            x = level(torch.cat([_extended(x, skip), skip], 1))
        return x


class _LayerTypes(NamedTuple):
    convolution: type[nn.Conv2d] | type[nn.Conv3d]
    transposed: type[nn.ConvTranspose2d] | type[nn.ConvTranspose3d]
    norm: type[nn.InstanceNorm2d] | type[nn.InstanceNorm3d]
    pool: type[nn.MaxPool2d] | type[nn.MaxPool3d]


_LAYERS = {
    2: _LayerTypes(nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d, nn.MaxPool2d),
    3: _LayerTypes(nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d, nn.MaxPool3d),
}


class _ConvolutionBlock(nn.Module):
    """A convolution, and the layers after it."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.group = 1

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.layers
        # Not a layer by which a method has replaced the convolution.
        fits = self.group > 1 and x.shape[-1] % self.group == 0
        if fits and isinstance(first, nn.Conv2d | nn.Conv3d):
            x = grouped_convolution(x, first.weight, first.bias, self.group)
        else:
            x = first(x)
        for layer in others:
            x = layer(x)
        return x


def _down_block(layers: _LayerTypes, before: int, after: int) -> _ConvolutionBlock:
    convolution = layers.convolution(before, after, 3, padding=1)
    norm = layers.norm(after)
    return _ConvolutionBlock(convolution, norm, nn.LeakyReLU(inplace=True))


def _up_block(layers: _LayerTypes, before: int, after: int) -> _ConvolutionBlock:
    convolution = layers.convolution(before, after, 3, padding=1)
    return _ConvolutionBlock(convolution, nn.LeakyReLU(inplace=True))


def grouped_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, group: int
) -> Tensor:
    """Apply a convolution of width 3 and padding 1 over groups of `group` voxels."""
    convolve = functional.conv2d if x.ndim == 4 else functional.conv3d
    sides = x.shape[2:]
    groups = x.movedim(1, -1).reshape(len(x), *sides[:-1], sides[-1] // group, -1)
    shift = None if bias is None else bias.repeat(group)
    kernel = _grouped_kernel(weight, group)
    maps = convolve(groups.movedim(-1, 1), kernel, shift, padding=1)
    return maps.movedim(1, -1).reshape(len(x), *sides, len(weight)).movedim(-1, 1)


def _grouped_kernel(weight: Tensor, group: int) -> Tensor:
    """Return the kernel over groups, 0 between voxels that are not neighbours."""
    # For every position in a group, the kernel within three groups side by side.
    padded = [
        functional.pad(weight, (group - 1 + position, 2 * group - 2 - position))
        for position in range(group)
    ]
    wide = torch.stack(padded)  # position, outputs, inputs, ..., 3 * group
    within = wide.view(*wide.shape[:-1], 3, group).movedim(-1, 2)
    outputs, inputs = group * weight.shape[0], group * weight.shape[1]
    kernel = within.reshape(outputs, inputs, *weight.shape[2:])
    flat = weight.ndim == 4
    layout = torch.channels_last if flat else torch.channels_last_3d
    return kernel.contiguous(memory_format=layout)


def _bottleneck(layers: _LayerTypes, width: int) -> nn.Sequential:
    return nn.Sequential(
        layers.convolution(width, 2 * width, 3, padding=1),
        nn.ReLU(inplace=True),
        layers.convolution(2 * width, 2 * width, 3, padding=1),
        nn.ReLU(inplace=True),
        layers.transposed(2 * width, width, 2, stride=2),
        nn.ReLU(inplace=True),
    )


def _dropout_places(levels: int) -> list[str]:
    blocks = [(level, number) for level in range(levels) for number in (0, 1)]
    down = [f"down.{level}.{number}.layers.2" for level, number in blocks]
    up = [f"up.{level}.{number}.layers.1" for level, number in blocks]
    return [*down, "bottom.5", *up]


def _extended(x: Tensor, skip: Tensor) -> Tensor:
    """Extend `x` to the sides of `skip`; pooling drops the end of an odd side."""
    missing = [b - a for a, b in zip(x.shape[2:], skip.shape[2:], strict=True)]
    if not any(missing):
        return x
    margins = [margin for count in reversed(missing) for margin in (0, count)]
    return functional.pad(x, margins, mode="replicate")
