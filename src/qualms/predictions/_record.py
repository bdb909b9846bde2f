"""Records of predictions in normal form, and of the maps of one segmented item."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._header import Header
from qualms.predictions.schema import array_field


class Grid(NamedTuple):
    """Where the pixels of an item lie in the body, by the header of its file."""

    axes: str
    """Where each axis leads as its index grows: R or L, A or P, S or I."""
    spacing: tuple[float, ...]
    """Millimetres from a pixel to the next, along each axis."""
    tilt: float = 0.0
    """Largest angle in degrees between an axis of the grid and that of the body."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """One segmented item: statistics over draws, labels by draw and labels by rater.

    `mean_probs` (C, *space) and `expected_entropy` (*space, in nats) are float32,
    `draw_labels` (M, *space) and `raters` (R, *space) uint8; R is 0 where nobody
    labelled the item. `uncertainty` holds maps (*space) of
    your own, by name. Writers convert arrays of other dtypes and frameworks.

    If the header names K `regions`, which may overlap, `mean_probs` (K, *space) holds
    the sigmoid of each, `expected_entropy` is summed over them, and `draw_labels` (M,
    K, *space) and `raters` (R, K, *space) are 1 inside a region and 0 outside.

    `grid` says how the axes of a volume lie in the body, which pages need to show it.
    """

    mean_probs: NDArray[Any]
    expected_entropy: NDArray[Any]
    draw_labels: NDArray[Any]
    raters: NDArray[Any] = field(default_factory=partial(np.empty, 0, np.uint8))
    uncertainty: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    grid: Grid | None = None


class LazyMaps(Sequence[Maps]):
    """A sequence whose maps are read and checked on access, and not cached."""

    __slots__ = ("_load", "_rows", "on_disk")

    def __init__(
        self, load: Callable[[int], Maps], rows: range, *, on_disk: bool = False
    ) -> None:
        self._load = load
        self._rows = rows
        self.on_disk = on_disk
        """True if other processes can read the maps, so that none is sent to them."""

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Maps: ...
    @overload
    def __getitem__(self, index: slice) -> "LazyMaps": ...
    def __getitem__(self, index: int | slice) -> "Maps | LazyMaps":
        if isinstance(index, slice):
            rows = self._rows[index]
            return LazyMaps(self._load, rows, on_disk=self.on_disk)
        return self._load(self._rows[index])


def join_maps(first: Sequence[Maps], second: Sequence[Maps]) -> LazyMaps:
    """Return the maps of two splits one after the other, without reading them."""
    return LazyMaps(
        partial(_maps_at, first, second),
        range(len(first) + len(second)),
        on_disk=are_on_disk(first) and are_on_disk(second),
    )


def _maps_at(first: Sequence[Maps], second: Sequence[Maps], row: int) -> Maps:
    return first[row] if row < len(first) else second[row - len(first)]


def are_on_disk(maps: Sequence[Maps] | None) -> bool:
    """Return whether other processes can read these maps by themselves."""
    return isinstance(maps, LazyMaps) and maps.on_disk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """Predictions of one run on one split (or a pool of runs), checked.

    `arrays` has the same normal form for every kind of file: `probs` (M, N, C), `mean`,
    `var` and `select/<name>` (M, N), all others with N first (`item_axis`); numbers are
    float64 (`embedding` float32), classes int64, and `item` is text. `probs` stored in
    float32 stay float32, unless they are decimals such as 0.1: reduce them in float64.
    `target` may be missing. An item of no known class has `target` -1, and `known` is
    present and false for it.

    `maps` are the segmented items, read on access, and `pixels` the size of the first.
    `own_maps` are the names of the user's own uncertainty maps, and `draws` is the
    largest number of draws of an item. `classes` is None for `regions`. `notes` are
    sentences on arrays that were ignored, converted or renormalised.
    """

    task: str
    header: Header
    arrays: Mapping[str, NDArray[Any]]
    maps: Sequence[Maps] | None = None
    source: str = "arrays"
    notes: tuple[str, ...] = ()
    n: int
    draws: int = 1
    classes: int | None = None
    pixels: int = 0
    own_maps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        draws = f", {self.draws} draws" if self.draws > 1 else ""
        return (
            f"<Predictions of {self.header.method or self.source}: {self.task}, "
            f"{self.n} items{draws}; .arrays has {', '.join(self.arrays)}>"
        )

    def get(self, name: str) -> NDArray[Any] | None:
        """Return the array `name`, or None if the predictions have none."""
        return self.arrays.get(name)

    def item_axis(self, name: str) -> int | None:
        """Return the axis of array `name` that counts items: 1 after draws, else 0.

        None for an `extra/<name>` that has no row for each item.

        >>> from qualms.predictions import build
        >>> built = build({"target": [0, 1], "prob": [0.2, 0.9]})
        >>> built.item_axis("target"), built.item_axis("probs")
        (0, 1)
        """
        field = array_field(self.task, name)
        if field is not None and field.axes:
            return 1 if field.draws else 0
        return 0 if self.arrays[name].shape[:1] == (self.n,) else None

    def require_target(self) -> None:
        """Raise unless the predictions have a `target`, which scores need."""
        if self.maps is None and "target" not in self.arrays:
            raise PredictionsError(
                f"{self.source}: has no 'target', so it can be checked and pooled, but "
                "not scored; add the true classes or values as 'target'"
            )

    def named(self, family: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a family such as 'uncertainty' by the rest of the name.

        The rest of `uncertainty/entropy` is `entropy`.
        """
        prefix = f"{family}/"
        return {
            name.removeprefix(prefix): array
            for name, array in self.arrays.items()
            if name.startswith(prefix)
        }
