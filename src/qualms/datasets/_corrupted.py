"""Images and label maps that are corrupted when they are taken; nothing is stored."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.corruptions import corrupt, corrupt_labels
from qualms.datasets._encoded import Encoded
from qualms.datasets._ragged import Ragged
from qualms.datasets._shared_rows import SharedRows

Stored = NDArray[Any] | Encoded | Ragged | SharedRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrupted:
    """Images or label maps that are used like an array, and corrupted when taken."""

    stored: Stored
    item: NDArray[np.str_]
    """(N,) names, on which the random numbers depend."""
    change: Callable[..., NDArray[Any]]
    """From an image, or its label maps, and the name of the item to its corrupted
    copy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the stored array, which corruptions keep."""
        return self.stored.shape

    @property
    def ndim(self) -> int:
        """Axes of an item, and one that counts items."""
        return self.stored.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of every item."""
        return self.stored.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        return self.stored.nbytes

    def __len__(self) -> int:
        return len(self.item)

    def __getitem__(self, row: Any) -> NDArray[Any]:
        """Return item `row`, or the items of a slice or of several rows."""
        if isinstance(row, int | np.integer) and not isinstance(row, bool):
            return self.change(self.stored[row], item=str(self.item[row]))
        return self.take(np.arange(len(self))[row])

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "corrupted items become an array only as a copy, got copy=False"
            )
        return self.take(np.arange(len(self))).astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int = 0) -> NDArray[Any]:
        """Corrupt the items `rows`."""
        if axis != 0:
            raise ValueError(f"items are taken along axis 0, got axis {axis}")
        chosen = np.asarray(rows, dtype=np.intp)
        stored = self.stored.take(chosen, axis=0)
        names = self.item[chosen]
        changed = np.empty(stored.shape, self.dtype)
        for place, name in enumerate(names):
            changed[place] = self.change(stored[place], item=str(name))
        return changed

    def only(self, rows: Any) -> "Corrupted":
        """Return the items `rows`; nothing is corrupted yet."""
        if isinstance(self.stored, np.ndarray):
            stored: Stored = self.stored[rows]
        else:
            stored = self.stored.only(rows)
        return replace(self, stored=stored, item=self.item[rows])


def corrupted_images(
    stored: Stored, item: NDArray[np.str_], corruption: str, severity: int
) -> Corrupted:
    """Return images that are corrupted when they are taken."""
    change = partial(corrupt, name=corruption, severity=severity)
    return Corrupted(stored=stored, item=item, change=change)


def corrupted_maps(
    stored: Stored, item: NDArray[np.str_], corruption: str, severity: int
) -> Corrupted:
    """Return label maps (N, raters, *space) that move with corrupted images."""
    change = partial(corrupt_labels, name=corruption, severity=severity)
    return Corrupted(stored=stored, item=item, change=change)


def is_ragged(array: Any) -> bool:
    """Return whether items may differ in shape."""
    return isinstance(array.stored if isinstance(array, Corrupted) else array, Ragged)
