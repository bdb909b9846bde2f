"""Traits: what all objects of a class share, and how little one object differs.

A drawing asks for one trait after another. The generator of the class answers alike for
every object of the class; the generator of the object adds a small deviation.
"""

import colorsys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from qualms.datasets._outlines import Points
from qualms.datasets.species._canvas import PATTERNS, Coat

T = TypeVar("T")
DEVIATION = 0.03
"""Of an object from its class, as a share of a trait's range."""
HUE_DEVIATION = 0.008


class Traits:
    """Traits of an object of a class, drawn in the order of the calls."""

    def __init__(
        self, of_class: np.random.Generator, of_item: np.random.Generator | None
    ) -> None:
        """Make the traits of an object; without `own` it is exactly like its class."""
        self._of_class = of_class
        self._own = of_item

    def size(self, low: float, high: float) -> float:
        """Return a length, angle or share between two ends."""
        usual = low + (high - low) * self._of_class.random()
        return usual + (high - low) * DEVIATION * self._deviation()

    def count(self, low: int, high: int) -> int:
        """Return a whole number; both ends are possible."""
        return int(self._of_class.integers(low, high + 1))

    def one_of(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[int(self._of_class.integers(len(options)))]

    def colour(self) -> Points:
        """Return red, green and blue in 0..1."""
        hue, saturation, value = self._of_class.random(3)
        hue += HUE_DEVIATION * self._deviation()
        value = 0.3 + 0.65 * value + DEVIATION * self._deviation()
        rgb = colorsys.hsv_to_rgb(hue % 1, 0.35 + 0.6 * saturation, min(value, 1.0))
        return np.array(rgb)

    def paint(self) -> Coat:
        """Return two colours with a pattern."""
        return Coat(
            self.colour(),
            self.colour(),
            self.one_of(PATTERNS),
            self.size(1.2, 3.2),
            self.size(-1.6, 1.6),
            self.size(0, 6.3),
        )

    def _deviation(self) -> float:
        return 0.0 if self._own is None else float(self._own.standard_normal())


def tint(colour: Points | Sequence[float]) -> Coat:
    """Return a paint of one colour."""
    return Coat(np.asarray(colour, np.float64), np.asarray(colour, np.float64))
