"""Checks of the options that datasets take."""

from collections.abc import Mapping, Sequence

import numpy as np


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def true_or_false(name: str, value: bool) -> bool:
    """Return `value`; raise unless it is a bool."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")
    return value


def whole_number(name: str, value: int, *, least: int | None = None) -> int:
    """Return `value` as an int; raise unless it is whole and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def chosen_sizes(
    requested: Mapping[str, int] | None,
    usual: Mapping[str, int],
    most: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return items per split: the usual numbers, replaced by `requested` ones.

    Args:
        requested: items of some splits; None keeps all the usual numbers.
        usual: items of every split.
        most: the largest numbers allowed; the usual ones by default.
    """
    if requested is not None and not isinstance(requested, Mapping):
        raise ValueError(
            f"sizes must be a mapping of splits or None, got {requested!r}"
        )
    sizes, limits = dict(usual), most or usual
    for split, size in (requested or {}).items():
        if split not in limits:
            raise ValueError(
                f"sizes must name {', '.join(limits)}, got {split!r}; remove it"
            )
        sizes[split] = whole_number(f"size of {split!r}", size)
        if not 1 <= size <= limits[split]:
            raise ValueError(
                f"size of {split!r} must lie in 1..{limits[split]}, got {size}"
            )
    return sizes
