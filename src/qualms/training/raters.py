"""The label map that a step sees: that of one rater of each item.

Label maps are stored as (N, R, *space), one for each of R raters. A training step takes
one of them for each item, at random, and another one when the item comes again. All
else, such as the loss on `val`, has the same one every time: it is drawn by the name of
the item, so it is the same for all runs.

A dataset may have classes with a second label (`Dataset.swaps`). Then every such class
of a map has its second label with the probability `Dataset.swap_share`, in the whole
map. A second label that is stored is turned back first. So items that are stored with
several draws, such as those of a pool, are trained on as all others are. Items that are
stored with one map have no draws yet: predictions compare them with five, which depend
on the name of the item alone.
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
    """Classes that have a second label, and how often it is used."""

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
        self._places = torch.tensor([*first, *second], device=device)
        self._same = torch.arange(_LABELS, dtype=torch.uint8, device=device)

    @property
    def chances(self) -> int:
        """Random numbers that a map takes: for the rater, and for each swap."""
        return 1 + len(self.swaps.classes)

    def fresh(self, count: int) -> Tensor:
        """Random numbers (count, chances) for `count` items, drawn on the device."""
        return torch.rand(count, self.chances, device=self._same.device)

    def fixed(self, names: Sequence[str]) -> Tensor:
        """Numbers (N, chances) that depend on the name of each item alone."""
        size = 4 * self.chances
        hashed = (hashlib.shake_256(name.encode()).digest(size) for name in names)
        whole = np.frombuffer(b"".join(hashed), "<u4").reshape(-1, self.chances)
        return torch.from_numpy(whole / 2.0**32).float()

    def take(self, maps: Tensor, rows: Tensor, chance: Tensor) -> Tensor:
        """(B, *space): of the items `rows` of `maps` (N, R, *space), one rater each."""
        raters = maps.shape[1]
        rater = (chance[:, 0] * raters).long().clamp(max=raters - 1)
        taken = maps.flatten(0, 1).index_select(0, rows * raters + rater)
        return self._swapped(taken, chance[:, 1:]) if self.swaps.classes else taken

    def references(self, maps: NDArray[Any], name: str) -> NDArray[Any]:
        """What predictions of the item `name`, which has `maps` (R, *space), keep."""
        if not self.swaps.classes or len(maps) > 1:
            return maps
        names = [name, *(f"{name} {number}" for number in range(1, _REFERENCES))]
        there = torch.from_numpy(maps[None].copy()).to(self._same.device)
        rows = torch.zeros(_REFERENCES, dtype=torch.int64, device=there.device)
        chance = self.fixed(names).to(there.device)
        drawn: NDArray[Any] = self.take(there, rows, chance).cpu().numpy()
        return drawn

    def _swapped(self, taken: Tensor, chance: Tensor) -> Tensor:
        new = torch.where(chance < self.swaps.share, self._second, self._first)
        # What each of the labels becomes, for each item.
        table = self._same.repeat(len(taken), 1)
        table.index_copy_(1, self._places, new.repeat(1, 2))
        flat = taken.flatten(1).long()
        return table.gather(1, flat).view(taken.shape)


def _check(swaps: Swaps) -> None:
    labels = [*swaps.classes, *swaps.classes.values()]
    unique = len(set(labels)) == len(labels)
    if not unique or not all(0 <= label < _LABELS for label in labels):
        raise TrainingError(
            "classes and their second labels must be different labels from 0 to 255,"
            f" got {dict(swaps.classes)}"
        )
