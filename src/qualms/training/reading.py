"""Reading items on the host, some batches ahead of the step that needs them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qualms.datasets import Split
from qualms.training.patches import CutItems, Cutter, PatchPlace

_AHEAD = 4
"""Batches read before they are needed."""


class RawItems(NamedTuple):
    """Items as stored: images (B, *space, channels), targets (B,) or (B, R, *space).

    What a step gets has label maps (B, *space), of one rater for each item.
    """

    image: Tensor
    target: Tensor


Read = Callable[[], RawItems]
"""Reads the items of a batch."""


def ahead(reads: Iterable[Read], *, threads: int, pin: bool) -> Iterator[RawItems]:
    """What each of `reads` gives, in order; several threads read ahead."""
    waiting: deque[Future[RawItems]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="items")
    try:
        for read in reads:
            waiting.append(pool.submit(_pinned if pin else _called, read))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def whole_items(split: Split, parts: Iterable[Tensor]) -> Iterator[Read]:
    """The rows of each part."""
    return (partial(whole_rows, split, rows.numpy()) for rows in parts)


def drawn_patches(cutter: Cutter, parts: Iterable[Tensor], seed: int) -> Iterator[Read]:
    """A random patch of each row of each part; `seed` is that of all parts."""
    for number, rows in enumerate(parts):
        yield partial(_raw, partial(cutter.draw, rows.tolist(), (seed, number)))


def tiled_items(
    cutter: Cutter,
    parts: Sequence[Sequence[PatchPlace]],
    shares: Sequence[NDArray[Any]],
) -> Iterator[Read]:
    """The patches of each part, with labels of the raters that `shares` say."""
    for tiles, share in zip(parts, shares, strict=True):
        yield partial(_raw, partial(cutter.cut, tiles, share))


def _raw(cut: Callable[[], CutItems]) -> RawItems:
    image, target = cut()
    return RawItems(torch.from_numpy(image), torch.from_numpy(target))


def _called(read: Read) -> RawItems:
    return read()


def _pinned(read: Read) -> RawItems:
    return RawItems(*(part.pin_memory() for part in read()))


def whole_rows(split: Split, rows: NDArray[np.int64]) -> RawItems:
    """A copy of some rows: tensors must not share the pages of a mapped file."""
    image, target = split.image.take(rows, axis=0), split.target.take(rows, axis=0)
    return RawItems(torch.from_numpy(image), torch.from_numpy(_target(target)))


def _target(target: NDArray[Any]) -> NDArray[Any]:
    if target.dtype.kind == "f":
        return target.astype(np.float32, copy=False)
    if target.ndim > 1 and target.dtype == np.uint8:
        return target  # label maps stay small until a step widens them
    return target.astype(np.int64, copy=False)
