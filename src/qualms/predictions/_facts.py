"""Facts about predictions in words: classes, sizes, raters, shift, groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._record import Maps, Predictions
from qualms.predictions._segmentation import check_entropies, entropy_excess

LISTED = 6
"""Most classes or groups that are listed one by one."""
_LETTERS = 30
"""Most letters of the name of a group."""


def facts(predictions: Predictions) -> tuple[str, ...]:
    """Return lines on the contents, for users who compare them with their data.

    Every segmented item is read, and checked thereby.
    """
    lines = {
        "classification": _classes,
        "embedding": _classes,
        "regression": _range,
        "segmentation": _segmented,
    }
    return (*lines[predictions.task](predictions), *_marks(predictions))


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
        # Include classes without items; embeddings may number classes in any way.
        all_counts = np.zeros(predictions.classes or 0, np.int64)
        all_counts[labels] = counts
        labels, counts = np.arange(len(all_counts)), all_counts
    yield f"classes: {_counted(labels, counts)}"


def _counted(names: NDArray[Any], counts: NDArray[np.int64]) -> str:
    """Return the number of items of each name, one by one if there are few names."""
    if not len(names):
        return "none"
    if len(names) > LISTED:
        return f"{len(names)}, with {counts.min()} to {counts.max()} items each"
    each = (f"{n!s:.{_LETTERS}}: {c}" for n, c in zip(names, counts, strict=True))
    return f"{len(names)} (items of each: {', '.join(each)})"


def _range(predictions: Predictions) -> Iterator[str]:
    target = predictions.get("target")
    if target is not None:
        finite = target[np.isfinite(target)]
        if len(finite):
            low, middle, high = np.quantile(finite, (0.0, 0.5, 1.0))
            yield f"target: {low:.4g} to {high:.4g}, median {middle:.4g}"
    lower, upper = predictions.get("lower"), predictions.get("upper")
    if lower is not None and upper is not None:
        yield f"intervals: mean length {float(np.mean(upper - lower)):.4g}"


@dataclass(slots=True)
class _MapFacts:
    """Shapes, numbers of raters and counts of labels of the maps read so far."""

    shapes: set[tuple[int, ...]] = field(default_factory=set)
    raters: set[int] = field(default_factory=set)
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))

    def add(self, maps: Maps) -> None:
        """Add one item."""
        self.shapes.add(maps.raters.shape[1:])
        self.raters.add(len(maps.raters))
        self.labels += np.bincount(maps.raters.ravel(), minlength=256)


def _segmented(predictions: Predictions) -> Iterator[str]:
    contents = _MapFacts()
    excess = []
    for maps in predictions.maps or ():
        contents.add(maps)
        # The mean entropy of one draw enters no score.
        excess.append(entropy_excess(maps) if predictions.draws > 1 else 0.0)
    check_entropies(predictions, np.array(excess))
    classes, ignore = predictions.classes or 0, predictions.header.ignore
    ignored = 0 if ignore is None else int(contents.labels[ignore])
    rated = int(contents.labels.sum()) - ignored
    shares = [
        f"{label}: {contents.labels[label] / max(rated, 1):.1%}"
        for label in range(classes)
        if label != ignore
    ]
    each = f" (pixels of each: {', '.join(shares)})" if classes <= LISTED else ""
    yield f"classes: {classes}{each}"
    yield f"sizes: {_sizes(contents.shapes)}"
    yield f"raters: {_span(contents.raters)}"
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


def _marks(predictions: Predictions) -> Iterator[str]:
    """Yield a line for each mark of items that every task may have."""
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
