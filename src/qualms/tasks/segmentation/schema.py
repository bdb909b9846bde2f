"""Arrays of a segmentation: a folder of maps, one file for each item."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Maps, Predictions, check_entropies, entropy_excess
from qualms.predictions.schema import EVERYWHERE, UNCERTAINTY, TaskSchema
from qualms.progress import counting
from qualms.wording import plural

LISTED = 6
"""Most classes that are listed one by one."""
LETTERS = 30
"""Most letters of the name of a class."""


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


def _facts(predictions: Predictions) -> Iterator[str]:
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
    return f"{name:.{LETTERS}}"


def _sizes(shapes: set[tuple[int, ...]]) -> str:
    ordered = sorted(shapes, key=lambda shape: (np.prod(shape), shape))
    words = ["x".join(map(str, shape)) for shape in ordered]
    if len(words) <= LISTED:
        return ", ".join(words)
    return f"{len(words)} different, from {words[0]} to {words[-1]}"


def _span(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


SCHEMA = TaskSchema(
    required=(),
    marks=("maps", "mean_probs", "expected_entropy", "draw_labels", "raters"),
    fields=(UNCERTAINTY, *EVERYWHERE),
    facts=_facts,
    folder=True,
)
