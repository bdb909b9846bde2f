"""Facts about predictions in words: classes, sizes, raters, shift, groups."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._record import Predictions
from qualms.predictions.schema import schemas

LISTED = 6
"""Most classes or groups that are listed one by one."""
LETTERS = 30
"""Most letters of the name of a group."""


def facts(predictions: Predictions) -> tuple[str, ...]:
    """Describe the contents line by line, for users who compare them with their data.

    Every segmented item is read, which also checks it.
    """
    contents = schemas()[predictions.task].facts(predictions)
    return (*contents, *_marks(predictions))


def class_facts(predictions: Predictions) -> Iterator[str]:
    """Yield a line on the classes of the targets."""
    target = predictions.get("target")
    if target is None:
        if predictions.classes:
            yield f"classes: {predictions.classes}"
        return
    labels, counts = np.unique(target[target >= 0], return_counts=True)
    if predictions.classes is not None:
        # Include classes without items; embeddings may number classes in any way.
        all_counts = np.zeros(predictions.classes, np.int64)
        all_counts[labels] = counts
        labels, counts = np.arange(len(all_counts)), all_counts
    named = [predictions.header.class_name(int(label)) for label in labels]
    yield f"classes: {_counted(np.array(named), counts)}"


def _counted(names: NDArray[Any], counts: NDArray[np.int64]) -> str:
    """Return the number of items of each name, one by one if there are few names."""
    if not len(names):
        return "none"
    if len(names) > LISTED:
        return f"{len(names)}, with {counts.min()} to {counts.max()} items each"
    each = (f"{n!s:.{LETTERS}}: {c}" for n, c in zip(names, counts, strict=True))
    return f"{len(names)} (items of each: {', '.join(each)})"


def _marks(predictions: Predictions) -> Iterator[str]:
    """Yield a line for each mark of items that every task may have."""
    for name in ("shifted", "upstream"):
        marks = predictions.get(name)
        if marks is not None:
            yield f"{name}: {int(marks.sum())} of {predictions.n} items"
    group = predictions.get("group")
    if group is not None:
        yield f"groups: {_counted(*np.unique(group, return_counts=True))}"
    for name, further in predictions.named("group").items():
        yield f"groups by {name}: {_counted(*np.unique(further, return_counts=True))}"
    cluster = predictions.get("cluster")
    if cluster is not None:
        yield f"clusters: {len(np.unique(cluster))}"
