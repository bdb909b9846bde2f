"""Images and label maps that differ in shape, one after another in one file.

The values of all items lie side by side in a flat array, which is usually
memory-mapped, and a second array has the sides of each item. Reading an item, or a part
of one, touches the pages of that part alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANY = -1
"""Stands for the length of an axis along which items differ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ragged:
    """Arrays of any shape; `ragged[row]` is one of them, nothing is copied."""

    data: NDArray[Any]
    """(values,) of all items."""
    start: NDArray[np.int64]
    """(N,) where each item begins in `data`."""
    sides: NDArray[np.int64]
    """(N, axes) the shape of each item."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, *sides), with -1 for an axis along which items differ."""
        return len(self), *common_shape(self.sides.tolist())

    @property
    def ndim(self) -> int:
        """Axes of an item, and one that counts items."""
        return 1 + int(self.sides.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of every item."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        return int(self.sides.prod(axis=1).sum()) * self.data.itemsize

    def __len__(self) -> int:
        return len(self.sides)

    def __getitem__(self, row: Any) -> NDArray[Any]:
        """Return item `row`, in its own shape."""
        if isinstance(row, bool) or not isinstance(row, int | np.integer):
            raise TypeError(
                "items of different shapes are taken one by one, by their number; got"
                f" {row!r:.60}"
            )
        sides = self.sides[row].tolist()
        start = int(self.start[row])
        return self.data[start : start + int(np.prod(sides))].reshape(sides)

    def __setitem__(
        self, rows: NDArray[np.intp], values: Sequence[NDArray[Any]] | NDArray[Any]
    ) -> None:
        """Write one of `values` to each of `rows`."""
        for row, value in zip(rows, values, strict=True):
            self[row][...] = value

    def take(self, rows: Any, axis: int = 0) -> NDArray[Any]:
        """Copy the items `rows`, which must have one shape."""
        shapes = {tuple(sides) for sides in self.sides[rows].tolist()}
        if axis != 0 or len(shapes) > 1:
            raise ValueError(
                "items are taken together along axis 0 and only if they have one shape,"
                f" got axis {axis} and the shapes {sorted(shapes)[:3]}"
            )
        return np.stack([self[row] for row in np.asarray(rows)])

    def only(self, rows: Any) -> "Ragged":
        """Return the items `rows`; nothing is copied."""
        return Ragged(data=self.data, start=self.start[rows], sides=self.sides[rows])


def ragged(data: NDArray[Any], sides: NDArray[np.int64]) -> Ragged:
    """Return items of the shapes `sides` (N, axes), one after another in `data`.

    >>> ragged(np.arange(5), np.array([[2, 1], [1, 3]]))[1]
    array([[2, 3, 4]])
    """
    ends = np.cumsum(sides.prod(axis=1), dtype=np.int64)
    start = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    return Ragged(data=data, start=start, sides=sides)


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape that all have, with -1 for an axis along which they differ.

    >>> common_shape([(4, 5, 3), (4, 6, 3)])
    (4, -1, 3)
    """
    return tuple(
        sizes[0] if len(set(sizes)) == 1 else ANY for sizes in zip(*shapes, strict=True)
    )
