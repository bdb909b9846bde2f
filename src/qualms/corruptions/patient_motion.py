"""A patient who moves in a scanner: `RandomMotion` of TorchIO.

Pérez-García et al. (2021): TorchIO: a Python library for efficient loading,
preprocessing, augmentation and patch-based sampling of medical images; after Shaw et
al. (2019). By default it turns by 10 degrees and moves by 10 mm at most, twice, which
is severity 5; ours is a share of the side, 5 % for a head of 200 mm. Masks stay: the
middle of the spectrum, which says where things are, is that of the image before it
moves.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform

from qualms.corruptions._corruption import Corruption, Image

DEGREES = (2.0, 4.0, 6.0, 8.0, 10.0)
SHARE = (0.01, 0.02, 0.03, 0.04, 0.05)
"""Of the shorter side."""
MOVES = 2
UNEVEN = 0.3
"""Largest change of the time of a move, as a share of the time between moves."""


def patient_motion() -> Corruption:
    """Put parts of the spectra of moved images together; severity is how far."""
    return Corruption(families=("medical",), change=_change, space=(2, 3), least=16)


def _change(image: Image, severity: int, rng: np.random.Generator) -> Image:
    space = tuple(range(image.ndim - 1))
    shift = SHARE[severity - 1] * min(image.shape[:-1])
    step = 1.0 / (MOVES + 1)
    times = step * np.arange(1, MOVES + 1)
    times += rng.uniform(-UNEVEN * step, UNEVEN * step, MOVES)
    images = [image]
    for _ in range(MOVES):
        turns = len(list(combinations(space, 2)))
        angles = np.radians(rng.uniform(-1.0, 1.0, turns) * DEGREES[severity - 1])
        by = rng.uniform(-shift, shift, len(space))
        images.append(_moved(image, angles.tolist(), by))
    spectra = [np.fft.fftshift(np.fft.fftn(i, axes=space), axes=space) for i in images]
    # The part with the middle of the spectrum is that of the image before it moves.
    at = int(np.searchsorted(times, 0.5))
    spectra[0], spectra[at] = spectra[at], spectra[0]
    edges = [0, *(times * image.shape[0]).astype(int).tolist(), image.shape[0]]
    joined = np.concatenate(
        [part[edges[n] : edges[n + 1]] for n, part in enumerate(spectra)]
    )
    unshifted = np.fft.ifftshift(joined, axes=space)
    return np.asarray(np.fft.ifftn(unshifted, axes=space).real)


def _moved(image: Image, angles: Sequence[float], by: NDArray[np.float64]) -> Image:
    """Return an image that is turned in every plane about its centre, and shifted."""
    axes = image.ndim - 1
    matrix = np.eye(axes)
    planes = combinations(range(axes), 2)
    for (one, other), angle in zip(planes, angles, strict=True):
        turn = np.eye(axes)
        turn[one, one] = turn[other, other] = np.cos(angle)
        turn[one, other], turn[other, one] = -np.sin(angle), np.sin(angle)
        matrix = matrix @ turn
    centre = (np.array(image.shape[:-1]) - 1) / 2
    offset = centre - matrix @ centre + by
    channels = [
        affine_transform(
            image[..., channel], matrix, offset, order=1, cval=image[..., channel].min()
        )
        for channel in range(image.shape[-1])
    ]
    return np.stack(channels, axis=-1)
