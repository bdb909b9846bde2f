"""Items on their way to a step: on the device where they fit, else read ahead.

A split that fits is copied to the device once, and a step takes its items by index. A
split that does not fit is read from its memory-mapped file by a few threads, into
pinned memory, ahead of the step. Encoded pictures are decoded on the way, once or in
every epoch, by as many threads as there are cores. A step sees the same bits either
way, whatever the number of threads. Of label maps, which several raters may have made,
it sees one for each item (`raters.py`). Large items are cut into patches while they are
read (`patches.py`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from qualms.datasets import Dataset, Ragged, Split
from qualms.spec import Task, parse_split
from qualms.training._error import TrainingError
from qualms.training.joined import join_splits
from qualms.training.patches import Cutter, PatchRule
from qualms.training.raters import NO_SWAPS, RaterDraw, Swaps
from qualms.training.reading import (
    RawItems,
    Read,
    ahead,
    drawn_patches,
    tiled_items,
    whole_items,
    whole_rows,
)

_SHARE = 0.3
"""The share of the free memory that a split may take."""
_THREADS = 2
_AT_ONCE = 512
"""Items copied to another device at once; the host never holds a whole split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSplit:
    """A split whose items can be taken as tensors on a device."""

    split: Split
    device: torch.device
    resident: RawItems | None
    """All of it on the device; None where it does not fit."""
    draw: RaterDraw | None = None
    """How one of an item's label maps is drawn; None for targets of other kinds."""
    threads: int = _THREADS
    cutter: Cutter | None = None
    """Cuts patches of the items; None where whole items are taken."""

    @property
    def apart(self) -> bool:
        """Whether items are predicted one by one: those of any shape, or large ones."""
        return self.cutter is not None or isinstance(self.split.image, Ragged)

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, rows: Tensor, size: int) -> Iterator[RawItems]:
        """The items `rows`, on the device, `size` at a time; or patches of them.

        Label maps are those of one rater, the same one every time. Patches lie side by
        side and cover the items.
        """
        if self.cutter is not None:
            yield from self._tiles(self.cutter, rows, size)
            return
        parts = torch.split(rows, size)
        if self.resident is None:
            coming = self._ahead(whole_items(self.split, parts))
            for part, raw in zip(parts, coming, strict=True):
                here = self._here(raw)
                every = torch.arange(len(part), device=self.device)
                target = self._target(here.target, every, part)
                yield RawItems(here.image, target)
            return
        for part in parts:
            there = part.to(self.device)
            image = self.resident.image.index_select(0, there)
            yield RawItems(image, self._target(self.resident.target, there, part))

    def coming(self, parts: Sequence[Tensor]) -> Iterator[RawItems]:
        """The rows of each part for a step, read ahead; or a random patch of each."""
        if self.cutter is None:
            return self._ahead(whole_items(self.split, parts))
        # An epoch is seeded before it begins, so this is a number of the epoch.
        seed = int(torch.randint(2**62, ()))
        return self._ahead(drawn_patches(self.cutter, parts, seed))

    def whole(self, row: int) -> RawItems:
        """The image (1, *space, channels) of one item, on the device, with no target.

        It has its own shape.
        """
        image = torch.from_numpy(np.array(self.split.image[row])[None])
        return RawItems(image.to(self.device), torch.zeros(1, device=self.device))

    def _tiles(self, cutter: Cutter, rows: Tensor, size: int) -> Iterator[RawItems]:
        assert self.draw is not None
        tiles = [tile for row in rows.tolist() for tile in cutter.tiles(row)]
        parts = [tiles[i : i + size] for i in range(0, len(tiles), size)]
        chances = [
            self.draw.fixed([str(self.split.item[tile.row]) for tile in part])
            for part in parts
        ]
        shares = [chance[:, 0].numpy() for chance in chances]
        reads = tiled_items(cutter, parts, shares)
        for chance, raw in zip(chances, self._ahead(reads), strict=True):
            here = self._here(raw)
            every = torch.arange(len(chance), device=self.device)
            target = self.draw.take(here.target, every, chance.to(self.device))
            yield RawItems(here.image, target)

    def _ahead(self, reads: Iterable[Read]) -> Iterator[RawItems]:
        return ahead(reads, threads=self.threads, pin=self.device.type == "cuda")

    def _here(self, raw: RawItems) -> RawItems:
        return RawItems(*(kept.to(self.device, non_blocking=True) for kept in raw))

    def _target(self, target: Tensor, places: Tensor, rows: Tensor) -> Tensor:
        """What `target` has at `places`, which are the items `rows`."""
        if self.draw is None:
            return target.index_select(0, places)
        names = [str(name) for name in self.split.item[rows.numpy()]]
        chance = self.draw.fixed(names).to(self.device)
        return self.draw.take(target, places, chance)


def load_split(
    split: Split,
    device: torch.device,
    *,
    fits: bool | None = None,
    swaps: Swaps = NO_SWAPS,
    patch: PatchRule | None = None,
) -> LoadedSplit:
    """`split` on `device` if it fits there (or `fits` says so), else read in parts.

    With `patch` it is read in patches.
    """
    maps = split.target.ndim > 1
    if maps and split.target.ndim != split.image.ndim:
        raise TrainingError(
            "label maps must have the axes (items, raters, *space), got the shape"
            f" {split.target.shape} for images {split.image.shape}; one rater is an"
            " axis of length 1"
        )
    if patch is not None or isinstance(split.image, Ragged):
        fits = False
    if fits is None:
        # Encoded pictures count as what they are once they are decoded.
        size = split.image.nbytes + (split.target.nbytes if maps else 0)
        fits = size <= _SHARE * _free_bytes(device)
    return LoadedSplit(
        split=split,
        device=device,
        resident=_resident(split, device) if fits else None,
        draw=RaterDraw(swaps, device) if maps else None,
        cutter=None if patch is None else Cutter(split, patch),
    )


def _no_patches(_task: Task) -> None:
    return None


class Splits:
    """The splits of some datasets on one device, each loaded when first asked for.

    A split of a further dataset is named as in a spec, "birds:test". `patches` says how
    the items of a task are cut.
    """

    def __init__(
        self,
        datasets: Mapping[str, Dataset],
        device: torch.device,
        patches: Callable[[Task], PatchRule | None] = _no_patches,
    ) -> None:
        self.dataset = datasets[""]
        """The dataset that runs train on."""
        self._datasets = datasets
        self._device = device
        self._patches = patches
        self._loaded: dict[tuple[str, ...], LoadedSplit] = {}

    def dataset_of(self, split: str) -> Dataset:
        """The dataset that `split` belongs to."""
        name, _ = parse_split(split)
        if name not in self._datasets:
            raise TrainingError(
                f"the run predicts {split!r}, and there is no dataset {name!r}; hand it"
                " over together with the dataset that the run trains on"
            )
        return self._datasets[name]

    @property
    def further(self) -> tuple[str, ...]:
        """The names of the further datasets."""
        return tuple(name for name in self._datasets if name)

    def has(self, split: str) -> bool:
        """Whether there is a split of that name."""
        name, own = parse_split(split)
        there = self._datasets.get(name)
        return there is not None and own in (*there.splits, *there.subsets)

    def stored(self, split: str) -> Split:
        """`split` as its dataset has it."""
        return self.dataset_of(split).split(parse_split(split)[1])

    def __getitem__(self, name: str) -> LoadedSplit:
        return self.joined((name,))

    def joined(self, names: tuple[str, ...]) -> LoadedSplit:
        """The items of several splits, one split after another."""
        if names not in self._loaded:
            parts = [self.stored(name) for name in names]
            whole = parts[0] if len(parts) == 1 else join_splits(names, parts)
            dataset = self.dataset_of(names[0])
            swaps = Swaps(dataset.swaps, dataset.swap_share)
            patch = self._patches(dataset.task)
            self._loaded[names] = load_split(
                whole, self._device, swaps=swaps, patch=patch
            )
        return self._loaded[names]


class Feed(Protocol):
    """Gives a training step its items."""

    def begin(self, order: Tensor) -> None:
        """Start an epoch over the rows `order`."""

    def advance(self) -> None:
        """Called before each step; not a part of what is recorded."""

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        """`count` items of step `cursor` from its item `first` on, on the device."""


def feed(items: LoadedSplit, *, rows: int, stride: int) -> Feed:
    """A feed of `stride` items per step out of `rows` per epoch."""
    if items.resident is None:
        return _Streamed(items, stride)
    return _Resident(items.resident, items.draw, rows, stride)


class _Resident:
    """All items and the order of an epoch lie on the device."""

    def __init__(
        self, raw: RawItems, draw: RaterDraw | None, rows: int, stride: int
    ) -> None:
        device = raw.target.device
        self._raw = raw
        self._draw = draw
        self._stride = stride
        self._order = torch.empty(rows, dtype=torch.int64, device=device)
        self._offset = torch.arange(stride, device=device)

    def begin(self, order: Tensor) -> None:
        self._order.copy_(order)

    def advance(self) -> None:
        pass

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        place = cursor * self._stride + self._offset[first : first + count]
        rows = self._order.index_select(0, place)
        image = self._raw.image.index_select(0, rows)
        return RawItems(image, _drawn(self._raw.target, rows, self._draw))


class _Streamed:
    """Batches are read ahead and copied to a buffer, which every step reads."""

    def __init__(self, items: LoadedSplit, stride: int) -> None:
        self._items = items
        self._stride = stride
        (first,) = items.coming([torch.arange(1)])
        self._buffer = RawItems(
            *(_buffer(part, stride, items.device) for part in first)
        )
        self._coming: Iterator[RawItems] = iter(())

    def begin(self, order: Tensor) -> None:
        self._coming = self._items.coming(torch.split(order, self._stride))

    def advance(self) -> None:
        for buffer, part in zip(self._buffer, next(self._coming), strict=True):
            buffer[: len(part)].copy_(part, non_blocking=True)

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:  # noqa: ARG002
        image, target = (part[first : first + count] for part in self._buffer)
        if self._items.draw is None:
            return RawItems(image, target)
        rows = torch.arange(count, device=target.device)
        return RawItems(image, _drawn(target, rows, self._items.draw))


def _drawn(target: Tensor, rows: Tensor, draw: RaterDraw | None) -> Tensor:
    """The targets of `rows`; of label maps, those of a rater drawn anew."""
    if draw is None:
        return target.index_select(0, rows)
    return draw.take(target, rows, draw.fresh(len(rows)))


def _buffer(like: Tensor, count: int, device: torch.device) -> Tensor:
    return torch.empty(count, *like.shape[1:], dtype=like.dtype, device=device)


def _resident(split: Split, device: torch.device) -> RawItems:
    """All of `split` on `device`."""
    rows = np.arange(len(split))
    like = whole_rows(split, rows[:1])
    whole = RawItems(*(_buffer(part, len(split), device) for part in like))
    for start in range(0, len(split), _AT_ONCE):
        some = whole_rows(split, rows[start : start + _AT_ONCE])
        for buffer, part in zip(whole, some, strict=True):
            buffer[start : start + len(part)].copy_(part)
    return whole


def _free_bytes(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = (line.split() for line in meminfo.read_text().splitlines())
        return next(
            1024 * float(kb) for name, kb, *_ in lines if name == "MemAvailable:"
        )
    if "SC_AVPHYS_PAGES" in os.sysconf_names:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return 8e9
