"""Items on their way to a step: on the device where they fit, else read ahead.

A split that fits is copied to the device once; a step then takes its items by index.
One that does not is read from its memory-mapped file by a few threads, into pinned
memory, ahead of the step. Pictures that are stored encoded are decoded on the way, once
or in every epoch, by as many threads as there are cores. Neither way, nor the number of
threads, changes a bit of what a step sees.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.datasets import Dataset, Split

_SHARE = 0.3
"""Of the free memory that a split may take."""
_THREADS = 2
_AHEAD = 4
"""Batches read before they are needed."""
_AT_ONCE = 512
"""Items on their way to another device, so that no whole split lies on the host."""


class RawItems(NamedTuple):
    """Items as stored: images (B, *space, channels), targets (B,) or (B, *space)."""

    image: Tensor
    target: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSplit:
    """A split, ready to be taken from."""

    split: Split
    device: torch.device
    resident: RawItems | None
    """All of it on the device; None where it does not fit."""
    threads: int = _THREADS

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, rows: Tensor, size: int) -> Iterator[RawItems]:
        """The items `rows`, on the device, `size` at a time."""
        parts = torch.split(rows, size)
        if self.resident is None:
            for raw in _ahead(self, parts):
                yield RawItems(
                    *(part.to(self.device, non_blocking=True) for part in raw)
                )
            return
        for part in parts:
            yield _pick(self.resident, part.to(self.device))


def load_split(
    split: Split, device: torch.device, *, fits: bool | None = None
) -> LoadedSplit:
    """`split` on `device` if it fits there (or `fits` says so), else to be read."""
    if fits is None:
        # Encoded pictures count as what they are once they are decoded.
        fits = split.image.nbytes <= _SHARE * _free_bytes(device)
    resident = _resident(split, device) if fits else None
    return LoadedSplit(split=split, device=device, resident=resident)


class Splits:
    """The splits of a dataset on one device, each loaded once, when first asked for."""

    def __init__(self, dataset: Dataset, device: torch.device) -> None:
        self.dataset = dataset
        self._device = device
        self._loaded: dict[str, LoadedSplit] = {}

    def __getitem__(self, name: str) -> LoadedSplit:
        if name not in self._loaded:
            self._loaded[name] = load_split(self.dataset.split(name), self._device)
        return self._loaded[name]


class Feed(Protocol):
    """What a training step takes its items from."""

    def begin(self, order: Tensor) -> None:
        """Start an epoch over the rows `order`."""

    def advance(self) -> None:
        """Before each step, outside of what is recorded."""

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        """`count` items of step `cursor` from its item `first` on, on the device."""


def feed(items: LoadedSplit, *, rows: int, stride: int) -> Feed:
    """A feed of `stride` items per step out of `rows` per epoch."""
    if items.resident is None:
        return _Streamed(items, stride)
    return _Resident(items.resident, rows, stride)


class _Resident:
    """The order of an epoch lies on the device, and so does the way through it."""

    def __init__(self, raw: RawItems, rows: int, stride: int) -> None:
        device = raw.target.device
        self._raw = raw
        self._stride = stride
        self._order = torch.empty(rows, dtype=torch.int64, device=device)
        self._offset = torch.arange(stride, device=device)

    def begin(self, order: Tensor) -> None:
        self._order.copy_(order)

    def advance(self) -> None:
        pass

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:
        place = cursor * self._stride + self._offset[first : first + count]
        return _pick(self._raw, self._order.index_select(0, place))


class _Streamed:
    """Batches are read ahead and copied to buffers that every step reads."""

    def __init__(self, items: LoadedSplit, stride: int) -> None:
        first = _host(items.split, np.arange(1))
        self._items = items
        self._stride = stride
        self._buffer = RawItems(
            *(_buffer(part, stride, items.device) for part in first)
        )
        self._coming: Iterator[RawItems] = iter(())

    def begin(self, order: Tensor) -> None:
        self._coming = _ahead(self._items, torch.split(order, self._stride))

    def advance(self) -> None:
        for buffer, part in zip(self._buffer, next(self._coming), strict=True):
            buffer[: len(part)].copy_(part, non_blocking=True)

    def take(self, cursor: Tensor, first: int, count: int) -> RawItems:  # noqa: ARG002
        return RawItems(*(part[first : first + count] for part in self._buffer))


def _buffer(like: Tensor, count: int, device: torch.device) -> Tensor:
    return torch.empty(count, *like.shape[1:], dtype=like.dtype, device=device)


def _pick(raw: RawItems, rows: Tensor) -> RawItems:
    return RawItems(raw.image.index_select(0, rows), raw.target.index_select(0, rows))


def _ahead(items: LoadedSplit, parts: Iterable[Tensor]) -> Iterator[RawItems]:
    """Each part read by one of several threads, handed out in order."""
    waiting: deque[Future[RawItems]] = deque()
    pool = ThreadPoolExecutor(items.threads, thread_name_prefix="items")
    try:
        for rows in parts:
            waiting.append(pool.submit(_read, items, rows.numpy()))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _read(items: LoadedSplit, rows: NDArray[np.int64]) -> RawItems:
    raw = _host(items.split, rows)
    if items.device.type != "cuda":
        return raw
    return RawItems(*(part.pin_memory() for part in raw))


def _resident(split: Split, device: torch.device) -> RawItems:
    """All of `split` on `device`."""
    rows = np.arange(len(split))
    like = _host(split, rows[:1])
    whole = RawItems(*(_buffer(part, len(split), device) for part in like))
    for start in range(0, len(split), _AT_ONCE):
        some = _host(split, rows[start : start + _AT_ONCE])
        for buffer, part in zip(whole, some, strict=True):
            buffer[start : start + len(part)].copy_(part)
    return whole


def _host(split: Split, rows: NDArray[np.int64]) -> RawItems:
    """A copy of some rows: tensors must not share the pages of a mapped file."""
    image, target = split.image.take(rows, axis=0), split.target.take(rows, axis=0)
    return RawItems(torch.from_numpy(image), torch.from_numpy(_target(target)))


def _target(target: NDArray[Any]) -> NDArray[Any]:
    if target.dtype.kind == "f":
        return target.astype(np.float32, copy=False)
    if target.ndim > 1 and target.dtype == np.uint8:
        return target  # label maps stay small until a step widens them
    return target.astype(np.int64, copy=False)


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
