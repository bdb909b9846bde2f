"""The model confidence set: the rows of a table that may be the best.

Hansen, Lunde & Nason (2011), "The model confidence set", with the statistic T_R: as
long as the largest difference among the remaining rows is larger than equal rows would
show, the worse row of that pair leaves. The best row is not fixed beforehand, so the
probability that any row truly equal to the best is excluded is 1 - `level`.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags
from qualms.inference._design import LEAST_FREEDOM, Design
from qualms.inference._few import ROUNDING, unseen_variance
from qualms.inference._seeds import SeedNoise
from qualms.inference.interval import mean_values
from qualms.scores import Better
from qualms.scores.influence import Influence

REPLICATES = 2_000
"""Normal replicates drawn where the influence of the items is known."""
FEWEST = 100
"""Fewest replicates: with fewer, only a handful lie beyond the quantile of .05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSet:
    """The rows that cannot be told apart from the best."""

    best: str
    """The row with the best value; empty where no value is defined."""
    members: tuple[str, ...]
    """`best` and its equals, in the order of the table."""
    p: Mapping[str, float]
    """Largest level of error at which a row leaves; 1 for the last to remain, nan
    where the value is undefined."""
    eliminated: tuple[str, ...]
    """Rows that left, the first to leave first."""
    reason: str = ""
    """Reason for comparing nothing, in which case all rows are members; else empty."""


def confidence_set(
    values: Mapping[str, float],
    replicates: Mapping[str, ArrayLike],
    *,
    better: Better,
    level: float = 0.95,
    seeds: Mapping[str, SeedNoise | None] | None = None,
) -> ConfidenceSet:
    """Return rows of `values` that may be best, from paired replicates of each.

    `replicates` are (B,) per row, of the same resampled items in every row; `seeds` are
    the contributions of other seeds of a row (`seed_noise`). Rows with an undefined or
    infinite value are left out, and so are replicates in which any row is undefined.
    See `influence_replicates` where the influence of items is known.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(3, 500))
    >>> names, values = "abc", [0.0, 0.5, 9.0]
    >>> group = confidence_set(
    ...     dict(zip(names, values)), dict(zip(names, noise)), better="lower"
    ... )
    >>> group.members, group.eliminated
    (('a', 'b'), ('c',))
    """
    if better not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher' or 'lower', got {better!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")
    names = [name for name, value in values.items() if math.isfinite(value)]
    missing = sorted(set(names) - replicates.keys())
    if missing:
        raise ValueError(f"every defined row needs replicates, {missing} have none")
    if len(names) < 2:
        return _untested(values, names, "")
    sign = 1.0 if better == "lower" else -1.0
    loss = sign * np.array([values[name] for name in names])
    copies, is_defined = _paired_replicates([replicates[name] for name in names])
    centre = sign * (copies - copies.mean(axis=0))
    best = names[int(loss.argmin())]
    if len(copies) < FEWEST:
        return _untested(
            values,
            names,
            f"{len(copies)} replicates are too few to tell rows apart, "
            f"at least {FEWEST} are needed",
            best=best,
        )
    drawn = joined_noise([(seeds or {}).get(name) for name in names], is_defined, sign)
    order, p = elimination(loss, centre, seeds=drawn)
    group = remaining(names, best, order, p, level)
    absent = dict.fromkeys(values, math.nan)
    return dataclasses.replace(group, p=absent | dict(group.p))


def _paired_replicates(replicates: Sequence[ArrayLike]) -> tuple[Array, Flags]:
    """Return the replicates (B, K) with all rows defined, and a mask of these."""
    columns = [np.asarray(column, dtype=np.float64) for column in replicates]
    lengths = {column.shape for column in columns}
    if len(lengths) > 1 or columns[0].ndim != 1:
        raise ValueError(
            "replicates must be paired, (B,) in every row, got shapes "
            f"{sorted(lengths)}; make them of the same resampled items"
        )
    together: Array = np.stack(columns, axis=1)
    is_defined: Flags = np.asarray(np.isfinite(together).all(axis=1))
    return together[is_defined], is_defined


def _untested(
    values: Mapping[str, float], names: Sequence[str], reason: str, best: str = ""
) -> ConfidenceSet:
    p = {name: 1.0 if name in names else math.nan for name in values}
    first = best or (names[0] if names else "")
    return ConfidenceSet(
        best=first, members=tuple(names), p=p, eliminated=(), reason=reason
    )


class JoinedNoise(NamedTuple):
    """Simulated contributions of other seeds to the losses of all rows."""

    noise: Array
    """(B, K) around 0."""
    variance: Array
    """(B, K) variance that the seeds would show in each replicate."""
    observed: Array
    """(K,) variance that the seeds showed."""


def joined_noise(
    rows: Sequence[SeedNoise | None], defined: Flags, sign: float = 1.0
) -> JoinedNoise | None:
    """Return the noise of all rows in the `defined` replicates; None without noise."""
    if all(row is None for row in rows):
        return None
    noise, variance = np.zeros((2, int(defined.sum()), len(rows)))
    observed = np.zeros(len(rows))
    for place, row in enumerate(rows):
        if row is not None:
            noise[:, place] = sign * row.noise[defined]
            variance[:, place] = row.variance[defined]
            observed[place] = row.observed
    return JoinedNoise(noise, variance, observed)


def elimination(
    loss: Array,
    centre: Array,
    *,
    high: Array | None = None,
    seeds: JoinedNoise | None = None,
) -> tuple[list[int], Array]:
    """Return the rows in the order in which they leave, and the p value of each.

    `loss` (K,) has replicates `centre` (B, K) around 0. All rows but one leave; the
    level decides afterwards how many of them count. Where only a range of a loss is
    known, `loss` is its lower end and `high` the upper one: a row leaves because the
    least value of its loss exceeds the largest value of its rival's. The noise of
    `seeds` is studentised by their observed variance, which each replicate draws anew.
    """
    rows = len(loss)
    high = loss if high is None else high
    error = standard_errors(centre)
    least = ROUNDING * float(np.abs(loss).max())
    error = np.where(error > least, error, 0.0)
    items = np.square(error)
    if seeds is not None:
        error = np.sqrt(items + seeds.observed[:, None] + seeds.observed)
    # Two rows whose difference never varies are equal, or differ with certainty.
    t = np.divide(
        loss[:, None] - high,
        error,
        out=np.where(loss[:, None] - high > least, np.inf, 0.0),
        where=error > 0.0,
    )
    inverse = np.divide(1.0, error, out=np.zeros_like(error), where=error > 0.0)
    left = list(range(rows))
    order: list[int] = []
    p = np.ones(rows)
    worst_p = 0.0
    while len(left) > 1:
        among = np.ix_(left, left)
        place, _ = np.unravel_index(int(t[among].argmax()), (len(left), len(left)))
        largest = float(t[among].max())
        if seeds is None:
            drawn = _largest(centre[:, left], inverse[among])
        else:
            drawn = _largest_of_seeds(centre, items, seeds, left)
        reached = drawn >= largest * (1.0 - 1e-12)
        worst_p = max(worst_p, (1.0 + reached.sum()) / (1.0 + len(centre)))
        row = left.pop(int(place))
        p[row] = min(worst_p, 1.0)
        order.append(row)
    return order, p


def standard_errors(centre: Array) -> Array:
    """Return the standard error (K, K) of every difference."""
    cross = centre.T @ centre / max(len(centre) - 1, 1)
    variance = cross.diagonal()
    square: Array = variance[:, None] + variance - 2.0 * cross
    # Differences of equal columns are rounding errors.
    return np.sqrt(np.where(square > 1e-12 * variance.max(), square, 0.0))


def _largest(centre: Array, inverse: Array) -> Array:
    """Return the largest studentised difference of a pair in each replicate, (B,)."""
    largest = np.zeros(len(centre))
    for row in range(1, centre.shape[1]):
        gap = np.abs(centre[:, :row] - centre[:, row, None]) * inverse[row, :row]
        np.maximum(largest, gap.max(axis=1), out=largest)
    return largest


def _largest_of_seeds(
    centre: Array, items: Array, seeds: JoinedNoise, left: Sequence[int]
) -> Array:
    """Return the same with seeds, studentised by the variance of the replicate."""
    noise, variance = (centre + seeds.noise)[:, left], seeds.variance[:, left]
    largest = np.zeros(len(centre))
    for place, row in enumerate(left):
        gap = np.square(noise[:, :place] - noise[:, place, None])
        spread = (
            items[row, left[:place]] + variance[:, :place] + variance[:, place, None]
        )
        ratio = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0.0)
        np.maximum(largest, ratio.max(axis=1, initial=0.0), out=largest)
    return np.sqrt(largest)


def remaining(
    names: Sequence[str], best: str, order: Sequence[int], p: Array, level: float
) -> ConfidenceSet:
    """Return the set of rows whose p value is above 1 - `level`."""
    # 1 - 0.9 falls short of 0.1 by rounding.
    alpha = 1.0 - level + 1e-12
    members = tuple(name for name, value in zip(names, p, strict=True) if value > alpha)
    left = tuple(names[row] for row in order if p[row] <= alpha)
    return ConfidenceSet(
        best=best,
        members=members,
        p=dict(zip(names, p.tolist(), strict=True)),
        eliminated=left,
    )


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
    names = list(rows)
    repeats = [_as_list(rows[name]) for name in names]
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
    centre = [float(np.mean([influence.value for influence in row])) for row in repeats]
    return {name: centre[place] + noise[:, place] for place, name in enumerate(names)}


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
