"""ResNet-50 as the RETINA benchmark trains it (Band et al., 2021).

He et al. (2016) in version 1.5: the stride of a block lies in its 3x3 convolution.
Training starts from random weights. Momentum 0.9 of batch normalisation there is 0.1
in torch.

Layers are padded as in TensorFlow. There "same" padding, in strided 3x3 convolutions
and in the max-pooling, is one-sided where a side is even: nothing before, one after.
The same weights give the same outputs in both frameworks only with equal padding.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

from torch import Tensor, nn
from torch.nn import functional

KernelInit = Literal["he_normal", "uniform"]
_WIDEN = 4
"""Output channels of a block for each channel of its 3x3 convolution."""
_TRUNCATED = 0.87962566103423978
"""Standard deviation of a standard normal cut off at two."""


def resnet50(
    *, channels: int, zero_last: bool = False, init: KernelInit = "he_normal"
) -> nn.Module:
    """Return a network from images to 2048 features.

    It has 23,508,032 parameters for 3 channels.

    Args:
        channels: channels of the images.
        zero_last: whether the last normalisation of each block starts with scale 0, so
            that every block starts as its shortcut.
        init: initial kernels: "he_normal", a truncated normal of variance 2 / fan_in,
            or "uniform" between -1 and 1 / sqrt(fan_in). The released code of RETINA
            has the latter for `fsvi`, with `zero_last`.
    """
    if init not in get_args(KernelInit):
        raise ValueError(f"init must be 'he_normal' or 'uniform', got {init!r}")
    return Bottlenecks(
        channels=channels,
        width=64,
        blocks=(3, 4, 6, 3),
        zero_last=zero_last,
        init=init,
    )


class Bottlenecks(nn.Module):
    """A 7x7 stem, max-pooling, stages of bottleneck blocks, and the mean over space.

    Images (B, channels, H, W) become features (B, features). The first block of every
    stage but the first has stride 2, and the width doubles there.
    """

    head_sd = 0.01

    def __init__(
        self,
        *,
        channels: int,
        width: int,
        blocks: Sequence[int],
        zero_last: bool,
        init: KernelInit = "he_normal",
    ) -> None:
        super().__init__()
        self.stem = _activated(nn.Conv2d(channels, width, 7, 2, padding=3, bias=False))
        before, layers = width, []
        for stage, count in enumerate(blocks):
            inner = width * 2**stage
            for number in range(count):
                stride = 2 if stage and not number else 1
                layers.append(
                    _BottleneckBlock(before, inner, stride, projects=not number)
                )
                before = inner * _WIDEN
        self.blocks = nn.Sequential(*layers)
        self.features = before
        self.dropout_after = ("stem.2", *_dropout_places(layers))
        self._initialise(zero_last, init)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (B, features) of images (B, channels, H, W)."""
        maps: Tensor = self.blocks(_pooled(self.stem(x)))
        return maps.mean((2, 3))

    def _initialise(self, zero_last: bool, init: KernelInit) -> None:
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                _initialise_kernel(layer.weight, init)
            elif isinstance(layer, _BottleneckBlock) and zero_last:
                nn.init.zeros_(layer.last_scale)


def _initialise_kernel(kernel: Tensor, init: KernelInit) -> None:
    fan_in = kernel[0].numel()
    if init == "uniform":
        nn.init.uniform_(kernel, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))
    else:
        sd = math.sqrt(2 / fan_in) / _TRUNCATED
        nn.init.trunc_normal_(kernel, std=sd, a=-2 * sd, b=2 * sd)


class _BottleneckBlock(nn.Module):
    def __init__(self, before: int, inner: int, stride: int, *, projects: bool) -> None:
        super().__init__()
        after = inner * _WIDEN
        self.first = _activated(nn.Conv2d(before, inner, 1, bias=False))
        self.second = _activated(
            _HalvingConvolution(inner) if stride == 2 else _same(inner)
        )
        self.third = nn.Sequential(
            nn.Conv2d(inner, after, 1, bias=False), nn.BatchNorm2d(after)
        )
        self.shortcut: nn.Module = nn.Identity()
        if projects:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False),
                nn.BatchNorm2d(after),
                nn.Identity(),  # a place for dropout that renames no weight
            )
        self.activation = nn.ReLU(inplace=True)

    @property
    def last_scale(self) -> nn.Parameter:
        norm = self.third[1]
        assert isinstance(norm, nn.BatchNorm2d)
        return norm.weight

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.third(self.second(self.first(x)))
        active: Tensor = self.activation(maps + self.shortcut(x))
        return active


class _HalvingConvolution(nn.Module):
    """A 3x3 convolution of stride 2 with "same" padding.

    On an even side its windows start at 0, 2, 4 ...: those of a convolution padded by
    two on both sides, without the first. Dropping that one is cheaper than padding one
    side, which copies an input of four times the size.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Conv2d(width, width, 3, 2, padding=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[2] % 2, x.shape[3] % 2
        if height or width:  # windows of an odd side start at -1
            x = functional.pad(x, (width, 0, height, 0))
        maps: Tensor = self.layer(x)
        return maps[:, :, 1:, 1:]


def _same(width: int) -> nn.Conv2d:
    return nn.Conv2d(width, width, 3, padding=1, bias=False)


def _activated(layer: nn.Conv2d | _HalvingConvolution) -> nn.Sequential:
    """Return `layer` with batch normalisation and an activation after it."""
    inner = layer.layer if isinstance(layer, _HalvingConvolution) else layer
    norm = nn.BatchNorm2d(inner.out_channels)
    return nn.Sequential(layer, norm, nn.ReLU(inplace=True))


def _dropout_places(blocks: Sequence[_BottleneckBlock]) -> list[str]:
    """Name both inner activations of each block, and the end of each projection."""
    return [
        f"blocks.{number}.{name}.2"
        for number, block in enumerate(blocks)
        for name in ("first", "second", "shortcut")
        if isinstance(block.get_submodule(name), nn.Sequential)
    ]


def _pooled(maps: Tensor) -> Tensor:
    """Apply 3x3 max-pooling of stride 2 with "same" padding.

    Windows extend over the end of an even side, and over both ends of an odd one.
    """
    odd = (maps.shape[2] % 2, maps.shape[3] % 2)
    return functional.max_pool2d(maps, 3, 2, padding=odd, ceil_mode=True)
