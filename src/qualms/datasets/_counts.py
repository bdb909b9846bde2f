"""Compare the numbers of items with those of the paper."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qualms.datasets._publish import Skipped
from qualms.datasets._recipe import DatasetError, Labels, Recipe
from qualms.wording import plural


class Tally(NamedTuple):
    """Numbers of items."""

    counts: Mapping[str, int]
    """Of each split."""
    grades: Mapping[str, Sequence[int]]
    """Of each grade from 0 on, for splits whose items have grades."""


def published_tally(recipe: Recipe) -> Tally:
    """Return the paper's numbers of items."""
    return Tally(recipe.counts, recipe.grades)


def tally(labels: Mapping[str, Labels]) -> Tally:
    """Count the items in `labels`; `group` is a grade if it is an integer."""
    graded = {
        s: items.extra["group"] for s, items in labels.items() if "group" in items.extra
    }
    return Tally(
        {split: len(items) for split, items in labels.items()},
        {s: np.bincount(g).tolist() for s, g in graded.items() if g.dtype.kind == "i"},
    )


def differences(actual: Tally, expected: Tally) -> list[str]:
    """Describe every number that differs from the expected one.

    >>> actual = Tally({"val": 2}, {"val": [1, 1]})
    >>> differences(actual, Tally({"val": 3}, {"val": [2, 1]}))
    ['val 2 instead of 3', 'val grade 0 1 instead of 2']
    """
    sentences = [
        f"{split} {actual.counts.get(split, 0)} instead of {count}"
        for split, count in expected.counts.items()
        if actual.counts.get(split, 0) != count
    ]
    for split, counts in expected.grades.items():
        numbers = [*actual.grades.get(split, ()), *[0] * len(counts)]
        sentences += [
            f"{split} grade {grade} {have} instead of {count}"
            for grade, (have, count) in enumerate(zip(numbers, counts, strict=False))
            if have != count
        ]
    return sentences


def check_tally(recipe: Recipe, actual: Tally, skipped: Sequence[Skipped]) -> None:
    """Raise if numbers differ from the paper's."""
    differing = differences(actual, published_tally(recipe))
    if differing:
        raise DatasetError(
            f"{recipe.name} must have the paper's numbers of items, got"
            f" {'; '.join(differing)}.{_unreadable(skipped)} Repair the files and run"
            " again (what is loaded is kept), or accept these numbers with"
            " --no-check-counts."
        )


def check_not_empty(
    recipe: Recipe, counts: Mapping[str, int], skipped: Sequence[Skipped]
) -> None:
    """Raise if a split has no items."""
    empty = [split for split, count in counts.items() if count == 0]
    if empty:
        # A single reason for all units already says what to do.
        alike = len(skipped) > 1 and len({unit.reason for unit in skipped}) == 1
        remedy = "Mend that and run again." if alike else recipe.card.obtain
        raise DatasetError(
            f"{recipe.name}: no items for {', '.join(empty)}.{_unreadable(skipped)}"
            f" {remedy}"
        )


def check_complete(recipe: Recipe, failed: Sequence[Skipped]) -> None:
    """Raise if a recipe needs every unit, and one could not be loaded."""
    if failed:
        raise DatasetError(
            f"{len(failed)} of {len(recipe.units)} items of {recipe.name} cannot be"
            f" loaded: {_named(failed)}. Repair these files or remove them, and run"
            " again."
        )


def _unreadable(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return ""
    units = plural(len(skipped), "unit")
    return f" {len(skipped)} {units} could not be loaded: {_named(skipped)}."


def _named(skipped: Sequence[Skipped], most: int = 5) -> str:
    """Name the first units with the reason; equal reasons are given once."""
    alike: dict[str, list[str]] = {}
    for key, reason in skipped:
        alike.setdefault(reason.rstrip("."), []).append(key)
    first = list(alike.items())[:most]
    names = "; ".join(f"{_first(keys, most)} ({reason})" for reason, keys in first)
    return f"{names}, ..." if len(alike) > most else names


def _first(keys: Sequence[str], most: int) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(keys[:most]) + more
