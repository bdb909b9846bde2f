"""Splits whose items are taken as tensors: on the device if they fit, else read ahead.

A split that fits is copied to the device once, and a step takes its items by index. A
split that does not fit is read from its memory-mapped file by a few threads, into
pinned memory, ahead of the step. Encoded pictures are decoded on the way, once or in
every epoch, by as many threads as there are cores. A step sees the same bits either
way, whatever the number of threads. Of label maps, which several raters may have made,
it sees one for each item (`_raters.py`). Large items are cut into patches while they
are read (`_patches.py`).
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.datasets import Dataset, Split, is_ragged
from qualms.spec import Task, parse_corrupted, parse_split
from qualms.training._error import TrainingError
from qualms.training._join_splits import join_splits
from qualms.training._patches import CutItems, Cutter, PatchRule
from qualms.training._raters import NO_SWAPS, RaterDraw, Swaps

_SHARE = 0.3
"""Share of the free memory that a split may take."""
_THREADS = 2
_AHEAD = 4
"""Batches read before they are needed."""
_AT_ONCE = 512
"""Items copied to another device at once; the host never holds a complete split."""


class RawItems(NamedTuple):
    """Items as stored: images (B, *space, channels), targets (B,) or (B, R, *space).

    Items for a step have label maps (B, *space), of one rater for each item.
    """

    image: Tensor
    target: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSplit:
    """A split whose items can be taken as tensors on a device."""

    split: Split
    device: torch.device
    resident: RawItems | None
    """All items on the device; None if they do not fit."""
    draw: RaterDraw | None = None
    """Draws one of an item's label maps; None for targets of other kinds."""
    threads: int = _THREADS
    cutter: Cutter | None = None
    """Cuts patches of the items; None if items are taken uncut."""

    @property
    def one_by_one(self) -> bool:
        """True if items are predicted one by one: they are large or of any shape."""
        return self.cutter is not None or is_ragged(self.split.image)

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, rows: Tensor, size: int) -> Iterator[RawItems]:
        """Yield the items `rows`, on the device, `size` at a time; or patches of them.

        Label maps are those of one rater, the same one every time. Patches lie side by
        side and cover the items.
        """
        if self.cutter is not None:
            yield from self._tiles(self.cutter, rows, size)
            return
        parts = torch.split(rows, size)
        if self.resident is None:
            for part, raw in zip(parts, self._read_items(parts), strict=True):
                items = self._to_device(raw)
                every = torch.arange(len(part), device=self.device)
                target = self._target(items.target, every, part)
                yield RawItems(items.image, target)
            return
        for part in parts:
            index = part.to(self.device)
            image = self.resident.image.index_select(0, index)
            yield RawItems(image, self._target(self.resident.target, index, part))

    def read_for_steps(self, parts: Sequence[Tensor]) -> Iterator[RawItems]:
        """Yield the rows of each part, read ahead on the host; or a patch of each."""
        if self.cutter is None:
            return self._read_items(parts)
        # An epoch is seeded before it begins, so this is a number of the epoch.
        seed = int(torch.randint(2**62, ()))
        reads = (
            partial(_patches, partial(self.cutter.draw, rows.tolist(), (seed, number)))
            for number, rows in enumerate(parts)
        )
        return self._read_ahead(reads)

    def uncut_image(self, row: int) -> RawItems:
        """Return the image (1, *space, channels) of an item on the device, untargeted.

        The image has its own shape.
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
        reads = (
            partial(_patches, partial(cutter.cut, part, share))
            for part, share in zip(parts, shares, strict=True)
        )
        for chance, raw in zip(chances, self._read_ahead(reads), strict=True):
            patches = self._to_device(raw)
            every = torch.arange(len(chance), device=self.device)
            target = self.draw.take(patches.target, every, chance.to(self.device))
            yield RawItems(patches.image, target)

    def _read_items(self, parts: Iterable[Tensor]) -> Iterator[RawItems]:
        return self._read_ahead(
            partial(_read_rows, self.split, rows.numpy()) for rows in parts
        )

    def _read_ahead(
        self, reads: Iterable[Callable[[], RawItems]]
    ) -> Iterator[RawItems]:
        return read_ahead(reads, threads=self.threads, pin=self.device.type == "cuda")

    def _to_device(self, raw: RawItems) -> RawItems:
        return RawItems(*(part.to(self.device, non_blocking=True) for part in raw))

    def _target(self, target: Tensor, index: Tensor, rows: Tensor) -> Tensor:
        """Return the targets at `index` of `target`, which are the items `rows`."""
        if self.draw is None:
            return target.index_select(0, index)
        names = [str(name) for name in self.split.item[rows.numpy()]]
        chance = self.draw.fixed(names).to(self.device)
        return self.draw.take(target, index, chance)


def load_split(
    split: Split,
    device: torch.device,
    *,
    fits: bool | None = None,
    swaps: Swaps = NO_SWAPS,
    patch: PatchRule | None = None,
) -> LoadedSplit:
    """Load `split` on `device` if it fits (or `fits` is true), else read it ahead.

    With `patch` it is read in patches.
    """
    maps = split.target.ndim > 1
    if maps and split.target.ndim != split.image.ndim:
        raise TrainingError(
            "label maps must have the axes (items, raters, *space), got the shape"
            f" {split.target.shape} for images {split.image.shape}; one rater is an"
            " axis of length 1"
        )
    if patch is not None or is_ragged(split.image):
        fits = False
    if fits is None:
        # Encoded pictures count with the size that they have once decoded.
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

    A split of a further dataset is named as in a spec, "birds:test". `patches` gives
    the rule by which the items of a task are cut.
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
        """Return the dataset that `split` belongs to."""
        name, _ = parse_split(split)
        if name not in self._datasets:
            raise TrainingError(
                f"the run predicts {split!r}, and there is no dataset {name!r}; hand it"
                " over together with the dataset that the run trains on"
            )
        return self._datasets[name]

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the further datasets."""
        return tuple(name for name in self._datasets if name)

    def has(self, split: str) -> bool:
        """Return whether there is a split of that name."""
        name, part = parse_split(split)
        dataset = self._datasets.get(name)
        return dataset is not None and part in (*dataset.splits, *dataset.subsets)

    def stored(self, split: str) -> Split:
        """Return `split` as its dataset stores it, or corrupted as its name says."""
        dataset, name = self.dataset_of(split), parse_split(split)[1]
        corrupted = parse_corrupted(name)
        if corrupted is None:
            return dataset.split(name)
        of, corruption, severity = corrupted
        return dataset.split(of).corrupted(corruption, severity)

    def __getitem__(self, name: str) -> LoadedSplit:
        return self.joined((name,))

    def joined(self, names: tuple[str, ...]) -> LoadedSplit:
        """Return the items of several splits, one split after another."""
        if names not in self._loaded:
            parts = [self.stored(name) for name in names]
            split = parts[0] if len(parts) == 1 else join_splits(names, parts)
            dataset = self.dataset_of(names[0])
            swaps = Swaps(dataset.swaps, dataset.swap_share)
            patch = self._patches(dataset.task)
            self._forget_corrupted()
            self._loaded[names] = load_split(
                split, self._device, swaps=swaps, patch=patch
            )
        return self._loaded[names]

    def _forget_corrupted(self) -> None:
        """Forget splits that are read once: dozens of them do not fit into memory."""
        for names in [
            names for names in self._loaded if any(map(_is_read_once, names))
        ]:
            del self._loaded[names]


def _is_read_once(split: str) -> bool:
    return parse_corrupted(split) is not None


def read_ahead(
    reads: Iterable[Callable[[], RawItems]], *, threads: int, pin: bool
) -> Iterator[RawItems]:
    """Yield what each of `reads` returns, in order; several threads read ahead."""
    waiting: deque[Future[RawItems]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="items")
    try:
        for read in reads:
            waiting.append(pool.submit(partial(_pinned, read) if pin else read))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _pinned(read: Callable[[], RawItems]) -> RawItems:
    return RawItems(*(part.pin_memory() for part in read()))


def _read_rows(split: Split, rows: NDArray[np.int64]) -> RawItems:
    """Return a copy of `rows`: tensors must not share the pages of a mapped file."""
    image, target = split.image.take(rows, axis=0), split.target.take(rows, axis=0)
    return RawItems(torch.from_numpy(image), torch.from_numpy(_narrowed(target)))


def _narrowed(target: NDArray[Any]) -> NDArray[Any]:
    if target.dtype.kind == "f":
        return target.astype(np.float32, copy=False)
    if target.ndim > 1 and target.dtype == np.uint8:
        return target  # label maps stay small until a step widens them
    return target.astype(np.int64, copy=False)


def _patches(cut: Callable[[], CutItems]) -> RawItems:
    image, target = cut()
    return RawItems(torch.from_numpy(image), torch.from_numpy(target))


def _resident(split: Split, device: torch.device) -> RawItems:
    """Return all of `split` on `device`."""
    rows = np.arange(len(split))
    first = _read_rows(split, rows[:1])
    items = RawItems(*(empty_like(part, len(split), device) for part in first))
    for start in range(0, len(split), _AT_ONCE):
        some = _read_rows(split, rows[start : start + _AT_ONCE])
        for buffer, part in zip(items, some, strict=True):
            buffer[start : start + len(part)].copy_(part)
    return items


def empty_like(item: Tensor, count: int, device: torch.device) -> Tensor:
    """Return an uninitialised tensor on `device` for `count` such items."""
    return torch.empty(count, *item.shape[1:], dtype=item.dtype, device=device)


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
