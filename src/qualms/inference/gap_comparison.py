"""Comparison of calibration errors: rows that may have the least, and differences.

An error that sums absolute gaps exceeds its true value because of noise: by much where
the gaps are small, by little where they are large, so that of two equally good models
the noisier one seems worse. The excess depends on the true gaps, which are unknown. So
several common errors of all rows are tried: a row is in the group if one of these
errors leaves it there, with as much noise as possible in its own value and as little as
possible in that of its rival. Both are simulated from the joint normal noise of the
gaps of all rows, over items or clusters.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from qualms.arrays import Array, Index
from qualms.inference._design import Design, Spread
from qualms.inference._few import ROUNDING
from qualms.inference._gaps import bin_ends, smooth_ends
from qualms.inference._seeds import (
    SEED_STREAM,
    RowSeeds,
    SeedDraws,
    draw_seeds,
    seed_spread,
)
from qualms.inference._step_down import (
    Elimination,
    NullDraws,
    group_of,
    normal_score,
    step_down,
    student_of,
)
from qualms.inference.confidence_set import (
    RowComparison,
    normal_noise,
    spreads_from,
    standard_errors,
)
from qualms.scores import Difference
from qualms.scores.influence import BinGaps, Influence, SmoothGaps
from qualms.scores.smoothing import crossings, on_grid

REPLICATES, SMOOTH_REPLICATES = 1_000, 250
TRIED = 5
"""Number of common errors that are tried."""
OUTSIDE = 0.4
"""Chance that the least error lies outside the tried range, divided among the rows."""
CLEAR = 2.0
"""Fewest standard errors of a gap that is more than noise."""
CELLS = 2_600
"""Most cells of the grids of all rows together."""


def compare_gaps(
    rows: Mapping[str, Influence | Sequence[Influence]],
    *,
    design: Design,
    level: float = 0.95,
    seed: int = 0,
    seeds: Mapping[str, Spread] | None = None,
    ranges: "ErrorRanges | None" = None,
) -> RowComparison:
    """Compare errors that are sums of gaps, over the same items in every row.

    Repeats of a row are averaged; the contributions of other seeds are independent
    between rows. Their spread is that of the repeats, or `seeds` where repeats pool
    runs. Callers that compare one row with several others may share `ranges`.

    >>> from qualms.inference import influence_of
    >>> from qualms.scores import ece
    >>> target = np.arange(400) % 2
    >>> rows = {"right": np.full(400, 0.5), "sure": np.full(400, 0.99)}
    >>> influences = {name: influence_of(ece, p, target) for name, p in rows.items()}
    >>> compare_gaps(influences, design=Design(items=400)).group.members
    ('right',)
    """
    names = list(rows)
    repeats = [[r] if isinstance(r, Influence) else list(r) for r in rows.values()]
    values = np.array(
        [np.mean([influence.value for influence in row]) for row in repeats]
    )
    noisy = list(_drawn_rows(repeats, design, seed))
    spreads = [
        _seeds_of(row, name, seeds) for name, row in zip(names, repeats, strict=True)
    ]
    rng = np.random.default_rng((seed, SEED_STREAM))
    drawn = draw_seeds(
        list(map(RowSeeds, spreads)), len(noisy[0].repeats[0].noise), rng
    )
    wide = 1.0 - OUTSIDE / len(names)
    ranges = ErrorRanges() if ranges is None else ranges
    errors = [ranges.of(row, design, wide) for row in repeats]
    low, high = np.min(errors, axis=0)
    steps, draws = _least(values, noisy, np.linspace(low, high, TRIED), drawn, level)
    best = int(values.argmin())
    added = [
        _noise_range(row, error_range)
        for row, error_range in zip(noisy, errors, strict=True)
    ]
    differences = {
        name: _difference(
            values[[row, best]],
            (added[row], added[best]),
            spread,
            float(steps.limit[row]),
            float(steps.p[row]),
            row in steps.left_out,
        )
        for row, (name, spread) in enumerate(
            zip(names, spreads_from(best, draws, len(names)), strict=True)
        )
    }
    return RowComparison(group_of(names, best, steps), differences)


class ErrorRanges:
    """The intervals of the errors of rows, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, Array]] = {}

    def of(self, row: Sequence[Influence], design: Design, level: float) -> Array:
        """Return the ends of the interval of the error of a row."""
        parts = *row, design
        key = *map(id, parts), level
        if key not in self._known:
            # The parts are stored, too, so that no other objects get their addresses.
            self._known[key] = parts, _error_range(row, design, level)
        return self._known[key][1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _NoisyGaps:
    """The gaps of one repeat of a row, and their noise."""

    total: Array
    """(cells,) gaps as observed."""
    noise: Array
    """(B, cells) around 0."""
    factor: float
    """Factor on the sum of absolute gaps; 0 for a smooth error."""

    def size(self, gaps: Array) -> Array:
        """Return the error (B,) that gaps (B, cells) have."""
        if self.factor:
            total: Array = np.abs(gaps).sum(axis=1)
            return total * self.factor
        return crossings(gaps, tolerance=1e-4)

    def replicates(self, shape: Array, error: float) -> Array:
        """Return the error (B,) of gaps of this `shape` and `error`, with noise."""
        steps = np.ones(1) if self.factor else np.geomspace(0.01, 100.0, 60)
        if not shape.any():
            shape = self.total
        sizes = self.size(steps[:, None] * shape)
        if self.factor:
            step = error / sizes[0] if sizes[0] > 0.0 else 0.0
        else:
            step = np.interp(error, np.append(0.0, sizes), np.append(0.0, steps))
        return self.size(float(step) * shape + self.noise)

    def shapes(self) -> tuple[Array, Array]:
        """Return gaps whose error is raised much by noise, and gaps raised little.

        Noise raises the error most if many gaps are 0, and least if all gaps are
        equally clear.
        """
        block = self._blocks()
        gap = np.bincount(block, self.total)
        variance = self.noise.var(axis=0)
        block_variance = np.maximum(np.bincount(block, variance), 1e-300)
        error = np.sqrt(block_variance)
        clear = np.where(np.abs(gap) > CLEAR * error, 1.0, 0.0)[block] * self.total
        even = (np.sign(gap) * error)[block] * variance / block_variance[block]
        return clear, even

    def _blocks(self) -> Index:
        """Return the block (cells,) of each cell: a smooth error joins neighbours."""
        cells = len(self.total)
        if self.factor:
            return np.arange(cells)
        width = 2.0 * float(self.size(self.total[None])[0])
        blocks = max(1, min(cells, round(1.0 / max(width, 1e-6))))
        block: Index = np.arange(cells) * blocks // cells
        return block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _NoisyRow:
    """All repeats of a row."""

    repeats: Sequence[_NoisyGaps]

    def replicates(self, error: float) -> tuple[Array, Array]:
        """Return values (B,) at this error, raised much and raised little by noise."""
        shapes = zip(*(repeat.shapes() for repeat in self.repeats), strict=True)
        much, little = (
            np.mean(
                [
                    repeat.replicates(shape, error)
                    for repeat, shape in zip(self.repeats, gaps, strict=True)
                ],
                axis=0,
            )
            for gaps in shapes
        )
        return much, little


def _least(
    values: Array,
    rows: Sequence[_NoisyRow],
    errors: Array,
    seeds: SeedDraws | None,
    level: float,
) -> tuple[Elimination, NullDraws]:
    """Return the rows that leave whichever of the common `errors` is the true one.

    The p values and limits are the largest over all errors that are tried; the draws
    are those of the last.
    """
    best = int(values.argmin())
    p, limit = np.zeros((2, len(values)))
    every: list[Elimination] = []
    for error in errors:
        by_row = [row.replicates(float(error)) for row in rows]
        much, little = (np.stack(part, axis=1) for part in zip(*by_row, strict=True))
        added = np.stack([much.mean(axis=0), little.mean(axis=0)]) - error
        noise = np.where(much.std(axis=0) > little.std(axis=0), much, little)
        centre = noise - noise.mean(axis=0)
        draws = NullDraws(
            noise=centre, items=np.square(standard_errors(centre)), seeds=seeds
        )
        # A row leaves as its least value exceeds the largest value of the best row.
        gap = (values - added.max(axis=0)) - (values - added.min(axis=0))[best]
        spreads = spreads_from(best, draws, len(values))
        variance = np.array([spread.variance for spread in spreads])
        freedom = np.array([spread.freedom for spread in spreads])
        score = normal_score(np.maximum(gap, 0.0), variance, variance**2 / freedom)
        certain = (variance <= 0.0) & (gap > ROUNDING * float(np.abs(values).max()))
        score = np.where(certain, np.inf, score)
        score[best] = 0.0
        every.append(step_down(score, best, draws, level))
        p = np.maximum(p, every[-1].p)
        limit = np.maximum(limit, every[-1].limit)
    gone = tuple(
        row for row in every[-1].left_out if all(row in each.left_out for each in every)
    )
    return Elimination(gone, p, limit), draws


def _noise_range(row: _NoisyRow, errors: Array) -> tuple[float, float]:
    """Return the least and the most that noise may add to the value of a row."""
    added = [
        part.mean() - error for error in errors for part in row.replicates(float(error))
    ]
    return float(min(added)), float(max(added))


def _difference(
    values: Array,
    added: tuple[tuple[float, float], tuple[float, float]],
    spread: Spread,
    limit: float,
    p: float,
    left_out: bool,
) -> Difference:
    """Return the difference of two values, for any possible noise in each.

    That both errors are equal is asked more sharply than any other difference, since
    noise then adds alike to both: 0 lies outside exactly where the row is left out.
    """
    value = float(values[0] - values[1])
    error = math.sqrt(spread.variance)
    if error == 0.0:
        return Difference(value=value, low=value, high=value, p=p)
    (own_least, own_most), (best_least, best_most) = added
    low, high = value - own_most + best_least, value - own_least + best_most
    away = student_of(limit, spread.freedom) * error
    low = float(min(low, value) - away)
    low = max(low, ROUNDING * value) if left_out else min(low, 0.0)
    return Difference(value=value, low=low, high=float(max(high, value) + away), p=p)


def _error_range(row: Sequence[Influence], design: Design, level: float) -> Array:
    """Return the ends of the interval of the error of a row."""
    ends = []
    for repeat in row:
        gaps = repeat.construction
        assert isinstance(gaps, BinGaps | SmoothGaps)
        if isinstance(gaps, BinGaps):
            ends.append(bin_ends(gaps, design, level))
        else:
            ends.append(smooth_ends(gaps, design, level))
    mean: Array = np.mean(ends, axis=0)
    return mean


def _drawn_rows(
    rows: Sequence[Sequence[Influence]], design: Design, seed: int
) -> Iterator[_NoisyRow]:
    """Yield every row with the noise of its gaps, drawn jointly for all rows."""
    steps = _steps(rows)
    gaps = [_by_item(repeat, steps) for row in rows for repeat in row]
    rng = np.random.default_rng(seed)
    smooth = any(isinstance(row[0].construction, SmoothGaps) for row in rows)
    replicates = SMOOTH_REPLICATES if smooth else REPLICATES
    covariance = _joint_covariance([items for items, _ in gaps], design)
    noise = normal_noise(covariance, replicates, rng)
    parts = np.split(
        noise, np.cumsum([items.shape[1] for items, _ in gaps])[:-1], axis=1
    )
    ready = iter(zip(gaps, parts, strict=True))
    for row in rows:
        repeats = [
            _NoisyGaps(total=total, noise=noise, factor=_factor(repeat))
            for repeat, ((_, total), noise) in zip(row, ready, strict=False)
        ]
        yield _NoisyRow(repeats=repeats)


def _seeds_of(
    row: Sequence[Influence], name: str, seeds: Mapping[str, Spread] | None
) -> Spread:
    if seeds is not None:
        return seeds[name]
    return seed_spread([influence.value for influence in row])


def _steps(rows: Sequence[Sequence[Influence]]) -> int:
    """Return the steps of the grids of smooth errors, which resolve the smallest one.

    More rows have coarser grids.
    """
    values = [repeat.value for row in rows for repeat in row]
    finest = math.log2(2.0 / max(min(values), 1e-3))
    return 1 << max(5, min(9, math.ceil(finest), int(math.log2(CELLS / len(values)))))


def _factor(influence: Influence) -> float:
    gaps = influence.construction
    return gaps.factor if isinstance(gaps, BinGaps) else 0.0


def _by_item(influence: Influence, steps: int) -> tuple[sparse.csr_array, Array]:
    """Return the contributions (N, cells) of items to the gaps, and the gaps."""
    gaps = influence.construction
    if isinstance(gaps, SmoothGaps):
        cell = np.minimum((gaps.position * steps + 0.5).astype(np.int64), steps)
        by_item = _sparse(gaps.residual, cell, steps + 1)
        return by_item, on_grid(gaps.position, gaps.residual, steps)
    assert isinstance(gaps, BinGaps)
    cells = len(gaps.total if gaps.shares is None else gaps.shares)
    by_item = _sparse(gaps.own, gaps.cell, cells)
    if gaps.tilt is not None:
        by_item = sparse.csr_array(by_item + gaps.tilt[gaps.cell])
    if gaps.shares is not None:
        by_item = sparse.csr_array(by_item @ sparse.csr_array(gaps.shares))
    return by_item, gaps.total


def _sparse(values: Array, cell: Index, cells: int) -> sparse.csr_array:
    items = len(values)
    return sparse.csr_array((values, (np.arange(items), cell)), shape=(items, cells))


def _joint_covariance(gaps: Sequence[sparse.csr_array], design: Design) -> Array:
    """Return the covariance of the gaps of all rows, over new items or clusters."""
    items = design.items
    sample = np.zeros(items, np.int64) if design.sample is None else design.sample
    sample = np.unique(sample, return_inverse=True)[1]
    inside = _sparse(np.ones(items), sample, int(sample.max()) + 1)
    columns = sparse.csr_array(sparse.hstack([*gaps, inside], format="csr"))
    mean = (inside.T @ columns).toarray()[:, : -inside.shape[1]]
    mean /= np.bincount(sample)[:, None]
    if design.cluster is not None:
        units = int(design.cluster.max()) + 1
        membership = np.ones(items), (design.cluster, np.arange(items))
        columns = sparse.csr_array(
            sparse.csr_array(membership, shape=(units, items)) @ columns
        )
    # Each unit is centred by the mean of its sample, once for each of its items.
    weight = np.concatenate([np.eye(mean.shape[1]), -mean])
    product: Array = weight.T @ ((columns.T @ columns) @ weight)
    units = design.units()
    return product * (units / max(units - 1, 1))
