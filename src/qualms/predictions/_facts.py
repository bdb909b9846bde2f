"""Facts about predictions in words: classes, sizes, raters, shift, groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._record import Maps, Predictions
from qualms.predictions._segmentation import check_entropies, entropy_excess
from qualms.progress import counting
from qualms.wording import plural

LISTED = 6
"""Most classes or groups that are listed one by one."""
_LETTERS = 30
"""Most letters of the name of a group."""


def facts(predictions: Predictions) -> tuple[str, ...]:
    """Describe the contents line by line, for users who compare them with their data.

    Every segmented item is read, which also checks it.
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
    named = [predictions.header.class_name(int(label)) for label in labels]
    yield f"classes: {_counted(np.array(named), counts)}"


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
    """Shapes, numbers of draws and raters, and counts of labels of the maps so far."""

    regions: int
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    draws: set[int] = field(default_factory=set)
    raters: set[int] = field(default_factory=set)
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(256, np.int64))
    inside: NDArray[np.int64] = field(init=False)
    """(K,) pixels that raters mark as inside each region."""
    unlabelled: int = 0

    def __post_init__(self) -> None:
        self.inside = np.zeros(self.regions, np.int64)

    def add(self, maps: Maps) -> None:
        """Add one item."""
        self.shapes.add(maps.expected_entropy.shape)
        self.draws.add(len(maps.draw_labels))
        if not len(maps.raters):
            self.unlabelled += 1
            return
        self.raters.add(len(maps.raters))
        self.labels += np.bincount(maps.raters.ravel(), minlength=256)
        if self.regions:
            space = tuple(range(2, maps.raters.ndim))
            self.inside += np.count_nonzero(maps.raters == 1, axis=(0, *space))


def _segmented(predictions: Predictions) -> Iterator[str]:
    regions = predictions.header.regions
    contents = _MapFacts(len(regions))
    excess = []
    for maps in counting(predictions.maps or (), predictions.n):
        contents.add(maps)
        # The mean entropy of one draw enters no score.
        several = predictions.draws > 1
        excess.append(entropy_excess(maps, regions=bool(regions)) if several else 0.0)
    check_entropies(predictions, np.array(excess))
    ignore = predictions.header.ignore
    ignored = 0 if ignore is None else int(contents.labels[ignore])
    rated = int(contents.labels.sum()) - ignored
    yield _labelled(predictions, contents, rated)
    yield f"sizes: {_sizes(contents.shapes)}"
    if len(contents.draws) > 1:
        yield f"draws: {_span(contents.draws)} per item"
    if predictions.own_maps:
        yield f"own uncertainty maps: {', '.join(map(_short, predictions.own_maps))}"
    yield f"raters: {_raters(contents)}"
    if ignore is None:
        yield "ignored: no label (none is stated in the header)"
    else:
        share = ignored / max(rated + ignored, 1)
        yield f"ignored: {share:.1%} of the raters' pixels (label {ignore})"
    if not rated:
        marked = {"shifted", "known"} & predictions.arrays.keys()
        what = "only the detection of shifted items" if marked else "nothing"
        yield f"no pixel has a label that counts: {what} can be scored"


def _raters(contents: _MapFacts) -> str:
    if not contents.raters:
        return "none"
    bare = contents.unlabelled
    others = f", and none for {bare} {plural(bare, 'item')}" if bare else ""
    return f"{_span(contents.raters)}{others}"


def _labelled(predictions: Predictions, contents: _MapFacts, rated: int) -> str:
    """Return the classes or regions, with the share of the raters' pixels of each."""
    regions, ignore = predictions.header.regions, predictions.header.ignore
    kind, number, total = "classes", predictions.classes or 0, rated
    name = predictions.header.class_name
    counts = {name(n): contents.labels[n] for n in range(number) if n != ignore}
    if regions:
        kind, number, total = "regions", len(regions), rated // len(regions)
        counts = dict(zip(regions, contents.inside, strict=False))
    if number > LISTED:
        return f"{kind}: {number}"
    shares = (f"{_short(n)}: {k / max(total, 1):.1%}" for n, k in counts.items())
    return f"{kind}: {number} (pixels of each: {', '.join(shares)})"


def _short(name: str) -> str:
    return f"{name:.{_LETTERS}}"


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
    for name, further in predictions.named("group").items():
        yield f"groups by {name}: {_counted(*np.unique(further, return_counts=True))}"
    cluster = predictions.get("cluster")
    if cluster is not None:
        yield f"clusters: {len(np.unique(cluster))}"
