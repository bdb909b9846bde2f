"""Random changes of a batch, made on its device and drawn separately for every item.

Images are (B, channels, *space) in 0..1, or standardised. A label map (B, *space) moves
with its image. Shapes never depend on the random numbers, so a CUDA graph can record
the changes.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_FLAT = 4
"""Axes of a batch of images, as opposed to volumes."""
_FLIP = 0.5
_NOISE = 0.1
"""Largest standard deviation (Kahl et al., 2024)."""
_ANGLE = math.radians(22.5)
_ZOOM = (0.8, 1.2)
_BYTE_VARIANCE = (10.0, 50.0)
_SOMETIMES = 0.5
"""Street scenes of Kahl et al. (2024): rotation and noise for half of the items."""
_JITTER = 0.4
_AREA = (0.08, 1.0)
_RATIO = (3 / 4, 4 / 3)
"""Kirchhof et al. (2023): brightness, contrast and saturation by 0.4; crops. Their
crops are interpolated at random, bilinear or bicubic; ours are always bilinear."""
_SATURATION = 0.2
_HUE = 0.1
_JITTERED = 0.8
_GREY = 0.2
_RADIUS = (0.1, 2.0)
"""Kirchhof et al. (2023), methods without labels: brightness and contrast by 0.4,
saturation by 0.2 and hue by 0.1 of the circle for 0.8 of the items, 0.2 of them grey,
all blurred."""
_COLOURS = 3
_LUMA = (0.299, 0.587, 0.114)
"""Brightness of each colour (ITU-R BT.601)."""


class Augmented(NamedTuple):
    """A batch after a change."""

    image: Tensor
    target: Tensor
    outside: int
    """Label of pixels outside of an image."""


def augment(
    names: Sequence[str], image: Tensor, target: Tensor, *, outside: int = 0
) -> Augmented:
    """Apply the changes `names` in order; label maps are `outside` around an image."""
    batch = Augmented(image, target, outside)
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
    image, target = batch.image, batch.target
    chosen = _per_item(image) < _FLIP
    flipped = torch.where(chosen, image.flip(axis), image)
    if target.ndim == 1:
        return batch._replace(image=flipped)
    maps = torch.where(chosen[:, 0], target.flip(axis - 1), target)
    return batch._replace(image=flipped, target=maps)


def _noise(batch: Augmented) -> Augmented:
    image = batch.image
    scale = _NOISE * _per_item(image)
    return batch._replace(image=image + scale * torch.randn_like(image))


def _byte_noise(batch: Augmented) -> Augmented:
    """Add noise to half of the items; its variance is stated for images of 0..255."""
    image = batch.image
    scale = _uniform(image, *_BYTE_VARIANCE).sqrt() / 255
    scale = scale * (_uniform(image, 0, 1) < _SOMETIMES)
    noise = scale.view(-1, *(1,) * (image.ndim - 1)) * torch.randn_like(image)
    return batch._replace(image=(image + noise).clamp(0, 1))


def _rotate(batch: Augmented) -> Augmented:
    """Turn half of the images about their centre; pixels from outside are black."""
    image = batch.image
    angle = _uniform(image, -_ANGLE, _ANGLE)
    angle = angle * (_uniform(image, 0, 1) < _SOMETIMES)
    high, wide = image.shape[-2:]
    theta = image.new_zeros(len(image), 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = angle.cos()
    # Coordinates run from -1 to 1 along both sides, however long these are.
    theta[:, 0, 1] = -angle.sin() * high / wide
    theta[:, 1, 0] = angle.sin() * wide / high
    return _moved(batch, theta)


def _zoom(batch: Augmented) -> Augmented:
    """Enlarge and crop at random, or shrink and surround by black."""
    image = batch.image
    share = 1 / _uniform(image, *_ZOOM)
    theta = image.new_zeros(len(image), 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = share
    room = (1 - share).clamp(min=0)  # a smaller image stays in the middle
    theta[:, 0, 2] = room * _uniform(image, -1, 1)
    theta[:, 1, 2] = room * _uniform(image, -1, 1)
    return _moved(batch, theta)


def _moved(batch: Augmented, theta: Tensor) -> Augmented:
    """Sample images where `theta` (B, 2, 3) says; label maps take the nearest pixel."""
    image, target = batch.image, batch.target
    if image.ndim != _FLAT:
        raise ValueError("'rotate' and 'zoom' serve images of two axes, not volumes")
    grid = functional.affine_grid(theta, list(image.shape), align_corners=False)
    moved = functional.grid_sample(image, grid, align_corners=False)
    if target.ndim == 1:
        return batch._replace(image=moved)
    # Pixels from outside become 0, so labels count from 1 on.
    labels = target[:, None].float() + 1
    labels = functional.grid_sample(labels, grid, mode="nearest", align_corners=False)
    maps = torch.where(labels[:, 0] == 0, batch.outside, labels[:, 0] - 1)
    return batch._replace(image=moved, target=maps.to(target.dtype))


def _jitter(batch: Augmented) -> Augmented:
    image = _coloured(batch.image, _JITTER)
    return batch._replace(image=image)


def _hue_jitter(batch: Augmented) -> Augmented:
    """Jitter most of the items, and turn their hues as well."""
    image = batch.image
    changed = _turned_hue(_coloured(image, _SATURATION))
    chosen = _per_item(image) < _JITTERED
    return batch._replace(image=torch.where(chosen, changed, image))


def _coloured(image: Tensor, saturation: float) -> Tensor:
    """Change brightness, contrast and saturation, in this order."""
    image = (image * _around_one(image, _JITTER)).clamp(0, 1)
    mean = _luma(image).mean(dim=tuple(range(1, image.ndim)), keepdim=True)
    image = torch.lerp(mean, image, _around_one(image, _JITTER)).clamp(0, 1)
    by = _around_one(image, saturation)
    return torch.lerp(_luma(image), image, by).clamp(0, 1)


def _turned_hue(image: Tensor) -> Tensor:
    """Turn hues by up to a tenth of the circle; saturation and value stay."""
    if image.shape[1] != _COLOURS:
        return image
    red, green, blue = image.unbind(1)
    value, low = image.amax(1), image.amin(1)
    chroma = value - low
    by = torch.where(chroma > 0, chroma, 1.0)
    of_red = (green - blue) / by
    of_green, of_blue = 2 + (blue - red) / by, 4 + (red - green) / by
    sixth = torch.where(value == green, of_green, of_blue)
    sixth = torch.where(value == red, of_red, sixth)
    turn = (6 * _HUE * (2 * _uniform(image, 0, 1) - 1)).view(-1, *(1,) * chroma.dim())
    sixth = sixth + turn[..., 0] + 12  # positive, and a full circle is 6
    # Each colour rises, stays, falls and stays along the circle, in turn.
    parts = [(sixth + shift) % 6 for shift in (5, 3, 1)]
    share = [torch.minimum(part, 4 - part).clamp(0, 1) for part in parts]
    return torch.stack([value - chroma * part for part in share], 1)


def _grey(batch: Augmented) -> Augmented:
    image = batch.image
    chosen = _per_item(image) < _GREY
    grey = _luma(image).expand_as(image)
    return batch._replace(image=torch.where(chosen, grey, image))


def _luma(image: Tensor) -> Tensor:
    """Return the brightness of each pixel, (B, 1, *space)."""
    if image.shape[1] != _COLOURS:
        return image.mean(dim=1, keepdim=True)
    # Numbers one by one: a recorded step cannot bring a list of them to the device.
    red, green, blue = (
        part * by for part, by in zip(image.unbind(1), _LUMA, strict=True)
    )
    return (red + green + blue)[:, None]


def _blur(batch: Augmented) -> Augmented:
    """Blur by a Gaussian of 0.1 to 2 pixels, a matrix for each axis of each item."""
    image = batch.image
    if image.ndim != _FLAT:
        raise ValueError("'blur' serves images of two axes, not volumes")
    radius = _uniform(image, *_RADIUS)
    down, across = (_blurring(n, radius) for n in image.shape[2:])
    blurred = down[:, None] @ image @ across[:, None].mT
    return batch._replace(image=blurred)


def _blurring(length: int, radius: Tensor) -> Tensor:
    """Return weights (B, length, length) that sum to 1, at the rim as well."""
    pixel = torch.arange(length, device=radius.device, dtype=radius.dtype)
    distance = (pixel[:, None] - pixel) / radius.view(-1, 1, 1)
    weight = torch.exp(-0.5 * distance.square())
    return weight / weight.sum(-1, keepdim=True)


def _crop(batch: Augmented) -> Augmented:
    """Crop a random part of each image, and stretch it to full size."""
    image = batch.image
    if image.ndim != _FLAT or batch.target.ndim != 1:
        raise ValueError("'crop' serves images with one target each, not label maps")
    count = len(image)
    area = _uniform(image, *_AREA)
    ratio = _uniform(image, math.log(_RATIO[0]), math.log(_RATIO[1])).exp()
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    theta = image.new_zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = wide, high
    theta[:, 0, 2] = (1 - wide) * _uniform(image, -1, 1)
    theta[:, 1, 2] = (1 - high) * _uniform(image, -1, 1)
    grid = functional.affine_grid(theta, list(image.shape), align_corners=False)
    # Zeros outside would darken the rim of the image by half a pixel.
    crop = functional.grid_sample(
        image, grid, padding_mode="border", align_corners=False
    )
    return batch._replace(image=crop)


def _per_item(image: Tensor) -> Tensor:
    """Draw a number in 0..1 for each item, with length 1 along all other axes."""
    return _uniform(image, 0, 1).view(-1, *(1,) * (image.ndim - 1))


def _around_one(image: Tensor, by: float) -> Tensor:
    return 1 + by * (2 * _per_item(image) - 1)


def _uniform(image: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * torch.rand(len(image), device=image.device)


_CHANGES: dict[str, Callable[[Augmented], Augmented]] = {
    "hflip": _hflip,
    "flips": _flips,
    "rotate": _rotate,
    "zoom": _zoom,
    "noise": _noise,
    "byte_noise": _byte_noise,
    "jitter": _jitter,
    "hue_jitter": _hue_jitter,
    "grey": _grey,
    "blur": _blur,
    "crop": _crop,
}
