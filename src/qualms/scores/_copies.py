"""How often each item counts in a few replicates, and what plans make of it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from qualms.scores._arrays import Array, Index
from qualms.scores._cells import Cells
from qualms.scores._resample import Weights
from qualms.scores._weighted import counted, dot

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """The weights of a few replicates; what one plan sums up serves the others."""

    weights: Weights
    """(draws, N) how often each item counts."""
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def total(self) -> Array:
        """(draws,) how many copies there are of all items."""
        return self.shared("total", lambda: self.dot(np.ones(self.weights.shape[1])))

    def dot(self, values: Array) -> Array:
        """(draws,) sums of `values` (N,) over all copies."""
        # Any other layout would be compiled for anew.
        return dot(self.weights, np.require(values, np.float64, ["C", "W"]))

    def mean(self, values: Array) -> Array:
        """(draws,) means of `values` (N,) over all copies."""
        return self.dot(values) / self.total()

    def within(self, cells: Cells) -> Weights:
        """(draws, S) how many copies there are of the items of each cell."""
        count = len(cells)
        return self.shared(cells, lambda: counted(self.weights, cells.cell, count))

    def of(self, index: Index) -> "Copies":
        """The copies of the items at `index` alone."""
        # The index is kept, too, lest another come to stand at its address.
        _, copies = self.shared(
            id(index), lambda: (index, Copies(np.take(self.weights, index, axis=1)))
        )
        return copies

    def shared(self, key: Hashable, find: Callable[[], T]) -> T:
        """What `find` finds, found once for each `key`."""
        if key not in self._known:
            self._known[key] = find()
        found: T = self._known[key]
        return found
