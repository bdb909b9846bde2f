"""The records: predictions in one normal form, and the maps of one segmented item."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._header import Header
from qualms.predictions._schema import array_field


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """One segmented item: statistics over draws, labels by draw and labels by rater.

    `mean_probs` (C, *space) and `expected_entropy` (*space, in nats) are float32,
    `draw_labels` (M, *space) and `raters` (R, *space) uint8. For writing, any array
    will do.
    """

    mean_probs: NDArray[Any]
    expected_entropy: NDArray[Any]
    draw_labels: NDArray[Any]
    raters: NDArray[Any]


class LazyMaps(Sequence[Maps]):
    """Maps that are read and checked one at a time, when asked for; none is kept."""

    __slots__ = ("_load", "_rows", "on_disk")

    def __init__(
        self, load: Callable[[int], Maps], rows: range, *, on_disk: bool = False
    ) -> None:
        self._load = load
        self._rows = rows
        self.on_disk = on_disk
        """Whether every process can read them; if so, no map travels with these."""

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
    """The maps of two splits one after the other, none of which is read yet."""
    return LazyMaps(
        partial(_one_of, first, second),
        range(len(first) + len(second)),
        on_disk=are_on_disk(first) and are_on_disk(second),
    )


def _one_of(first: Sequence[Maps], second: Sequence[Maps], row: int) -> Maps:
    return first[row] if row < len(first) else second[row - len(first)]


def are_on_disk(maps: Sequence[Maps] | None) -> bool:
    """Whether any process can read these maps, so that they need not be sent to it."""
    return isinstance(maps, LazyMaps) and maps.on_disk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """Predictions of one run on one split (or a pool of runs), checked.

    `arrays` has one normal form per task, whatever the file: `probs` (M, N, C), `mean`,
    `var` and `select/<name>` (M, N), everything else with N first; numbers in float64
    (`embedding` in float32), classes in int64, `item` as text. `probs` that were given
    in float32 stay so: reduce them in float64. `target` may be absent.
    Where an item has no known class, its `target` is -1 and `known` is there, false for
    it. `maps` holds the segmented items, read when asked for, and `pixels` says how
    many the first of them has. `notes` says in sentences what was ignored, taken for
    something else or renormalised.
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

    def __repr__(self) -> str:
        draws = f", {self.draws} draws" if self.draws > 1 else ""
        return (
            f"<Predictions of {self.header.method or self.source}: {self.task}, "
            f"{self.n} items{draws}; .arrays has {', '.join(self.arrays)}>"
        )

    def get(self, name: str) -> NDArray[Any] | None:
        """The array `name`, or None where the predictions have none."""
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
        """Refuse predictions without `target`, which cannot be scored."""
        if self.maps is None and "target" not in self.arrays:
            raise PredictionsError(
                f"{self.source}: has no 'target', so it can be checked and pooled, but "
                "not scored; add the true classes or values as 'target'"
            )

    def named(self, family: str) -> dict[str, NDArray[Any]]:
        """The arrays of a family, e.g. 'uncertainty', by the name after the slash."""
        head = f"{family}/"
        return {
            name.removeprefix(head): array
            for name, array in self.arrays.items()
            if name.startswith(head)
        }
