"""Objects of the toy set: where they lie, how they look, and what raters mark.

The laws are those of the released generator, found by running it. Sizes, places and
grey values are drawn in its order by Python's own generator, so the objects of seed 0
are the paper's. Two things differ: bodies are computed, not voxelised from a mesh
(whole ones differ by less than 1 % in volume, ones cut by the border by up to 20
voxels or 5 %), and the noise is drawn otherwise.
"""

from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

SIDE = 64
"""Side of the paper's volumes; blur is relative to it."""
LEAST = 0.1
"""Smallest value of the pixels of an object."""
FRACTIONS = np.array([0.1, 0.55, 1.0])
"""Share of the object that each of three raters marks."""
SEEDS = 1_000
"""Difference between the seeds of a series in datasets with consecutive seeds."""

Image = NDArray[np.float64]


class Series(NamedTuple):
    """Objects that are drawn one after the other with one seed."""

    name: str
    group: str
    """Kind of object: plain, blurred, grey, cube or border."""
    seed: int
    sigma: float = 0.0
    """Width of the blur in pixels, if the side is 64."""
    noise: bool = True


class Body(NamedTuple):
    """A ball or box of some size, its place in the image, and its grey value."""

    size: int
    offset: tuple[int, ...]
    flips: tuple[bool, bool]
    """True where an axis is reversed, for axes 1 and 0."""
    grey: float


def bodies(series: Series, *, side: int, dims: int, seed: int) -> Iterator[Body]:
    """Yield the bodies of a series, without end."""
    rng = Random(series.seed + SEEDS * seed)
    while True:
        size = rng.randint(side // 5, side // 2)
        shape = _extent(size, dims)
        cut = rng.randint(1, 2**dims - 1) if series.group == "border" else 0
        offset = tuple(
            rng.randint(int(-2 * length / 3), 0)
            if cut >> (dims - 1 - axis) & 1
            else rng.randint(0, side - length)
            for axis, length in enumerate(shape)
        )
        border = series.group == "border"
        flips = (border and rng.random() > 0.5, border and rng.random() > 0.5)
        grey = rng.uniform(0.5, 0.9) if series.group == "grey" else 1.0
        yield Body(size, offset, flips, grey)


def draw_body(body: Body, series: Series, *, side: int) -> Image:
    """Draw the image of a body before noise, with values from 0 to 1."""
    image = np.zeros((side,) * len(body.offset))
    solid = _box(body) if series.group == "cube" else _ball(body)
    start = np.array(body.offset)
    visible = tuple(
        slice(max(0, at), at + n) for at, n in zip(start, solid.shape, strict=True)
    )
    image[visible] = solid[tuple(slice(max(0, -at), None) for at in start)] * body.grey
    for axis, flip in zip((1, 0), body.flips, strict=True):
        image = np.flip(image, axis) if flip else image
    if series.sigma:
        smoothing = _smoothing(side, series.sigma * side / SIDE)
        for _ in range(image.ndim):  # each turn takes the first axis to the end
            image = np.tensordot(image, smoothing, axes=(0, 1))
    return image


def rater_masks(image: Image, raters: int) -> NDArray[np.uint8]:
    """Return what each rater marks, (raters, *space): all of it, or nested shares.

    Raters know the size of the object and mark its brightest part. So an object that
    is blurred to less than `LEAST` everywhere still has its brightest voxel marked.
    """
    if raters == 1:
        return (image >= LEAST)[None].astype(np.uint8)
    share = np.count_nonzero(image >= LEAST) / image.size
    levels = np.quantile(image, 1 - FRACTIONS * share)
    return np.stack([image >= level for level in levels]).astype(np.uint8)


def add_noise(image: Image, rng: np.random.Generator) -> Image:
    """Add noise where no object is: half 0, half uniform in [0, 1)."""
    noise = rng.random(image.shape)
    noise[rng.random(image.shape) <= 0.5] = 0
    return np.where(image < LEAST, noise, image)


def _extent(size: int, dims: int) -> tuple[int, ...]:
    """Return the sides of a body: the paper's meshes are one voxel longer on axis 0."""
    return (size + 1, *[size] * (dims - 1))


def _ball(body: Body) -> Image:
    """Draw a ball of the volume of the paper's mesh: 761 voxels at 12, 16,029 at 32."""
    shape = _extent(body.size, len(body.offset))
    middle = np.full(len(shape), (body.size - 1) / 2)
    middle[0] += 0.4
    grid = np.indices(shape, sparse=True)
    far = sum((axis - at) ** 2 for axis, at in zip(grid, middle, strict=True))
    inside = far <= ((body.size - 1) / 2 + 0.17) ** 2
    return np.asarray(inside, np.float64)


def _box(body: Body) -> Image:
    solid = np.zeros(_extent(body.size, len(body.offset)))
    solid[tuple(slice(0, length - 1) for length in solid.shape)] = 1
    return solid


@lru_cache(maxsize=8)
def _smoothing(side: int, sigma: float) -> Image:
    """Return the matrix of a Gaussian filter along one axis, with mirrored borders."""
    return np.asarray(gaussian_filter1d(np.eye(side), sigma, axis=0))
