"""Several splits that are trained on as one, without a copy of their images.

Label maps of splits that have different numbers of raters are repeated, so that all
items have as many. Within an item every rater still counts the same, and an item brings
all of its raters with it.
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
    """The items of `parts`, which are called `names`, one part after another."""
    parts = _with_equal_raters(parts)
    first = parts[0]
    for name, part in zip(names, parts, strict=True):
        for one, other in ((first.image, part.image), (first.target, part.target)):
            if not _fit(one, other):
                raise TrainingError(
                    f"splits that are trained on together must hold items of one shape"
                    f" and type; {names[0]!r} has {one.shape[1:]} {one.dtype} and"
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


def _fit(one: Any, other: Any) -> bool:
    """Whether arrays hold items of one shape and type, or of any shape."""
    if one.dtype != other.dtype or one.ndim != other.ndim:
        return False
    varied = isinstance(one, Ragged) or isinstance(other, Ragged)
    return varied or bool(one.shape[1:] == other.shape[1:])


def _with_equal_raters(parts: Sequence[Split]) -> Sequence[Split]:
    """`parts` with the same number of raters; each still counts as before."""
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
    """Label maps of an array, each of them several times; nothing is copied."""

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
        """A copy of `rows`, in their order."""
        found = self._maps.take(rows, axis=axis)
        return np.repeat(found, self._times, axis=1) if self._times > 1 else found


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
        found: NDArray[Any] = self._arrays[part][row - int(self._starts[part])]
        return found

    def take(self, rows: NDArray[np.int64], axis: int = 0) -> NDArray[Any]:
        """A copy of `rows`, in their order."""
        assert axis == 0
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for array, start in zip(self._arrays, self._starts, strict=False):
            here = (rows >= start) & (rows < start + len(array))
            if here.any():
                found[here] = array.take(rows[here] - start, axis=0)
        return found
