"""Patches of large images and volumes: cut at random, or side by side.

A training step draws one patch of each of its items, anew whenever the item comes
again. A share of the patches is centred on a pixel of a class other than 0, as near to
the centre as the rim of the item allows: first a class of the item is drawn, with equal
chances, then one of its pixels. All other patches lie anywhere in the item with the
same chance. The patches of a step depend on the seed of the run, the epoch and the step
alone, so a run that goes on after a kill draws the same patches.

Everything else, such as the loss on `val`, sees every pixel of a split once: items are
cut into patches side by side.

Of a memory-mapped file only the patch is read. Where an item is smaller than the patch,
its rim is repeated; labels there are those to ignore, or repeated too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Split
from qualms.methods import margins, window_starts
from qualms.shelf import traits
from qualms.spec import Task
from qualms.training._error import TrainingError

if TYPE_CHECKING:
    from qualms.training.options import Training

_SLABS = 64
"""Parts of an item in which labels are counted; only one of them is searched."""
_LABELS = 256
_TINY = 1e-8
"""Added to a standard deviation, as for whole items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRule:
    """Size and placement of patches."""

    sides: tuple[int, ...]
    foreground: float = 0.0
    """Share of the random patches that are centred on a class other than 0."""
    ignore: int | None = None
    """Label of pixels that do not count."""
    standardise: bool = False
    """True to give an item mean 0 and standard deviation 1 before it is cut."""


def patch_rule(options: "Training", task: Task) -> PatchRule | None:
    """Return the rule that `options` state for items of `task`, or None."""
    side = options.patches.patch
    if not side:
        return None
    if "pixels" not in traits(task.name):
        raise TrainingError(
            f"patch={side} is for segmentation, and this is {task.name}; leave it out"
        )
    sides = (side,) * task.space if isinstance(side, int) else side
    if len(sides) != task.space:
        raise TrainingError(
            f"patch must be one side or {task.space}, as images have {task.space} axes,"
            f" got {list(sides)}"
        )
    return PatchRule(
        sides=sides,
        foreground=options.patches.patch_foreground,
        ignore=task.ignore,
        standardise=options.preprocessing.normalise == "item",
    )


class PatchPlace(NamedTuple):
    """Place of a patch that covers a part of an item."""

    row: int
    start: tuple[int, ...]
    """First pixel along each axis; negative where the rim is repeated."""
    overlap: tuple[int, ...]
    """First pixels along each axis that the patch before has as well."""


class CutItems(NamedTuple):
    """Patches (B, *sides, channels) and their labels (B, 1, *sides), of one rater."""

    image: NDArray[Any]
    target: NDArray[Any]


class _ClassPlaces(NamedTuple):
    """Classes other than 0 of an item, and where they are."""

    label: NDArray[np.intp]
    """(L,) classes."""
    edges: NDArray[np.intp]
    """(S + 1,) where slabs begin and end along the first axis."""
    counts: NDArray[np.intp]
    """(S, L) pixels of each class in each slab, summed over raters."""


class Cutter:
    """Cuts patches of the items of a split.

    The cutter remembers a few numbers of each item: its mean and standard deviation,
    and how often each class occurs.
    """

    def __init__(self, split: Split, rule: PatchRule) -> None:
        self.rule = rule
        self._split = split
        self._labels: dict[int, _ClassPlaces] = {}
        self._moments: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}

    def size(self, rows: Sequence[int]) -> int:
        """Return how many patches have as many pixels as the items `rows`."""
        pixels = sum(prod(self._split.image[row].shape[:-1]) for row in rows)
        return max(1, round(pixels / prod(self.rule.sides)))

    def draw(self, rows: Sequence[int], seed: Sequence[int]) -> CutItems:
        """Draw a patch of each of the items `rows`, with labels of a random rater."""
        rng = np.random.default_rng(seed)
        return _stacked([self._drawn(row, rng) for row in rows])

    def tiles(self, row: int) -> Iterator[PatchPlace]:
        """Yield the places of patches side by side that cover the item `row`."""
        sides = self.rule.sides
        lengths = self._split.image[row].shape[: len(sides)]
        axes = [list(_along(n, s)) for n, s in zip(lengths, sides, strict=True)]
        for spans in product(*axes):
            start, overlap = zip(*spans, strict=True)
            yield PatchPlace(row, start, overlap)

    def cut(self, tiles: Sequence[PatchPlace], share: NDArray[Any]) -> CutItems:
        """Cut the patches `tiles`; `share` (B,) in 0..1 chooses the rater of each."""
        pairs = zip(tiles, share.tolist(), strict=True)
        return _stacked([self._tile(*pair) for pair in pairs])

    def _drawn(self, row: int, rng: np.random.Generator) -> CutItems:
        image, maps = self._split.image[row], self._split.target[row]
        rater, lengths = int(rng.integers(len(maps))), maps.shape[1:]
        start = [
            int(rng.integers(n - side + 1)) if n > side else -margins(n, side)[0]
            for n, side in zip(lengths, self.rule.sides, strict=True)
        ]
        if rng.random() < self.rule.foreground:
            centre = self._foreground(row, maps, rng)
            start = _around(centre, start, lengths, self.rule.sides)
        return self._read(row, image, maps[rater], start)

    def _tile(self, tile: PatchPlace, share: float) -> CutItems:
        image, maps = self._split.image[tile.row], self._split.target[tile.row]
        rater = min(int(share * len(maps)), len(maps) - 1)
        patch = self._read(tile.row, image, maps[rater], tile.start)
        if self.rule.ignore is not None:
            for axis, overlap in enumerate(tile.overlap):
                before = (slice(None),) * axis + (slice(overlap),)
                patch.target[before] = self.rule.ignore
        return patch

    def _read(
        self, row: int, image: NDArray[Any], labels: NDArray[Any], start: Sequence[int]
    ) -> CutItems:
        sides = self.rule.sides
        patch = _window(image, start, sides)
        if self.rule.standardise:
            mean, deviation = self._moments_of(row, image)
            patch = (patch.astype(np.float32) - mean) / (deviation + _TINY)
        return CutItems(patch, _window(labels, start, sides, self.rule.ignore))

    def _moments_of(
        self, row: int, image: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return mean and standard deviation of an item, (channels,) each."""
        if row not in self._moments:
            pixels = prod(image.shape[:-1])
            slabs = [image[a:b] for a, b in _slabs(len(image))]
            axes = tuple(range(image.ndim - 1))
            mean = sum(slab.sum(axes, dtype=np.float64) for slab in slabs) / pixels
            squares = sum(np.square(slab - mean).sum(axes) for slab in slabs) / pixels
            deviation = np.sqrt(squares).astype(np.float32)
            self._moments[row] = mean.astype(np.float32), deviation
        return self._moments[row]

    def _foreground(
        self, row: int, maps: NDArray[Any], rng: np.random.Generator
    ) -> tuple[int, ...] | None:
        """Draw a pixel of a class other than 0; None if the item has none."""
        if row not in self._labels:
            self._labels[row] = _counted(maps, self.rule.ignore)
        label, edges, counts = self._labels[row]
        if not len(label):
            return None
        chosen = int(rng.integers(len(label)))
        ends = np.cumsum(counts[:, chosen])
        number = int(rng.integers(ends[-1]))
        slab = int(np.searchsorted(ends, number, side="right"))
        part = maps[:, edges[slab] : edges[slab + 1]]
        before = int(ends[slab - 1]) if slab else 0
        flat = np.flatnonzero(part == label[chosen])[number - before]
        _, first, *others = map(int, np.unravel_index(flat, part.shape))
        return first + int(edges[slab]), *others


def _stacked(patches: Sequence[CutItems]) -> CutItems:
    images, labels = zip(*patches, strict=True)
    return CutItems(np.stack(images), np.stack(labels)[:, None])


def _along(length: int, side: int) -> Iterator[tuple[int, int]]:
    """Yield the start of each patch along an axis, and its overlap with the last."""
    if length < side:
        yield -margins(length, side)[0], 0
        return
    end = 0
    for start in window_starts(length, side, 0.0):
        yield start, end - start
        end = start + side


def _around(
    centre: Sequence[int] | None,
    start: Sequence[int],
    lengths: Sequence[int],
    sides: Sequence[int],
) -> list[int]:
    """Return the start of a patch whose centre is `centre`, or `start` if None."""
    if centre is None:
        return list(start)
    return [
        min(max(middle - side // 2, 0), n - side) if n > side else first
        for middle, first, n, side in zip(centre, start, lengths, sides, strict=True)
    ]


def _window(
    array: NDArray[Any],
    start: Sequence[int],
    sides: Sequence[int],
    fill: int | None = None,
) -> NDArray[Any]:
    """Return a copy (*sides, ...) of `array` from `start` on.

    Outside of the array it is `fill`, or the rim repeated.
    """
    inside, padding = [], [(0, 0)] * array.ndim
    for axis, (first, side) in enumerate(zip(start, sides, strict=True)):
        low, high = max(first, 0), min(first + side, array.shape[axis])
        inside.append(slice(low, high))
        padding[axis] = (low - first, first + side - high)
    part = array[tuple(inside)]
    if not any(map(any, padding)):
        return np.array(part)
    if fill is None:
        return np.pad(part, padding, mode="edge")
    return np.pad(part, padding, constant_values=fill)


def _slabs(length: int) -> list[tuple[int, int]]:
    edges = _edges(length)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _edges(length: int) -> NDArray[np.intp]:
    return np.linspace(0, length, min(_SLABS, length) + 1).astype(np.intp)


def _counted(maps: NDArray[Any], ignore: int | None) -> _ClassPlaces:
    """Count the labels of all raters (R, *space), slab by slab."""
    edges = _edges(maps.shape[1])
    counts = np.stack(
        [
            np.bincount(maps[:, a:b].ravel(), minlength=_LABELS)
            for a, b in _slabs(maps.shape[1])
        ]
    )
    counts[:, 0] = 0
    if ignore is not None:
        counts[:, ignore] = 0
    label = np.flatnonzero(counts.sum(0))
    return _ClassPlaces(label, edges, counts[:, label])
