"""Levels between 0 and 1, and the rank in a sorted list that one of them asks for."""

import math

# A product such as 20 * (1 - 0.05) may land a rounding error above a whole number;
# the next rank would then be taken for nothing.
SLACK = 1e-12


def open_unit(name: str, value: float) -> None:
    """Refuse a level or alpha that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")


def rank_reaching(share: float, count: int) -> int:
    """The least whole rank that is at least `share` of `count`, rounding errors aside.

    >>> rank_reaching(1 - 0.9, 10), rank_reaching(0.15, 10)
    (1, 2)
    """
    return math.ceil(share * count * (1 - SLACK))
