"""Random changes of a batch, made on its device and drawn for every item apart.

Images are (B, channels, *space) in 0..1. A label map (B, *space) moves with its image.
Shapes never depend on the random numbers, so a CUDA graph can record the changes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_FLIP = 0.5
_NOISE = 0.1
"""Largest standard deviation (Kahl et al., 2024)."""
_JITTER = 0.4
_AREA = (0.08, 1.0)
_RATIO = (3 / 4, 4 / 3)
"""Kirchhof et al. (2023): brightness, contrast and saturation by 0.4; crops."""


class Augmented(NamedTuple):
    """A batch after a change."""

    image: Tensor
    target: Tensor


def augment(names: Sequence[str], image: Tensor, target: Tensor) -> Augmented:
    """Apply the changes `names` in order."""
    batch = Augmented(image, target)
    for name in names:
        batch = _CHANGES[name](batch)
    return batch


def _hflip(batch: Augmented) -> Augmented:
    return _flip(batch, batch.image.ndim - 1)


def _flips(batch: Augmented) -> Augmented:
    for axis in range(2, batch.image.ndim):
        batch = _flip(batch, axis)
    return batch


def _flip(batch: Augmented, axis: int) -> Augmented:
    image, target = batch
    turned = _per_item(image) < _FLIP
    flipped = torch.where(turned, image.flip(axis), image)
    if target.ndim == 1:
        return Augmented(flipped, target)
    maps = torch.where(turned[:, 0], target.flip(axis - 1), target)
    return Augmented(flipped, maps)


def _noise(batch: Augmented) -> Augmented:
    image, target = batch
    scale = _NOISE * _per_item(image)
    return Augmented(image + scale * torch.randn_like(image), target)


def _jitter(batch: Augmented) -> Augmented:
    image, target = batch
    image = (image * _around_one(image)).clamp(0, 1)
    mean = image.mean(dim=tuple(range(1, image.ndim)), keepdim=True)
    image = torch.lerp(mean, image, _around_one(image)).clamp(0, 1)
    grey = image.mean(dim=1, keepdim=True)
    return Augmented(torch.lerp(grey, image, _around_one(image)).clamp(0, 1), target)


def _crop(batch: Augmented) -> Augmented:
    """A random part of each image, stretched to its full size."""
    image, target = batch
    if image.ndim != 4 or target.ndim != 1:
        raise ValueError("'crop' serves images with one target each, not label maps")
    count = len(image)
    area = _uniform(image, *_AREA)
    ratio = _uniform(image, _RATIO[0], _RATIO[1])
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    theta = image.new_zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = wide, high
    theta[:, 0, 2] = (1 - wide) * _uniform(image, -1, 1)
    theta[:, 1, 2] = (1 - high) * _uniform(image, -1, 1)
    grid = functional.affine_grid(theta, list(image.shape), align_corners=False)
    # Zeros outside would darken the rim of the image by half a pixel.
    cut = functional.grid_sample(
        image, grid, padding_mode="border", align_corners=False
    )
    return Augmented(cut, target)


def _per_item(image: Tensor) -> Tensor:
    """One number in 0..1 for each item, with an axis for all the others."""
    return _uniform(image, 0, 1).view(-1, *(1,) * (image.ndim - 1))


def _around_one(image: Tensor) -> Tensor:
    return 1 + _JITTER * (2 * _per_item(image) - 1)


def _uniform(image: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * torch.rand(len(image), device=image.device)


_CHANGES: dict[str, Callable[[Augmented], Augmented]] = {
    "hflip": _hflip,
    "flips": _flips,
    "noise": _noise,
    "jitter": _jitter,
    "crop": _crop,
}
