"""Choice between two published sets of constants, by the size of the image.

The released code of Hendrycks & Dietterich (2019) has constants for pictures of 224
pixels (ImageNet-C) and for pictures of 32 (CIFAR-10-C).
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
LARGE = 96
"""Pixels of the shorter side from which on the constants are those of 224 pixels: it is
near the geometric mean of 32 and 224."""


def is_small(space: Sequence[int]) -> bool:
    """Return whether a picture takes the constants of 32 pixels."""
    return min(space) < LARGE


def by_size(
    space: Sequence[int], severity: int, *, small: Sequence[T], large: Sequence[T]
) -> T:
    """Return the constants of a severity for pictures of this size.

    >>> by_size((28, 28), 2, small=(1, 2, 3, 4, 5), large=(6, 7, 8, 9, 10))
    2
    """
    return (small if is_small(space) else large)[severity - 1]
