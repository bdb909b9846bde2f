"""Nearest neighbours by cosine on the device of the embeddings, exact.

The twin of `qualms.scores.nearest_neighbour` and `retrieval_hits`, for validation
between epochs. A matrix product, in TF32 on a GPU and float32 elsewhere, finds the best
and the second best similarity of each item, tile by tile and each pair of items once.
Where these two are closer than the product can err, all that may be nearest is compared
again in float64.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

_TIE = 1e-12
"""Similarities this close are equal, as in `qualms.scores`."""
_TILE = {"cuda": 8192, "cpu": 512}
_PAIRS = {"cuda": 1 << 26, "cpu": 1 << 22}
"""Most numbers of embeddings that are compared in float64 at once."""
_ROUGH = {"cuda": 1 << 28, "cpu": 1 << 25}
"""Most similarities of items with close neighbours at once."""
_CHUNK = 128
"""Similarities of which the best is found at once."""
_WHOLE = 256
"""Sides of all tiles are multiples of it: GPUs multiply odd sides at half the speed."""
_FEW = 64
"""Candidates of an item, on average, up to which they are compared one by one."""
_TF32 = 0x1000, ~0x1FFF
"""Half of the last digit that TF32 keeps, and the digits that it keeps."""


class Retrieval(NamedTuple):
    """The nearest other item of each, (N,)."""

    nearest: Tensor
    """Its index; of several that are equally near, the lowest."""
    hits: Tensor
    """Share of the nearest items that has the same target, in float64."""


class _Units(NamedTuple):
    embedding: Tensor
    target: Tensor
    rounded: Tensor
    """(N, D) unit vectors as the product reads them, a view of `padded`."""
    padded: Tensor
    """The same with rows of 0 at the end, up to a multiple of `_WHOLE`."""
    margin: float
    """Similarities that are further apart than this are ranked by the product."""


class _Best(NamedTuple):
    place: Tensor
    value: Tensor
    second: Tensor


@torch.no_grad()
def find_nearest(
    embedding: Tensor, target: Tensor, *, tile: int | None = None
) -> Retrieval:
    """Nearest neighbours in `embedding` (N, D), N at least 2, and their targets.

    Memory is a float32 copy of the embedding and some tiles.
    """
    if len(embedding) < 2:
        raise ValueError(f"there must be at least two items, got {len(embedding)}")
    kind = embedding.device.type
    with torch.autocast(kind, enabled=False), _fast(kind):
        units = _units(embedding, target)
        best = _screened(units, tile or _TILE.get(kind, 512))
        hits = (target[best.place] == target).double()
        close = (best.value - best.second <= units.margin).nonzero()[:, 0]
        most = max(1, _ROUGH.get(kind, 1 << 25) // len(embedding))
        for items in torch.split(close, most):
            nearest, share = _settled(units, items)
            best.place[items] = nearest
            hits[items] = share
    return Retrieval(best.place, hits)


@contextmanager
def _fast(kind: str) -> Iterator[None]:
    """Products of float32 by TF32, on devices that have it."""
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
    padded = embedding.new_zeros(_rounded_up(count), width, dtype=torch.float32)
    rounded = padded[:count]
    lost = torch.zeros((), dtype=torch.float64, device=embedding.device)
    step = max(1, _PAIRS.get(embedding.device.type, 1 << 22) // width)
    for start in range(0, count, step):
        exact = _unit(embedding[start : start + step])
        part = rounded[start : start + step]
        part.copy_(exact)
        if cuda:
            half, kept = _TF32
            part.view(torch.int32).add_(half).bitwise_and_(kept)
        away = torch.linalg.vector_norm(exact - part, dim=1)
        lost = torch.maximum(lost, away.max())
    # What rounding moved unit vectors by bounds what it changes in their product
    # (Cauchy and Schwarz). The sum of the product errs by less than D + 8 digits;
    # tensor cores cut where others round. Two similarities are compared.
    digit = 2.0**-23 if cuda else 2.0**-24
    off = float(lost)
    margin = 2 * (2 * off + off * off + (width + 8) * digit)
    return _Units(embedding, target, rounded, padded, margin)


def _rounded_up(count: int) -> int:
    return -(-count // _WHOLE) * _WHOLE


def _unit(rows: Tensor) -> Tensor:
    """`rows` (K, D) at length one, in float64; a zero row stays zero."""
    wide = rows.double()
    # By the largest entry first, so that no square overflows or vanishes.
    for length in (_largest, _length):
        size = length(wide)
        wide = wide / torch.where(size > 0, size, 1.0)
    return wide


def _largest(rows: Tensor) -> Tensor:
    return rows.abs().amax(1, keepdim=True)


def _length(rows: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return length


def _screened(units: _Units, tile: int) -> _Best:
    count, padded = len(units.rounded), units.padded
    lowest = torch.full((2, len(padded)), -torch.inf, device=padded.device)
    place = torch.zeros(len(padded), dtype=torch.int64, device=padded.device)
    best = _Best(place, lowest[0], lowest[1])
    tile = min(_rounded_up(tile), len(padded))
    buffer = torch.empty(tile * tile, device=padded.device)
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
            else:
                _take_in(best, other, first, similar, axis=0)
            _take_in(best, first, other, similar, axis=1)
    return _Best(*(part[:count] for part in best))


def _take_in(best: _Best, first: int, other: int, similar: Tensor, axis: int) -> None:
    """Update items from `first` on by similarities to items from `other` on.

    The similarities of an item lie along `axis`.
    """
    value, place, second = _two_best(similar, axis)
    nearest, old, runner_up = (part[first : first + len(value)] for part in best)
    torch.maximum(runner_up, second, out=runner_up)
    torch.maximum(runner_up, torch.minimum(old, value), out=runner_up)
    torch.where(value > old, place + other, nearest, out=nearest)
    torch.maximum(old, value, out=old)


def _two_best(similar: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """The largest numbers along `axis`, where they are, and the second largest.

    All numbers are read once, for the largest of each chunk. The chunk with the largest
    of all is then searched: the second largest is in it, or it is the largest of
    another chunk.
    """
    shape = similar.shape
    chunks = shape[axis] // _CHUNK
    parts = similar.view(*shape[:axis], chunks, _CHUNK, *shape[axis + 1 :])
    tops = parts.amax(axis + 1)
    part = tops.argmax(axis, keepdim=True)
    chosen = part.unsqueeze(axis + 1)
    wanted = [*parts.shape]
    wanted[axis] = 1
    held = parts.gather(axis, chosen.expand(wanted)).squeeze(axis)
    tops.scatter_(axis, part, -torch.inf)
    value, place = held.max(axis, keepdim=True)
    held.scatter_(axis, place, -torch.inf)
    second = torch.maximum(tops.amax(axis), held.amax(axis))
    found = part * _CHUNK + place
    return value.squeeze(axis), found.squeeze(axis), second


def _settled(units: _Units, items: Tensor) -> Retrieval:
    """The nearest neighbours of `items`, which have close ones."""
    rough = units.rounded[items] @ units.rounded.T
    line = torch.arange(len(items), device=items.device)
    rough[line, items] = -torch.inf
    near = rough >= rough.amax(1, keepdim=True) - units.margin
    del rough
    if int(near.sum()) > _FEW * len(items):
        return _among_many(units, items)
    row, candidate = near.nonzero(as_tuple=True)
    pairs = max(1, _PAIRS.get(items.device.type, 1 << 22) // units.embedding.shape[1])
    exact = torch.cat(
        [
            (_unit(units.embedding[items[r]]) * _unit(units.embedding[c])).sum(1)
            for r, c in zip(
                torch.split(row, pairs), torch.split(candidate, pairs), strict=True
            )
        ]
    )
    best = exact.new_full((len(items),), -torch.inf)
    best.scatter_reduce_(0, row, exact, "amax")
    tied = exact >= best[row] - _TIE
    row, candidate = row[tied], candidate[tied]
    same = (units.target[candidate] == units.target[items[row]]).double()
    ones = torch.ones_like(same)
    right, among = (torch.zeros_like(best).index_add_(0, row, w) for w in (same, ones))
    nearest = torch.full_like(items, len(units.embedding))
    nearest.scatter_reduce_(0, row, candidate, "amin")
    return Retrieval(nearest, right / among)


def _among_many(units: _Units, items: Tensor) -> Retrieval:
    """The same by a product in float64, for items with very many close neighbours."""
    found = []
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
        found.append(Retrieval(nearest, right.sum(1).double() / tied.sum(1)))
    nearest, hits = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Retrieval(nearest, hits)
