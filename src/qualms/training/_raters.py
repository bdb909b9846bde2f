"""Label maps of several raters, of which a step sees one for each item.

Label maps are stored as (N, R, *space), one for each of R raters. A training step draws
a rater of each item, anew whenever the item comes again. Everything else, such as the
loss on `val`, draws the rater by the name of the item, so all runs see the same map.

A dataset may have classes with a second label (`Dataset.swaps`). Each such class of a
map gets its second label with the probability `Dataset.swap_share`, in the whole map.
Second labels that are stored are turned back first, so items that are stored with
several draws, such as those of a pool, are trained on as all others are. Items that are
stored with one map have no draws yet: their predictions are compared with five, which
depend on the name of the item alone.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.training._error import TrainingError

_LABELS = 256
"""Label maps have 8 bits."""
_REFERENCES = 5
"""Draws that predictions are compared with (Kahl et al., 2024)."""


class Swaps(NamedTuple):
    """Classes that have a second label, and how often the second label is used."""

    classes: Mapping[int, int]
    share: float


NO_SWAPS = Swaps({}, 0.0)


class RaterDraw:
    """Draws a label map for each item out of those of its raters."""

    def __init__(self, swaps: Swaps, device: torch.device) -> None:
        _check(swaps)
        self.swaps = swaps
        first, second = [*swaps.classes], [*swaps.classes.values()]
        self._first = torch.tensor(first, dtype=torch.uint8, device=device)
        self._second = torch.tensor(second, dtype=torch.uint8, device=device)
        self._labels = torch.tensor([*first, *second], device=device)
        self._same = torch.arange(_LABELS, dtype=torch.uint8, device=device)

    @property
    def chances(self) -> int:
        """Random numbers per map: one for the rater, and one for each swap."""
        return 1 + len(self.swaps.classes)

    def fresh(self, count: int) -> Tensor:
        """Draw random numbers (count, chances) for `count` items, on the device."""
        return torch.rand(count, self.chances, device=self._same.device)

    def fixed(self, names: Sequence[str]) -> Tensor:
        """Return numbers (N, chances) that depend on the name of each item alone."""
        size = 4 * self.chances
        hashed = (hashlib.shake_256(name.encode()).digest(size) for name in names)
        numbers = np.frombuffer(b"".join(hashed), "<u4").reshape(-1, self.chances)
        return torch.from_numpy(numbers / 2.0**32).float()

    def take(self, maps: Tensor, rows: Tensor, chance: Tensor) -> Tensor:
        """Return the map (B, *space) of one rater of each of `rows`.

        Args:
            maps: (N, R, *space).
            rows: (B,) items of `maps`.
            chance: (B, chances) random numbers in 0..1.
        """
        raters = maps.shape[1]
        rater = (chance[:, 0] * raters).long().clamp(max=raters - 1)
        drawn = maps.flatten(0, 1).index_select(0, rows * raters + rater)
        return self._swapped(drawn, chance[:, 1:]) if self.swaps.classes else drawn

    def references(self, maps: NDArray[Any], name: str) -> NDArray[Any]:
        """Return the maps that predictions of item `name` are compared with.

        `maps` (R, *space) are those of the item.
        """
        if not self.swaps.classes or len(maps) > 1:
            return maps
        names = [name, *(f"{name} {number}" for number in range(1, _REFERENCES))]
        stored = torch.from_numpy(maps[None].copy()).to(self._same.device)
        rows = torch.zeros(_REFERENCES, dtype=torch.int64, device=stored.device)
        chance = self.fixed(names).to(stored.device)
        drawn: NDArray[Any] = self.take(stored, rows, chance).cpu().numpy()
        return drawn

    def _swapped(self, maps: Tensor, chance: Tensor) -> Tensor:
        new = torch.where(chance < self.swaps.share, self._second, self._first)
        # The new label of each label, for each item.
        table = self._same.repeat(len(maps), 1)
        table.index_copy_(1, self._labels, new.repeat(1, 2))
        flat = maps.flatten(1).long()
        return table.gather(1, flat).view(maps.shape)


def _check(swaps: Swaps) -> None:
    labels = [*swaps.classes, *swaps.classes.values()]
    unique = len(set(labels)) == len(labels)
    if not unique or not all(0 <= label < _LABELS for label in labels):
        raise TrainingError(
            "classes and their second labels must be different labels from 0 to 255,"
            f" got {dict(swaps.classes)}"
        )
