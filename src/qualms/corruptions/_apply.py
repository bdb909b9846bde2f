"""Images and labels, corrupted one at a time."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.corruptions._corruption import Corruption, Image
from qualms.shelf import find, outside_parts

BYTE = 255.0
KINDS = {2: "pictures", 3: "volumes"}
MOST_SEVERE = 5


class _ValueSpan(NamedTuple):
    """Values of an image that stand for 0 and 1."""

    low: float
    width: float


def corrupt(
    image: ArrayLike, name: str, severity: int, *, item: str = "", seed: int = 0
) -> NDArray[Any]:
    """Return a corrupted copy of an image (*space, channels), of its shape and type.

    Whole numbers are taken as bytes. Other images within 0 and 1 keep that range, and
    others again are scaled from their smallest and largest value to 0 and 1, and back.

    Args:
        image: a picture (H, W, channels), or a volume with three sides.
        name: a corruption, such as "fog".
        severity: 1 to 5.
        item: name of the image. An image has the same random numbers at every severity.
        seed: another one gives other random numbers.

    >>> black = np.zeros((8, 8, 1), np.uint8)
    >>> int(corrupt(black, "brightness", 3).max())
    38
    """
    array = np.asarray(image)
    part = checked(name, array.shape[:-1], severity)
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        raise ValueError(
            f"an image must hold bytes or numbers with a fraction, got {array.dtype};"
            " divide deeper ones by their largest possible value"
        )
    numbers = random_numbers(name, item, seed)
    span = _range(array)
    scaled: Image = (array.astype(np.float64) - span.low) / span.width
    if part.move is not None:
        places = part.move(array.shape[:-1], severity, numbers)
        scaled = _sampled(scaled, places)
    changed = part.change(scaled, severity, numbers)
    if changed.shape != array.shape:
        raise ValueError(
            f"corruption {name!r} must return an image of the shape {array.shape}, got"
            f" {changed.shape}; correct it"
        )
    stored = changed * span.width + span.low
    if array.dtype.kind != "f":
        stored = np.clip(np.rint(stored), 0, BYTE)
    return stored.astype(array.dtype)


def corrupt_labels(
    labels: ArrayLike, name: str, severity: int, *, item: str = "", seed: int = 0
) -> NDArray[Any]:
    """Return label maps (..., *space) of an image that `corrupt` corrupts.

    They stay as they are unless the corruption moves pixels. A moved pixel has the
    label of the nearest pixel that it comes from.

    Args:
        labels: one map for each of any number of raters.
        name: a corruption.
        severity: 1 to 5.
        item: name of the image.
        seed: as for the image.
    """
    array = np.asarray(labels)
    part = _part(name)
    if part.move is None:
        return array
    space = array.shape[1:]
    checked(name, space, severity)
    places = part.move(space, severity, random_numbers(name, item, seed))
    return np.stack([_interpolated(each, places, order=0) for each in array])


def checked(name: str, space: tuple[int, ...], severity: int) -> Corruption:
    """Return a corruption; raise unless it can be applied to images of that space."""
    part = _part(name)
    if severity not in range(1, MOST_SEVERE + 1):
        raise ValueError(f"severity must be 1 to {MOST_SEVERE}, got {severity!r}")
    if len(space) not in KINDS:
        raise ValueError(
            "an image must have two or three sides and then channels, got an array"
            f" with {len(space) + 1} axes; corruptions are for images"
        )
    if len(space) not in part.space:
        kinds = " and ".join(KINDS[axes] for axes in part.space)
        raise ValueError(
            f"corruption {name!r} is for {kinds}, and these are {KINDS[len(space)]};"
            " choose another, which `qualms list corruptions` has"
        )
    if min(space) < part.least:
        raise ValueError(
            f"corruption {name!r} needs images of at least {part.least} pixels along"
            f" each side, got {' x '.join(map(str, space))}; choose another, or larger"
            " images"
        )
    return part


def random_numbers(name: str, item: str, seed: int) -> np.random.Generator:
    """Return the random numbers of an item, the same for every severity."""
    text = f"{name}\n{seed}\n{item}".encode()
    return np.random.default_rng([*hashlib.blake2b(text, digest_size=16).digest()])


def _part(name: str) -> Corruption:
    """Return a corruption by its name; those of the package are made once."""
    return _made(name) if name not in outside_parts("corruptions") else _new(name)


@cache
def _made(name: str) -> Corruption:
    return _new(name)


def _new(name: str) -> Corruption:
    part: Corruption = find("corruptions", name)()
    return part


def _range(array: NDArray[Any]) -> _ValueSpan:
    if array.dtype.kind != "f":
        return _ValueSpan(0.0, BYTE)
    low, high = float(array.min()), float(array.max())
    if low >= 0.0 and high <= 1.0:
        return _ValueSpan(0.0, 1.0)
    return _ValueSpan(low, high - low or 1.0)


def _sampled(image: Image, places: NDArray[np.float64]) -> Image:
    """Return an image whose pixels come from `places`, interpolated linearly."""
    channels = [
        _interpolated(image[..., channel], places, order=1)
        for channel in range(image.shape[-1])
    ]
    return np.stack(channels, axis=-1)


def _interpolated(
    values: NDArray[Any], places: NDArray[np.float64], *, order: int
) -> NDArray[Any]:
    # Importing it takes a second, and most datasets are never corrupted.
    from scipy.ndimage import map_coordinates

    moved: NDArray[Any] = map_coordinates(values, places, order=order, mode="mirror")
    return moved
