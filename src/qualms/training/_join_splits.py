"""Several splits that are trained on as one split, without a copy of their images.

Where splits have different numbers of raters, their label maps are repeated, so that
all items have the same number. Every rater of an item still counts the same.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Ragged, Split
from qualms.training._error import TrainingError


def join_splits(names: Sequence[str], parts: Sequence[Split]) -> Split:
    """Return one split with the items of `parts`, whose names are `names`."""
    parts = _with_equal_raters(parts)
    first = parts[0]
    for name, part in zip(names, parts, strict=True):
        for array, other in ((first.image, part.image), (first.target, part.target)):
            if not _fit(array, other):
                raise TrainingError(
                    f"splits that are trained on together must hold items of one shape"
                    f" and type; {names[0]!r} has {array.shape[1:]} {array.dtype} and"
                    f" {name!r} has {other.shape[1:]} {other.dtype}"
                )
    image: Any = RowStack([part.image for part in parts])
    target: Any = RowStack([part.target for part in parts])
    return Split(
        image=image,
        target=np.concatenate([part.target for part in parts])
        if first.target.ndim == 1
        else target,
        item=np.concatenate([part.item for part in parts]),
    )


def _fit(array: Any, other: Any) -> bool:
    """Return whether arrays hold items of one shape and type, or of any shape."""
    if array.dtype != other.dtype or array.ndim != other.ndim:
        return False
    varied = isinstance(array, Ragged) or isinstance(other, Ragged)
    return varied or bool(array.shape[1:] == other.shape[1:])


def _with_equal_raters(parts: Sequence[Split]) -> Sequence[Split]:
    """Return `parts` with the same number of raters; each still counts as before."""
    varied = any(isinstance(part.target, Ragged) for part in parts)
    if varied or any(part.target.ndim == 1 for part in parts):
        return parts  # items of any shape are read one by one
    most = math.lcm(*(part.target.shape[1] for part in parts))
    targets: list[Any] = [
        _Repeated(part.target, most // part.target.shape[1]) for part in parts
    ]
    return [
        replace(part, target=target)
        for part, target in zip(parts, targets, strict=True)
    ]


class _Repeated:
    """Label maps of an array, each repeated; nothing is copied until it is read."""

    def __init__(self, maps: Any, times: int) -> None:
        self._maps = maps
        self._times = times
        items, raters, *space = maps.shape
        self.shape: tuple[int, ...] = (items, raters * times, *space)
        self.dtype = maps.dtype
        self.ndim = maps.ndim
        self.nbytes = maps.nbytes * times

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> NDArray[Any]:
        return np.repeat(self._maps[row], self._times, axis=0)

    def take(self, rows: NDArray[np.int64], axis: int = 0) -> NDArray[Any]:
        """Return a copy of `rows`, in their order."""
        maps = self._maps.take(rows, axis=axis)
        return np.repeat(maps, self._times, axis=1) if self._times > 1 else maps


class RowStack:
    """Rows of several arrays as if they were one array; nothing is copied."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays
        self._starts = np.cumsum([0, *(len(array) for array in arrays)])
        self.shape: tuple[int, ...] = (int(self._starts[-1]), *arrays[0].shape[1:])
        self.dtype = arrays[0].dtype
        self.ndim = len(self.shape)
        self.nbytes = sum(int(array.nbytes) for array in arrays)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> NDArray[Any]:
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        values: NDArray[Any] = self._arrays[part][row - int(self._starts[part])]
        return values

    def take(self, rows: NDArray[np.int64], axis: int = 0) -> NDArray[Any]:
        """Return a copy of `rows`, in their order."""
        assert axis == 0
        values = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for array, start in zip(self._arrays, self._starts, strict=False):
            inside = (rows >= start) & (rows < start + len(array))
            if inside.any():
                values[inside] = array.take(rows[inside] - start, axis=0)
        return values
