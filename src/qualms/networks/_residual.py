"""Residual networks whose shortcuts have no parameters (Mukhoti et al., 2023).

Where a block changes the shape, its shortcut averages over the stride and appends zero
channels. It never contracts its input, so distances between features stay meaningful,
as densities of features require.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional


class ResidualStage(NamedTuple):
    """Blocks of one width, the first with stride 2."""

    width: int
    blocks: int


class ResidualTrunk(nn.Module):
    """A 3x3 stem, stages of residual blocks, and the mean over the remaining space.

    Images (B, channels, H, W) become features (B, width of the last stage). `fold` is
    the side of the squares of pixels that become channels first, `stride` that of the
    stem.
    """

    def __init__(
        self,
        *,
        channels: int,
        stages: Sequence[ResidualStage],
        stride: int = 1,
        fold: int = 1,
    ) -> None:
        super().__init__()
        width = stages[0].width
        self.features = stages[-1].width
        self.fold = fold
        self.stem = nn.Sequential(
            _convolution(channels * fold**2, width, stride),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(inplace=True),
        )
        blocks = []
        for stage in stages:
            for number in range(stage.blocks):
                blocks.append(_ResidualBlock(width, stage.width, 1 if number else 2))
                width = stage.width
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, features) of images (B, channels, H, W)."""
        if self.fold > 1:
            x = functional.pixel_unshuffle(x, self.fold)
        maps: Tensor = self.blocks(self.stem(x))
        return maps.mean((2, 3))


class _ResidualBlock(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.added = width - before
        self.first = nn.Sequential(
            _convolution(before, width, stride),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(inplace=True),
        )
        self.second = nn.Sequential(
            _convolution(width, width, 1), nn.BatchNorm2d(width)
        )
        self.activation = nn.LeakyReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.second(self.first(x))
        active: Tensor = self.activation(maps + self._shortcut(x))
        return active

    def _shortcut(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            # An odd side is rounded up, as by the convolutions beside it.
            x = functional.avg_pool2d(x, self.stride, ceil_mode=True)
        if self.added > 0:
            x = functional.pad(x, (0, 0, 0, 0, 0, self.added))
        return x


def _convolution(before: int, width: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
