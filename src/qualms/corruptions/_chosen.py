"""Corruptions that a user asks for: by name, by family or by pattern."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from qualms.corruptions._apply import KINDS, MOST_SEVERE, checked
from qualms.corruptions._corruption import Corruption
from qualms.shelf import broken, find, names
from qualms.wording import suggest

SEVERITIES = tuple(range(1, MOST_SEVERE + 1))


class AppliedCorruption(NamedTuple):
    """A corruption at one severity."""

    name: str
    severity: int


def applied_corruptions(
    words: Sequence[str], severities: Sequence[int], space: tuple[int, ...]
) -> tuple[AppliedCorruption, ...]:
    """Return every corruption that words stand for, at every severity.

    Args:
        words: names, families or patterns, as for `chosen_corruptions`.
        severities: from 1 to 5; () for all of them.
        space: the smallest sides of the images.

    Raises:
        LookupError: If a word stands for nothing.
        ValueError: If images are of another kind, or too small.
    """
    applied = tuple(
        AppliedCorruption(name, severity)
        for name in chosen_corruptions(words, axes=len(space))
        for severity in severities or SEVERITIES
    )
    for name, severity in applied:
        checked(name, space, severity)
    return applied


def chosen_corruptions(words: Iterable[str], *, axes: int) -> tuple[str, ...]:
    """Return the corruptions that words stand for, each once.

    Args:
        words: a name such as "fog", a family such as "blur", or a pattern such as
            "*_noise". A family or a pattern stands for those of its corruptions that
            are for such images.
        axes: spatial axes of the images: 2 for pictures, 3 for volumes.
    """
    wrong = broken("corruptions")
    shelf: dict[str, Corruption] = {
        name: find("corruptions", name)()
        for name in names("corruptions")
        if name not in wrong
    }
    chosen = (name for word in words for name in _meant(word, shelf, axes))
    return tuple(dict.fromkeys(chosen))


def parse_severities(text: str) -> tuple[int, ...]:
    """Parse severities from a text such as 1-5 or 1,3,5.

    >>> parse_severities("1,3-5")
    (1, 3, 4, 5)
    """
    severities: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= MOST_SEVERE:
            raise ValueError(
                f"severities must lie in 1 to {MOST_SEVERE}, as in 1-5 or 1,3,5, got"
                f" {text!r}"
            )
        severities += range(first, last + 1)
    return tuple(dict.fromkeys(severities))


def _meant(word: str, shelf: Mapping[str, Corruption], axes: int) -> list[str]:
    """Return the corruptions that a word stands for."""
    if word in shelf:
        return [word]
    meant = [
        name
        for name, part in shelf.items()
        if word in part.families or fnmatchcase(name, word)
    ]
    if not meant:
        families = list(dict.fromkeys(f for p in shelf.values() for f in p.families))
        raise LookupError(
            f"no corruption {word!r}.{suggest(word, (*shelf, *families))} Known:"
            f" {', '.join(shelf)}. Families: {', '.join(families)}."
        )
    serving = [name for name in meant if axes in shelf[name].space]
    if not serving:
        able = [name for name, part in shelf.items() if axes in part.space]
        raise ValueError(
            f"{word!r} stands for {', '.join(meant)}, none of which is for"
            f" {KINDS.get(axes, f'images of {axes} axes')}; choose of"
            f" {', '.join(able) or 'none'}"
        )
    return serving
