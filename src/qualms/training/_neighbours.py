"""Exact nearest neighbours by cosine, on the device of the embeddings.

The twin of `qualms.scores.nearest_neighbour` and `retrieval_hits`, for validation
between epochs. A matrix product, in TF32 on a GPU and float32 elsewhere, tile by tile
and each pair of items once, gives the largest similarity of each item to every chunk of
the others. Only chunks that come as close to the largest of all as the product can err
are searched again, and in float64 if several items are that close.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

_TIE = 1e-12
"""Similarities this close are equal, as in `qualms.scores`."""
_TILE = {"cuda": 8192, "cpu": 512}
_PAIRS = {"cuda": 1 << 26, "cpu": 1 << 22}
"""Most numbers of embeddings that are compared in float64 at once."""
_ROUGH = {"cuda": 1 << 28, "cpu": 1 << 25}
"""Most numbers of embeddings that are multiplied again at once."""
_CHUNK = 128
"""Least number of items that are searched together."""
_CHUNKS = 512
"""Number of chunks from which chunks grow: similarities are kept for each of them."""
_MULTIPLE = 256
"""Sides of all tiles are multiples of it: GPUs multiply odd sides at half the speed."""
_BLOCK = 128
"""Items whose similarities to a chunk are computed together."""
_FEW = 64
"""Most chunks and candidates of an item that are compared one by one."""
_TF32 = 0x1000, ~0x1FFF
"""Half of the last digit that TF32 keeps, and the digits that it keeps."""


class Retrieval(NamedTuple):
    """The nearest other item of each item, (N,)."""

    nearest: Tensor
    """Index of the nearest item; the lowest of several that are equally near."""
    hits: Tensor
    """Share of the nearest items that have the same target, in float64."""


class _Units(NamedTuple):
    embedding: Tensor
    target: Tensor
    padded: Tensor
    """Unit vectors as the product reads them, with rows of 0 at the end that fill tiles
    and chunks."""
    chunk: int
    """Items of a chunk."""
    margin: float
    """Least difference of similarities that the product ranks correctly."""


class _Pairs(NamedTuple):
    item: Tensor
    candidate: Tensor
    """An item that may be the nearest to `item`."""


@torch.no_grad()
def find_nearest(
    embedding: Tensor, target: Tensor, *, tile: int | None = None
) -> Retrieval:
    """Return the nearest neighbours in `embedding` (N, D), N at least 2.

    They need memory for a float32 copy of the embedding and some tiles.
    """
    if len(embedding) < 2:
        raise ValueError(f"there must be at least two items, got {len(embedding)}")
    kind = embedding.device.type
    with torch.autocast(kind, enabled=False), _fast(kind):
        units = _units(embedding, target)
        tops = _screened(units, tile or _TILE.get(kind, 512))
        least = tops.amax(0) - units.margin
        near = tops >= least
        few = near.sum(0) <= _FEW
        pairs = _candidates(units, near & few, least)
        number = torch.bincount(pairs.item, minlength=len(embedding))
        few &= number <= _FEW
        retrieval = _compared(units, pairs, number, few)
        _write(retrieval, (~few).nonzero()[:, 0], partial(_among_many, units))
    return retrieval


@contextmanager
def _fast(kind: str) -> Iterator[None]:
    """Multiply float32 by TF32 while the context is open, on devices that have it."""
    if kind != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _units(embedding: Tensor, target: Tensor) -> _Units:
    count, width = embedding.shape
    cuda = embedding.device.type == "cuda"
    chunk = _CHUNK
    while count > chunk * _CHUNKS:
        chunk *= 2
    multiple = math.lcm(chunk, _MULTIPLE)
    rows = -(-count // multiple) * multiple
    padded = embedding.new_zeros(rows, width, dtype=torch.float32)
    error = torch.zeros((), dtype=torch.float64, device=embedding.device)
    step = max(1, _PAIRS.get(embedding.device.type, 1 << 22) // width)
    for start in range(0, count, step):
        exact = _unit(embedding[start : start + step])
        part = padded[start : start + len(exact)]
        part.copy_(exact)
        if cuda:
            half, digits = _TF32
            part.view(torch.int32).add_(half).bitwise_and_(digits)
        distance = torch.linalg.vector_norm(exact - part, dim=1)
        error = torch.maximum(error, distance.max())
    # The rounding error of unit vectors bounds that of their product (Cauchy and
    # Schwarz). The sum of the product errs by less than D + 8 digits; tensor cores
    # truncate where others round. Two similarities are compared.
    digit = 2.0**-23 if cuda else 2.0**-24
    off = float(error)
    margin = 2 * (2 * off + off * off + (width + 8) * digit) + _TIE
    return _Units(embedding, target, padded, chunk, margin)


def _unit(rows: Tensor) -> Tensor:
    """Return `rows` (K, D) at length one, in float64; a zero row stays zero."""
    units = rows.double()
    # First by the largest entry, so that no square overflows or vanishes.
    for length in (_largest, _length):
        size = length(units)
        units = units / torch.where(size > 0, size, 1.0)
    return units


def _largest(rows: Tensor) -> Tensor:
    return rows.abs().amax(1, keepdim=True)


def _length(rows: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return length


def _screened(units: _Units, tile: int) -> Tensor:
    """Return the largest similarity of each item to others of a chunk, (chunks, N)."""
    count, padded, chunk = len(units.embedding), units.padded, units.chunk
    tops = padded.new_empty(len(padded) // chunk, len(padded))
    multiple = math.lcm(chunk, _MULTIPLE)
    tile = min(-(-tile // multiple) * multiple, len(padded))
    buffer = padded.new_empty(tile * tile)
    for first in range(0, count, tile):
        rows = padded[first : first + tile]
        for other in range(first, count, tile):
            columns = padded[other : other + tile]
            size = len(rows), len(columns)
            similar = buffer[: size[0] * size[1]].view(size)
            torch.mm(rows, columns.T, out=similar)
            similar[:, max(0, count - other) :] = -torch.inf
            if first == other:
                similar.fill_diagonal_(-torch.inf)
            _keep_tops(tops, other, first, similar, chunk)
            if first != other:
                _keep_tops(tops, first, other, similar.T, chunk)
    return tops[:, :count]


def _keep_tops(
    tops: Tensor, first: int, items: int, similar: Tensor, chunk: int
) -> None:
    """Write the largest of `similar` (items, others) by chunk of the others to `tops`.

    Items begin at `items`, the others at `first`.
    """
    rows, columns = similar.shape
    parts = similar.view(rows, columns // chunk, chunk)
    out = tops[first // chunk :, items:][: columns // chunk, :rows]
    torch.amax(parts, 2, out=out.T)


def _candidates(units: _Units, near: Tensor, least: Tensor) -> _Pairs:
    """Return pairs whose similarity is `least` (N,) or more, in chunks that are `near`.

    `near` (chunks, N) says which chunks to search for each item.
    """
    slots, chunks = _blocks(near)
    width = units.padded.shape[1]
    chunked = units.padded.view(-1, units.chunk, width)
    inside = torch.arange(units.chunk, device=near.device)
    most = _ROUGH.get(near.device.type, 1 << 25) // (width * (_BLOCK + units.chunk))
    pairs = []
    for items, chunk in zip(
        torch.split(slots, max(1, most)), torch.split(chunks, max(1, most)), strict=True
    ):
        rows = items.clamp(min=0)
        rough = torch.bmm(units.padded[rows], chunked[chunk].mT)
        other = (chunk[:, None] * units.chunk + inside)[:, None]
        close = rough >= least[rows][:, :, None]
        close &= (items >= 0)[:, :, None] & (other != items[:, :, None])
        block, row, column = (close & (other < len(least))).nonzero(as_tuple=True)
        pairs.append((items[block, row], other[block, 0, column]))
    return _Pairs(*(torch.cat(part) for part in zip(*pairs, strict=True)))


def _blocks(near: Tensor) -> tuple[Tensor, Tensor]:
    """Return the items of each chunk in blocks (B, _BLOCK), and the chunks (B,).

    Blocks are filled up with -1.
    """
    chunk, item = near.nonzero(as_tuple=True)
    number = near.sum(1)
    blocks = -(-number // _BLOCK)
    before = number.cumsum(0) - number
    order = torch.arange(len(item), device=near.device) - before[chunk]
    block = (blocks.cumsum(0) - blocks)[chunk] + order // _BLOCK
    total = int(blocks.sum())
    slots = item.new_full((total, _BLOCK), -1)
    slots[block, order % _BLOCK] = item
    chunks = torch.arange(len(near), device=near.device)
    return slots, chunks.repeat_interleave(blocks, output_size=total)


def _compared(units: _Units, pairs: _Pairs, number: Tensor, few: Tensor) -> Retrieval:
    """Return the nearest candidates of items with `few`.

    An item has `number` (N,) candidates.
    """
    item, candidate = pairs
    alone = number[item] == 1
    nearest = torch.zeros_like(number)
    nearest[item[alone]] = candidate[alone]
    hits = (units.target[nearest] == units.target).double()
    retrieval = Retrieval(nearest, hits)
    several = few[item] & ~alone
    row, candidate = item[several], candidate[several]
    items, index = torch.unique(row, return_inverse=True)
    _write(retrieval, items, lambda some: _among_few(units, some, index, candidate))
    return retrieval


def _write(
    retrieval: Retrieval, items: Tensor, search: Callable[[Tensor], Retrieval]
) -> None:
    """Write the neighbours that `search` finds for `items` to `retrieval`."""
    if len(items):
        for values, part in zip(retrieval, search(items), strict=True):
            values[items] = part


def _among_few(
    units: _Units, items: Tensor, index: Tensor, candidate: Tensor
) -> Retrieval:
    """Return the nearest to each of `items`, by all pairs with a candidate in float64.

    `index` says which of `items` a candidate belongs to.
    """
    pairs = max(1, _PAIRS.get(items.device.type, 1 << 22) // units.embedding.shape[1])
    exact = torch.cat(
        [
            (_unit(units.embedding[items[r]]) * _unit(units.embedding[c])).sum(1)
            for r, c in zip(
                torch.split(index, pairs), torch.split(candidate, pairs), strict=True
            )
        ]
    )
    best = exact.new_full((len(items),), -torch.inf)
    best.scatter_reduce_(0, index, exact, "amax")
    tied = exact >= best[index] - _TIE
    index, candidate = index[tied], candidate[tied]
    same = (units.target[candidate] == units.target[items[index]]).double()
    ones = torch.ones_like(same)
    right, among = (
        torch.zeros_like(best).index_add_(0, index, w) for w in (same, ones)
    )
    nearest = torch.full_like(items, len(units.embedding))
    nearest.scatter_reduce_(0, index, candidate, "amin")
    return Retrieval(nearest, right / among)


def _among_many(units: _Units, items: Tensor) -> Retrieval:
    """Return the same by a product in float64, for items with many candidates."""
    retrievals = []
    count, width = units.embedding.shape
    most = _PAIRS.get(items.device.type, 1 << 22)
    columns = torch.split(units.embedding, max(1, most // width))
    for some in torch.split(items, max(1, most // count)):
        rows = _unit(units.embedding[some])
        exact = torch.cat([rows @ _unit(part).T for part in columns], 1)
        exact[torch.arange(len(some), device=some.device), some] = -torch.inf
        tied = exact >= exact.amax(1, keepdim=True) - _TIE
        right = tied & (units.target == units.target[some, None])
        nearest = tied.to(torch.uint8).argmax(1)
        retrievals.append(Retrieval(nearest, right.sum(1).double() / tied.sum(1)))
    nearest, hits = (torch.cat(parts) for parts in zip(*retrievals, strict=True))
    return Retrieval(nearest, hits)
