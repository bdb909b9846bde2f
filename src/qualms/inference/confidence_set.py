"""The rows of a table that may be the best, and their differences from the best.

`compare_rows` knows the influence of the items on every row, `confidence_set` paired
replicates of the rows. Which rows leave, and by which interval, says `_step_down`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.inference._design import LEAST_FREEDOM, Design, Spread
from qualms.inference._few import ROUNDING, unseen_variance
from qualms.inference._seeds import (
    ONE_RUN,
    SEED_STREAM,
    RowSeeds,
    draw_seeds,
    net_of,
    seed_spread,
    shared_spreads,
)
from qualms.inference._step_down import (
    ConfidenceSet,
    NullDraws,
    group_of,
    normal_score,
    step_down,
    student_of,
)
from qualms.inference.difference import (
    influence_difference,
    paired_spread,
    seen_by_items,
)
from qualms.inference.interval import joined_spread, mean_values
from qualms.scores import Better, Difference
from qualms.scores.influence import Influence

REPLICATES = 2_000
"""Normal replicates drawn where the influence of the items is known."""
FEWEST = 100
"""Fewest replicates: with fewer, only a handful lie beyond the quantile of .05."""


class RowComparison(NamedTuple):
    """The rows that may be best, and the difference of each from the best."""

    group: ConfidenceSet
    differences: Mapping[str, Difference]
    """Each row minus the best. A row is in the group if, and only if, the interval of
    its difference holds 0."""


def compare_rows(
    rows: Mapping[str, Influence | Sequence[Influence]],
    *,
    better: Better,
    design: Design | None = None,
    level: float = 0.95,
    seed: int = 0,
    seeds: Mapping[str, RowSeeds] | None = None,
) -> RowComparison:
    """Compare rows that are scored on the same items, each by its repeats.

    The interval of a difference is Student's t on the variance of items and seeds, with
    Satterthwaite's degrees of freedom; of two rows by its own quantile, of more by that
    of the largest difference of any two. The spread of seeds is that of the repeats, or
    `seeds` where repeats pool runs; with three rows or more they lend each other some
    certainty about it (`docs/intervals.md`).

    >>> from qualms.inference import mean_influence
    >>> loss = np.random.default_rng(0).normal(size=(3, 50)) + [[0.0], [0.1], [2.0]]
    >>> rows = {name: mean_influence(each) for name, each in zip("abc", loss)}
    >>> compare_rows(rows, better="lower").group.members
    ('a', 'b')
    """
    _checked(better, level)
    names = list(rows)
    repeats = [_as_list(rows[name]) for name in names]
    values = [float(np.mean([i.value for i in row])) for row in repeats]
    sign = 1.0 if better == "lower" else -1.0
    best = int(np.argmin(sign * np.array(values)))
    of_seeds = [
        RowSeeds(seed_spread([i.value for i in row])) if seeds is None else seeds[name]
        for name, row in zip(names, repeats, strict=True)
    ]
    observed = [row.spread for row in of_seeds]
    made_by = {row.made_by for row in of_seeds}
    if len(names) == 2 and (len(made_by) == 2 or "" in made_by):
        return _two(names, repeats, best, observed, design, level)
    of_seeds = [
        each._replace(counted=seen_by_items(row, each.spread, design))
        for each, row in zip(of_seeds, repeats, strict=True)
    ]
    noise, covariance, freedom = _item_noise(repeats, design, REPLICATES, seed)
    variance = covariance.diagonal()
    rng = np.random.default_rng((seed, SEED_STREAM))
    draws = NullDraws(
        noise=noise,
        items=np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0),
        freedom=freedom,
        seeds=draw_seeds(of_seeds, len(noise), rng),
    )
    known = [
        net_of(spread, row.counted)
        for spread, row in zip(shared_spreads(observed), of_seeds, strict=True)
    ]
    spreads = [
        paired_spread(row, repeats[best], (known[place], known[best]), design=design)
        for place, row in enumerate(repeats)
    ]
    return _compared(names, np.array(values), best, spreads, draws, level)


def _two(
    names: Sequence[str],
    repeats: Sequence[Sequence[Influence]],
    best: int,
    seeds: Sequence[Spread],
    design: Design | None,
    level: float,
) -> RowComparison:
    """Compare two rows by the interval of their difference."""
    other = 1 - best
    found = influence_difference(
        repeats[other],
        repeats[best],
        design=design,
        level=level,
        seeds=(seeds[other], seeds[best]),
    )
    differs = not (math.isnan(found.low) or found.low <= 0.0 <= found.high)
    group = ConfidenceSet(
        best=names[best],
        members=(names[best],) if differs else tuple(names),
        p={name: 1.0 if name == names[best] else found.p for name in names},
        eliminated=(names[other],) if differs else (),
    )
    itself = Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    return RowComparison(group, {names[best]: itself, names[other]: found})


def _compared(
    names: Sequence[str],
    values: Array,
    best: int,
    spreads: Sequence[Spread],
    draws: NullDraws,
    level: float,
) -> RowComparison:
    """Compare rows by the spread of the difference of each from the best."""
    gap = values - values[best]
    variance = np.array([spread.variance for spread in spreads])
    freedom = np.array([spread.freedom for spread in spreads])
    equal = np.abs(gap) <= ROUNDING * float(np.abs(values).max())
    equal &= np.sqrt(variance) <= ROUNDING * float(np.abs(values).max())
    score = normal_score(np.abs(gap), variance, variance**2 / freedom)
    # Two rows whose difference never varies are equal, or differ with certainty.
    score = np.where((variance <= 0.0) & ~equal, np.inf, np.where(equal, 0.0, score))
    score[best] = 0.0
    steps = step_down(score, best, draws, level)
    away = [
        student_of(float(limit), spread.freedom) * math.sqrt(spread.variance)
        if spread.variance > 0.0 and place != best and not equal[place]
        else 0.0
        for place, (limit, spread) in enumerate(zip(steps.limit, spreads, strict=True))
    ]
    differences = {
        name: Difference(value=value, low=value - reach, high=value + reach, p=float(p))
        for name, value, reach, p in zip(
            names, np.where(equal, 0.0, gap).tolist(), away, steps.p, strict=True
        )
    }
    return RowComparison(group_of(names, best, steps), differences)


def confidence_set(
    values: Mapping[str, float],
    replicates: Mapping[str, ArrayLike],
    *,
    better: Better,
    level: float = 0.95,
    seeds: Mapping[str, Spread] | None = None,
) -> ConfidenceSet:
    """Return rows of `values` that may be best, from paired replicates of each.

    `replicates` are (B,) per row, of the same resampled items in every row; `seeds` are
    the spreads of other seeds of a row (`seed_spread`). Rows with an undefined or
    infinite value are left out, and so are replicates in which any row is undefined.
    Where the influence of items is known, `compare_rows` is exact.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(3, 500))
    >>> names, values = "abc", [0.0, 0.5, 9.0]
    >>> group = confidence_set(
    ...     dict(zip(names, values)), dict(zip(names, noise)), better="lower"
    ... )
    >>> group.members, group.eliminated
    (('a', 'b'), ('c',))
    """
    of_seeds = {name: RowSeeds(spread) for name, spread in (seeds or {}).items()}
    return compare_replicates(
        values, replicates, better=better, level=level, seeds=of_seeds
    ).group


def compare_replicates(
    values: Mapping[str, float],
    replicates: Mapping[str, ArrayLike],
    *,
    better: Better,
    level: float = 0.95,
    seed: int = 0,
    seeds: Mapping[str, RowSeeds] | None = None,
) -> RowComparison:
    """Return the `confidence_set` with the difference of each row from the best."""
    _checked(better, level)
    names = [name for name, value in values.items() if math.isfinite(value)]
    missing = sorted(set(names) - replicates.keys())
    if missing:
        raise ValueError(f"every defined row needs replicates, {missing} have none")
    if len(names) < 2:
        return _untested(values, names, "")
    sign = 1.0 if better == "lower" else -1.0
    value = np.array([values[name] for name in names])
    copies = _paired_replicates([replicates[name] for name in names])
    centre = copies - copies.mean(axis=0)
    best = int(np.argmin(sign * value))
    if len(copies) < FEWEST:
        return _untested(
            values,
            names,
            f"{len(copies)} replicates are too few to tell rows apart, "
            f"at least {FEWEST} are needed",
            best=names[best],
        )
    of_seeds = [(seeds or {}).get(name, RowSeeds()) for name in names]
    rng = np.random.default_rng((seed, SEED_STREAM))
    drawn = draw_seeds(of_seeds, len(centre), rng)
    error = standard_errors(centre)
    error = np.where(error > ROUNDING * float(np.abs(value).max()), error, 0.0)
    draws = NullDraws(noise=centre, items=np.square(error), seeds=drawn)
    spreads = spreads_from(best, draws, len(names))
    compared = _compared(names, value, best, spreads, draws, level)
    absent = dict.fromkeys(values, math.nan)
    group = dataclasses.replace(compared.group, p=absent | dict(compared.group.p))
    return compared._replace(group=group)


def spreads_from(best: int, draws: NullDraws, rows: int) -> list[Spread]:
    """Return the spread of the difference of each row from the best, by its draws."""
    seeds = [ONE_RUN] * rows if draws.seeds is None else draws.seeds.spreads
    return [
        joined_spread(
            Spread(float(draws.items[row, best]), draws.freedom, 0),
            *((seeds[row], seeds[best]) if row != best else ()),
        )
        for row in range(rows)
    ]


def _checked(better: Better, level: float) -> None:
    if better not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher' or 'lower', got {better!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")


def _paired_replicates(replicates: Sequence[ArrayLike]) -> Array:
    """Return the replicates (B, K) in which all rows are defined."""
    columns = [np.asarray(column, dtype=np.float64) for column in replicates]
    lengths = {column.shape for column in columns}
    if len(lengths) > 1 or columns[0].ndim != 1:
        raise ValueError(
            "replicates must be paired, (B,) in every row, got shapes "
            f"{sorted(lengths)}; make them of the same resampled items"
        )
    together: Array = np.stack(columns, axis=1)
    return together[np.isfinite(together).all(axis=1)]


def _untested(
    values: Mapping[str, float], names: Sequence[str], reason: str, best: str = ""
) -> RowComparison:
    p = {name: 1.0 if name in names else math.nan for name in values}
    first = best or (names[0] if names else "")
    group = ConfidenceSet(
        best=first, members=tuple(names), p=p, eliminated=(), reason=reason
    )
    unknown = {
        name: Difference(
            value=values[name] - values[first], low=math.nan, high=math.nan, p=math.nan
        )
        for name in names
    }
    return RowComparison(group, unknown)


def standard_errors(centre: Array) -> Array:
    """Return the standard error (K, K) of every difference."""
    cross = centre.T @ centre / max(len(centre) - 1, 1)
    variance = cross.diagonal()
    square: Array = variance[:, None] + variance - 2.0 * cross
    # Differences of equal columns are rounding errors.
    return np.sqrt(np.where(square > 1e-12 * variance.max(), square, 0.0))


def influence_replicates(
    rows: Mapping[str, Influence | Sequence[Influence]],
    *,
    design: Design | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[str, Array]:
    """Return paired replicates (B,) of every row, from the influence of the same items.

    Draws are normal with the covariance of the influences, as if every item had an
    independent normal weight; they are lengthened by Student's t where few items carry
    the variance. Repeats of a row are averaged; the contributions of their seeds are
    independent between rows.
    """
    repeats = [_as_list(row) for row in rows.values()]
    noise, _, _ = _item_noise(repeats, design, replicates, seed)
    centre = [float(np.mean([influence.value for influence in row])) for row in repeats]
    return {name: centre[place] + noise[:, place] for place, name in enumerate(rows)}


def _item_noise(
    repeats: Sequence[Sequence[Influence]],
    design: Design | None,
    replicates: int,
    seed: int,
) -> tuple[Array, Array, float]:
    """Return noise (B, K) due to items, its covariance, and its degrees of freedom."""
    first = repeats[0][0]
    assert first.values is not None
    plain = Design(items=len(first.values)) if design is None else design
    sums = np.stack([plain.sums(mean_values(row)) for row in repeats], axis=1)
    covariance = sums.T @ sums
    covariance += np.diag(_unseen(repeats))
    freedom = _freedom(sums)
    rng = np.random.default_rng(seed)
    noise = normal_noise(covariance, replicates, rng)
    noise *= np.sqrt(freedom / rng.chisquare(freedom, size=(replicates, 1)))
    return noise, covariance, freedom


def _unseen(rows: Sequence[Sequence[Influence]]) -> Array:
    """Return the variance (K,) to add to each row for few differing decisions."""
    unseen = np.zeros(len(rows))
    if not all(np.any(repeat.step) for row in rows for repeat in row):
        return unseen
    changes = [mean_values(row) for row in rows]
    for a, b in combinations(range(len(rows)), 2):
        # Each row of a pair takes half of the variance.
        more = unseen_variance(rows[a], rows[b], changes[a] - changes[b]) / 2.0
        unseen[[a, b]] = np.maximum(unseen[[a, b]], more)
    return unseen


def _as_list(row: Influence | Sequence[Influence]) -> list[Influence]:
    return [row] if isinstance(row, Influence) else list(row)


def normal_noise(covariance: Array, replicates: int, rng: np.random.Generator) -> Array:
    """Return normal draws (B, K); the covariance may be singular."""
    size, axes = np.linalg.eigh(covariance)
    # The symmetric root does not depend on the choice of the axes.
    root = (axes * np.sqrt(np.maximum(size, 0.0))) @ axes.T
    noise: Array = rng.standard_normal((replicates, len(covariance))) @ root
    return noise


def _freedom(sums: Array) -> float:
    """Return Satterthwaite's degrees of freedom, the median over pairs of rows."""
    units, rows = sums.shape
    freedoms = []
    for row in range(1, rows):
        square = np.square(sums[:, :row] - sums[:, row, None])
        total = square.sum(axis=0)
        left = np.square(square).sum(axis=0) - total**2 / units
        defined = (total > 0.0) & (left > 0.0)
        freedoms += (2.0 * total[defined] ** 2 / left[defined]).tolist()
    return max(LEAST_FREEDOM, min(float(np.median(freedoms)), 1e6)) if freedoms else 1e6
