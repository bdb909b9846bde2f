"""Exact nearest neighbours among training features, on the device.

The twin of `qualms.scores.mean_neighbour_distance`, in float64 like it, blockwise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_BLOCK = 256


def neighbour_distances(
    query: Tensor, reference: Tensor, counts: Sequence[int], *, angular: bool
) -> list[Tensor]:
    """Mean distances (N,) of `query` (N, D) to its k nearest in `reference` (R, D).

    One tensor for each k in `counts`; the distance is sqrt(2 - 2 cos) if `angular`,
    where a zero vector has cosine 0 to everything, and else Euclidean.
    """
    if angular:
        asked, known = _directions(query, spare=0), _directions(reference, spare=1)
    else:
        # Distances do not change, and their squares cancel less.
        centre = reference.double().mean(0)
        asked, known = query.double() - centre, reference.double() - centre
    blocks = [
        _nearest(asked[start : start + _BLOCK], known, max(counts))
        for start in range(0, len(asked), _BLOCK)
    ]
    nearest = torch.cat(blocks)
    return [nearest[:, :k].mean(1) for k in counts]


def _nearest(rows: Tensor, known: Tensor, k: int) -> Tensor:
    """(B, k) distances, ascending."""
    closeness = torch.addmm(-known.square().sum(1) / 2, rows, known.T)
    index = closeness.topk(k, 1).indices
    # From differences, as 2 - 2 cos of a near neighbour is all rounding error.
    gaps = known[index] - rows[:, None]
    distances: Tensor = torch.linalg.vector_norm(gaps, dim=2)
    return distances.sort(1).values


def _directions(rows: Tensor, *, spare: int) -> Tensor:
    """Unit rows with two more axes, on which a zero row is orthogonal to all others."""
    wide = rows.double()
    # By the largest entry first, so that no square overflows or vanishes.
    largest = wide.abs().amax(1, keepdim=True)
    wide = wide / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    wide = wide / torch.where(length > 0, length, 1.0)
    zero = (largest == 0).double()
    return torch.cat([wide, *_placed(zero, spare)], 1)


def _placed(zero: Tensor, spare: int) -> tuple[Tensor, Tensor]:
    other = torch.zeros_like(zero)
    return (zero, other) if spare == 0 else (other, zero)
