"""Batches for a network, made from stored items: scaled, augmented and normalised.

Augmentation comes before the normalisation of colours, and after that of an item.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from qualms.datasets import Split
from qualms.methods import Batch
from qualms.networks import IMAGENET, Colours
from qualms.training._augment import augment
from qualms.training._error import TrainingError
from qualms.training._splits import LoadedSplit, RawItems
from qualms.training.options import Normalise, Training

_COLOURS = 3
_BYTE = 255.0
_TINY = 1e-8
"""Added to a standard deviation, as in the released code of Kahl et al. (2024)."""


class TargetUnit(NamedTuple):
    """The unit in which a network learns numbers: (target - shift) / scale."""

    shift: float = 0.0
    scale: float = 1.0

    def learned(self, target: Tensor) -> Tensor:
        """Return targets in the unit that is learned."""
        return target if self == _DATA_UNIT else (target - self.shift) / self.scale

    def stored(self, arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return predictions in the unit of the data."""
        predictions = dict(arrays)
        if self == _DATA_UNIT:
            return predictions
        for name in ("mean", "lower", "upper"):
            if name in predictions:
                predictions[name] = predictions[name] * self.scale + self.shift
        if "var" in predictions:
            predictions["var"] = predictions["var"] * self.scale**2
        return predictions


_DATA_UNIT = TargetUnit()


class Inputs(NamedTuple):
    """Functions that make batches of items, and the form of these batches.

    Images may be 8 bit or float32, of as many channels as the network sees or of one,
    which is then repeated; so further datasets may be stored in another form.
    """

    channels: int
    """Channels that the network sees."""
    space: int
    """Spatial axes of an image."""
    layout: torch.memory_format
    train: Callable[[RawItems, int], Batch]
    """From (items, views) to a batch with `views` augmented versions of each item."""
    plain: Callable[[RawItems], Batch]
    """From items to a batch without augmentation."""
    unit: TargetUnit = _DATA_UNIT
    """Unit of the targets in batches, if they are numbers."""


class _Affine(NamedTuple):
    """x * scale + shift, per channel."""

    scale: Tensor
    shift: Tensor

    def to(self, device: torch.device) -> "_Affine":
        return _Affine(self.scale.to(device), self.shift.to(device))


def make_inputs(
    items: LoadedSplit,
    options: Training,
    *,
    ignore: int | None = None,
    colours: Colours = IMAGENET,
) -> Inputs:
    """Return how batches are made for a network that trains on `items`.

    Args:
        items: what the network trains on.
        options: of the training.
        ignore: label of augmented maps outside of an image; None is 0.
        colours: mean and standard deviation of the colours, for normalising.
    """
    shape = items.split.image.shape
    space, stored = len(shape) - 2, shape[-1]
    normalise, changes = options.preprocessing.normalise, options.preprocessing.augment
    loss = options.objective.loss
    normal = _normal(stored, space, normalise, colours).to(items.device)
    from_bytes = _Affine(normal.scale * (1 / _BYTE), normal.shift)
    layout = _layout(space, channels_last=options.execution.channels_last)
    unit = _unit(items.split) if options.objective.scale_targets else _DATA_UNIT

    def plain(raw: RawItems) -> Batch:
        image = _image(raw)
        if normalise == "item":
            x = _apply(normal, _standardised(image), layout)
        else:
            affine = from_bytes if raw.image.dtype == torch.uint8 else normal
            x = _apply(affine, image, layout)
        return Batch(x=x, target=unit.learned(raw.target), loss=loss)

    def train(raw: RawItems, views: int) -> Batch:
        if views == 1 and not changes:
            return plain(raw)
        image = _image(raw)
        if normalise == "item":
            image = _standardised(image)
        elif raw.image.dtype == torch.uint8:
            image = image * (1 / _BYTE)
        image = image.repeat(views, *(1,) * (space + 1))
        target = raw.target.repeat(views, *(1,) * (raw.target.ndim - 1))
        augmented = augment(changes, image, target, outside=ignore or 0)
        x = _apply(normal, augmented.image, layout)
        target = unit.learned(augmented.target[: len(raw.target)])
        return Batch(x=x, target=target, loss=loss)

    return Inputs(normal.scale.shape[0], space, layout, train, plain, unit)


def patch_inputs(
    inputs: Inputs, items: LoadedSplit, options: Training, *, ignore: int | None
) -> Inputs:
    """Return how batches of patches of `items` are made; `inputs` is for uncut items.

    Items are standardised before they are cut, so patches are not standardised again.
    """
    if items.cutter is None or options.preprocessing.normalise != "item":
        return inputs
    unchanged = replace(options.preprocessing, normalise="none")
    return make_inputs(items, replace(options, preprocessing=unchanged), ignore=ignore)


def _unit(split: Split) -> TargetUnit:
    """Return the unit in which targets have mean 0 and standard deviation 1."""
    if split.target.dtype.kind != "f" or split.target.ndim > 1:
        raise TrainingError(
            "scale_targets=true is for targets that are numbers, and these are classes"
            " or labels; leave it out"
        )
    target = np.asarray(split.target, np.float64)
    return TargetUnit(float(target.mean()), float(target.std()) or 1.0)


def check_readable(inputs: Inputs, split: Split, name: str) -> None:
    """Raise unless the images have the form that the network is trained on."""
    space, channels = split.image.ndim - 2, split.image.shape[-1]
    if space != inputs.space or channels not in (1, inputs.channels):
        raise TrainingError(
            f"the network sees images of {inputs.space} axes and {inputs.channels}"
            f" channels, and those of {name!r} have {space} and {channels}; leave that"
            " split out, or prepare its dataset alike"
        )


def _image(raw: RawItems) -> Tensor:
    """Return images (B, channels, *space) in float32."""
    image = raw.image.movedim(-1, 1)
    return image.to(torch.float32, memory_format=torch.contiguous_format)


def _standardised(image: Tensor) -> Tensor:
    """Return images with mean 0 and deviation 1 in each channel of an item."""
    space = tuple(range(2, image.ndim))
    variance, mean = torch.var_mean(image, space, correction=0, keepdim=True)
    return (image - mean) / (variance.sqrt() + _TINY)


def _apply(affine: _Affine, image: Tensor, layout: torch.memory_format) -> Tensor:
    # One pass over the batch, which also repeats a single channel.
    x = torch.addcmul(affine.shift, image, affine.scale)
    return x.contiguous(memory_format=layout)


def _normal(stored: int, space: int, normalise: Normalise, colours: Colours) -> _Affine:
    if normalise not in ("network", "imagenet"):
        scale, shift = torch.ones(stored), torch.zeros(stored)
    elif stored in (1, _COLOURS):
        mean, std = torch.tensor(colours.mean), torch.tensor(colours.std)
        scale, shift = 1 / std, -mean / std
    else:
        raise TrainingError(
            f"normalise={normalise!r} is for images of 1 or 3 channels, these"
            f" have {stored}; train with normalise='none'"
        )
    shape = (-1, *(1,) * space)
    return _Affine(scale.view(shape), shift.view(shape))


def _layout(space: int, *, channels_last: bool) -> torch.memory_format:
    if not channels_last:
        return torch.contiguous_format
    return torch.channels_last_3d if space == 3 else torch.channels_last
