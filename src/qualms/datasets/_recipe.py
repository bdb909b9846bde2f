"""Records of datasets: the recipe that a file returns, and the prepared dataset.

A dataset file turns a folder laid out as its publisher ships it (or a seed, for a
simulator) into a `Recipe`: the units that hold the raw data, and how to load one.
`prepare` loads the units in parallel into a memory-mapped cache and returns a
`Dataset`. Nothing about a dataset is known outside its file.

Pictures that take long to make are kept once, encoded, in an album, which is a recipe
of its own. Other recipes show the pictures of an album in splits and with labels of
their own. The crops of large images are kept once in the same way, as arrays, together
with their label maps.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._corrupted import Corrupted, corrupted_images, corrupted_maps
from qualms.datasets._encoded import Encoded
from qualms.datasets._ragged import Ragged
from qualms.datasets._shared_rows import SharedRows
from qualms.spec import Task
from qualms.wording import suggest


class DatasetError(ValueError):
    """A dataset that cannot be prepared or opened; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Title, licence, source and access of a dataset."""

    title: str
    licence: str
    citation: str
    url: str
    obtain: str
    """Steps to get the data, and the folder layout `qualms prepare --from` expects."""
    simulated: bool = False
    package: str | None = None
    """A Python package that brings the data. Where it is installed, its name stands for
    the folder, and no folder has to be named."""
    place: str | None = None
    """The folder in which a package of the operating system puts the data. Where it
    exists, no folder has to be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One piece of raw data that is loaded at once: a photo, a volume, a chunk."""

    key: str
    """Unique and stable: the file's name, or the chunk's number."""
    split: str
    """The split its items belong to, or the part that `divide` splits further."""
    args: tuple[Any, ...] = ()
    """Plain values that `load` needs besides the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedItems:
    """The k items that one unit holds; k may be 0."""

    image: NDArray[Any] | tuple[bytes, ...]
    """(k, *space, channels) uint8, or float32 where the source is not 8 bit. Or k
    encoded pictures, which may differ in size."""
    target: NDArray[Any]
    """(k,) targets; of segmentation, (k, raters, *space) uint8 label maps."""
    item: tuple[str, ...]
    """k unique names."""
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Further per-item arrays by their name in the predictions file: group, cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divide:
    """Division of a part in two after loading: a seeded shuffle of the item names."""

    into: tuple[str, ...]
    """Names of the splits, e.g. ("train", "val")."""
    first: float
    """Share of the first split; its size is int(first * n)."""
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.into) != 2:
            raise ValueError(f"into must name two splits, got {self.into}")
        if not 0 < self.first < 1:
            raise ValueError(f"first must lie between 0 and 1, got {self.first}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Some items of a split, chosen by their targets.

    Either the target lies in one of several closed ranges, or every other item of each
    class is kept. A subset is not stored. Its predictions are those of the split,
    filtered.
    """

    of: str
    """Name of a stored split."""
    within: tuple[tuple[float, float], ...] = ()
    """(lowest, highest) target of each range, both included."""
    half: Literal["even", "odd"] | None = None
    """Keep the items at even (0, 2, ...) or odd positions of their class instead."""

    def keep(self, target: NDArray[Any]) -> NDArray[np.intp]:
        """Return the rows whose target lies in a range, or the rows of the half."""
        if self.half is not None:
            return np.flatnonzero(
                _positions_in_class(target) % 2 == (self.half == "odd")
            )
        inside = [(low <= target) & (target <= high) for low, high in self.within]
        return np.flatnonzero(np.any(inside, axis=0))


HALVES: Mapping[str, Subset] = {
    "test/even": Subset(of="test", half="even"),
    "test/odd": Subset(of="test", half="odd"),
}
"""Half of the items of each test class to train on, and half to test (few-shot)."""


def _positions_in_class(target: NDArray[Any]) -> NDArray[np.intp]:
    """Number the items of each class, from 0 on, in their order."""
    order = np.argsort(target, kind="stable")
    _, first, counts = np.unique(target[order], return_index=True, return_counts=True)
    positions = np.empty(len(target), np.intp)
    positions[order] = np.arange(len(target)) - np.repeat(first, counts)
    return positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Items, targets and extra arrays of a split, without images."""

    item: NDArray[np.str_]
    target: NDArray[Any] | None
    """None where the album has the targets."""
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.item)


def _load_nothing(unit: Unit) -> LoadedItems:
    raise ValueError(
        f"a recipe that has units must say how to load them, got no load for"
        f" {unit.key!r}; pass load="
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Instructions to make a dataset: plain data, and a function that loads a unit."""

    name: str
    options: Mapping[str, Any]
    """Everything that changes a byte of the result, as JSON; not the source folder."""
    card: Card
    task: Task
    units: tuple[Unit, ...] = ()
    """Empty in a recipe that shows albums."""
    load: Callable[[Unit], LoadedItems] = _load_nothing
    """A pure function that other processes can import (a module-level function or a
    partial of one). It raises OSError or ValueError for a bad file."""
    divide: Mapping[str, Divide] = field(default_factory=dict)
    """Parts that are split by items after loading, e.g. {"trainval": Divide(...)}."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The paper's number of items per final split; checked unless overridden."""
    shifts: Mapping[str, str] = field(default_factory=dict)
    """Shift of each shifted split, in words, e.g. {"test": "label range"}."""
    subsets: Mapping[str, Subset] = field(default_factory=dict)
    """Further splits that are filtered from stored ones, e.g. graded shifts."""
    version: int = 1
    """A number to increase when the same options give other bytes."""
    shown: "Mapping[str, Shown]" = field(default_factory=dict)
    """Splits that show pictures of an album. A recipe has these or `units`."""
    side: int | None = None
    """Height and width that encoded pictures are decoded to."""
    grades: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The paper's number of items of each grade (`group`, from 0 on) of a shown split;
    checked unless overridden."""
    swaps: Mapping[int, int] = field(default_factory=dict)
    """The second label of each class that has two (segmentation), e.g. {0: 23}. Splits
    for training store first labels; each item gets its labels anew when it is loaded.
    Splits for testing store some fixed draws as raters."""
    swap_share: float = 0.0
    """Probability of the second label, for each class of an item."""
    any_shape: bool = False
    """True if images may differ in their sides, and label maps in their sides and in
    their number of raters. Training then takes patches of them."""
    complete: bool = False
    """True if every unit must load. Otherwise unreadable units are left out and
    reported."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Files that are left out from the start, and why. They are reported together with
    those that cannot be loaded."""
    notes: tuple[str, ...] = ()
    """Notes for the user about the files, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A split made of some pictures of an album."""

    album: Recipe
    """A recipe with one split, of encoded pictures or of arrays with their targets.
    Its folder lies beside the folders of the datasets that show it."""
    labels: Labels
    """The items to show; they are found in the album by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One split of a prepared dataset; arrays are memory-mapped."""

    image: NDArray[Any] | Encoded | Ragged | SharedRows | Corrupted
    target: NDArray[Any] | Ragged | SharedRows | Corrupted
    item: NDArray[np.str_]
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.target)

    def corrupted(self, corruption: str, severity: int) -> "Split":
        """Return the split with images that are corrupted when they are taken.

        Label maps move with them; other targets stay as they are.
        """
        target = self.target
        if target.ndim > 1 and not isinstance(target, Corrupted):
            target = corrupted_maps(target, self.item, corruption, severity)
        if isinstance(self.image, Corrupted):
            raise ValueError(
                f"a split is corrupted once, got {corruption!r} for one that is"
                " corrupted; start from the stored split"
            )
        image = corrupted_images(self.image, self.item, corruption, severity)
        return replace(self, image=image, target=target)


def _select_rows(array: Any, rows: NDArray[np.intp]) -> Any:
    """Return a copy of `rows`, or a record of them where items are read one by one."""
    apart = isinstance(array, Encoded | Ragged | SharedRows | Corrupted)
    return array.only(rows) if apart else array[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A prepared dataset: named splits, what is shifted, and a fingerprint."""

    name: str
    options: Mapping[str, Any]
    card: Card
    task: Task
    splits: Mapping[str, Split]
    shifts: Mapping[str, str]
    fingerprint: str
    """Hash of the recipe and of every stored byte; written into predictions."""
    subsets: Mapping[str, Subset] = field(default_factory=dict)
    swaps: Mapping[int, int] = field(default_factory=dict)
    """Classes of label maps that have a second label, and this label."""
    swap_share: float = 0.0
    """Probability that a rater uses the second label of a class, in all of a map."""

    def has_options(self, options: Mapping[str, Any]) -> bool:
        """Return whether the dataset was made with these options.

        For an option of None the dataset chose the value itself. Of a mapping, such as
        sizes of splits, only the named values must agree.
        """
        return all(
            _agrees(value, self.options.get(name))
            for name, value in options.items()
            if value is not None
        )

    def split(self, name: str) -> Split:
        """Return the stored split `name`, or a copy of the rows of a subset."""
        if name in self.splits:
            return self.splits[name]
        rows = self.rows(name)
        stored = self.splits[self.subsets[name].of]
        return Split(
            image=_select_rows(stored.image, rows),
            target=_select_rows(stored.target, rows),
            item=stored.item[rows],
            extra={key: array[rows] for key, array in stored.extra.items()},
        )

    def rows(self, name: str) -> NDArray[np.intp]:
        """Return the rows of the stored split that form the split or subset `name`."""
        if name in self.splits:
            return np.arange(len(self.splits[name]))
        if name in self.subsets:
            subset = self.subsets[name]
            return subset.keep(np.asarray(self.splits[subset.of].target))
        splits = (*self.splits, *self.subsets)
        raise LookupError(
            f"no split {name!r} in {self.name}.{suggest(name, splits)}"
            f" Known: {', '.join(splits)}."
        )


def _agrees(value: Any, recorded: Any) -> bool:
    value = json.loads(json.dumps(value))  # as it was recorded
    if isinstance(value, dict) and isinstance(recorded, dict):
        return all(recorded.get(name) == each for name, each in value.items())
    return bool(value == recorded)
