"""Notes for the user about targets that are valid and may still be wrong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from qualms.datasets.folder.listing import OwnItem
from qualms.datasets.folder.targets import OwnTask

SHOWN = 3
"""Names that a note lists."""


def target_notes(
    task: OwnTask, items: Sequence[OwnItem], split: Sequence[str]
) -> tuple[str, ...]:
    """Return what is odd about the targets, in sentences."""
    if task.name == "classification":
        return (*_alike(task.classes), *_untested(task.classes, items, split))
    return tuple(_codes(task.values or ()))


def _alike(classes: Sequence[str]) -> Iterator[str]:
    """Say which classes differ in upper and lower case, spaces and hyphens alone."""
    spellings = defaultdict(list)
    for name in classes:
        plain = "".join(c for c in name.lower() if c not in " _-")
        spellings[plain].append(name)
    several = [names for names in spellings.values() if len(names) > 1]
    if several:
        shown = "; ".join(" and ".join(map(repr, names)) for names in several[:SHOWN])
        yield f"classes that are spelt nearly alike are different classes: {shown}"


def _untested(
    classes: Sequence[str], items: Sequence[OwnItem], split: Sequence[str]
) -> Iterator[str]:
    """Say which classes have no item in the split test."""
    pairs = zip(items, split, strict=True)
    tested = {item.target for item, name in pairs if name == "test"}
    missing = [name for name in classes if name not in tested]
    if tested and missing:
        more = len(missing) - SHOWN
        others = f" and {more} more" if more > 0 else ""
        yield (
            f"no item of test is of the class {', '.join(missing[:SHOWN])}{others}:"
            " nothing there tells how well it is recognised"
        )


def _codes(values: Sequence[float]) -> Iterator[str]:
    """Say which number stands far from all others, and several times."""
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= SHOWN:
        return
    for end, rest in ((0, different[1:]), (-1, different[:-1])):
        gap = abs(different[end] - rest[end])
        if counts[end] > 1 and gap > rest[-1] - rest[0]:
            yield (
                f"{counts[end]} of {len(values)} targets are {different[end]:g}, far"
                f" from the others ({rest[0]:g} to {rest[-1]:g}): if it marks a missing"
                " number, leave these items out"
            )
