"""What predictions hold, in words: classes, sizes, raters, shift, groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._record import Maps, Predictions
from qualms.predictions._segmentation import check_entropies, entropy_excess

LISTED = 6
"""At most so many classes or groups are listed one by one."""
_LETTERS = 30
"""Of the name of a group."""


def facts(predictions: Predictions) -> tuple[str, ...]:
    """Lines that somebody who checks a file wants to compare with what they know.

    Of segmented items, every one is read, and so checked.
    """
    about = {
        "classification": _classes,
        "embedding": _classes,
        "regression": _range,
        "segmentation": _segmented,
    }
    return (*about[predictions.task](predictions), *_kinds(predictions))


def _classes(predictions: Predictions) -> Iterator[str]:
    if predictions.task == "embedding":
        yield f"dimensions: {predictions.arrays['embedding'].shape[-1]}"
    target = predictions.get("target")
    if target is None:
        if predictions.classes:
            yield f"classes: {predictions.classes}"
        return
    labels, counts = np.unique(target[target >= 0], return_counts=True)
    if predictions.task == "classification":
        # Classes without an item count; those of embeddings have any numbers.
        every = np.zeros(predictions.classes or 0, np.int64)
        every[labels] = counts
        labels, counts = np.arange(len(every)), every
    yield f"classes: {_counted(labels, counts)}"


def _counted(names: NDArray[Any], counts: NDArray[np.int64]) -> str:
    """How many items each has: one by one if they are few."""
    if not len(names):
        return "none"
    if len(names) > LISTED:
        return f"{len(names)}, with {counts.min()} to {counts.max()} items each"
    each = (f"{n!s:.{_LETTERS}}: {c}" for n, c in zip(names, counts, strict=True))
    return f"{len(names)} (items of each: {', '.join(each)})"


def _range(predictions: Predictions) -> Iterator[str]:
    target = predictions.get("target")
    if target is not None:
        known = target[np.isfinite(target)]
        if len(known):
            low, middle, high = np.quantile(known, (0.0, 0.5, 1.0))
            yield f"target: {low:.4g} to {high:.4g}, median {middle:.4g}"
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is not None and upper is not None:
        yield f"intervals: mean length {float(np.mean(upper - lower)):.4g}"


@dataclass(slots=True)
class _MapFacts:
    """What the maps seen so far hold."""

    shapes: set[tuple[int, ...]] = field(default_factory=set)
    raters: set[int] = field(default_factory=set)
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))

    def add(self, maps: Maps) -> None:
        """One item more."""
        self.shapes.add(maps.raters.shape[1:])
        self.raters.add(len(maps.raters))
        self.labels += np.bincount(maps.raters.ravel(), minlength=256)


def _segmented(predictions: Predictions) -> Iterator[str]:
    seen = _MapFacts()
    excess = []
    for maps in predictions.maps or ():
        seen.add(maps)
        # Of one draw the mean entropy enters no score.
        excess.append(entropy_excess(maps) if predictions.draws > 1 else 0.0)
    check_entropies(predictions, np.array(excess))
    classes, ignore = predictions.classes or 0, predictions.header.ignore
    ignored = 0 if ignore is None else int(seen.labels[ignore])
    rated = int(seen.labels.sum()) - ignored
    shares = [
        f"{label}: {seen.labels[label] / max(rated, 1):.1%}"
        for label in range(classes)
        if label != ignore
    ]
    each = f" (pixels of each: {', '.join(shares)})" if classes <= LISTED else ""
    yield f"classes: {classes}{each}"
    yield f"sizes: {_sizes(seen.shapes)}"
    yield f"raters: {_span(seen.raters)}"
    if ignore is None:
        yield "ignored: no label (none is stated in the header)"
    else:
        share = ignored / max(rated + ignored, 1)
        yield f"ignored: {share:.1%} of the raters' pixels (label {ignore})"
    if not rated:
        yield "no pixel has a label that counts: the items cannot be scored"


def _sizes(shapes: set[tuple[int, ...]]) -> str:
    ordered = sorted(shapes, key=lambda shape: (np.prod(shape), shape))
    words = ["x".join(map(str, shape)) for shape in ordered]
    if len(words) <= LISTED:
        return ", ".join(words)
    return f"{len(words)} different, from {words[0]} to {words[-1]}"


def _span(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _kinds(predictions: Predictions) -> Iterator[str]:
    """Marks of items, whatever the task."""
    for name in ("shifted", "upstream"):
        marks = predictions.get(name)
        if marks is not None:
            yield f"{name}: {int(marks.sum())} of {predictions.n} items"
    group = predictions.get("group")
    if group is not None:
        yield f"groups: {_counted(*np.unique(group, return_counts=True))}"
    cluster = predictions.get("cluster")
    if cluster is not None:
        yield f"clusters: {len(np.unique(cluster))}"
