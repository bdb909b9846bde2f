"""Rankings of files or rows: the best, and those that cannot be told apart from it.

The group of rows that may be best is a model confidence set (Hansen, Lunde & Nason,
2011), so that no row is fixed as the best beforehand.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from qualms.arrays import Array
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.estimates import (
    ALIKE,
    UNKNOWN,
    Designs,
    K,
    influences_of,
    replicates_of,
)
from qualms.inference import (
    ONE_RUN,
    ConfidenceSet,
    Design,
    ErrorRanges,
    Influence,
    RowSeeds,
    Spread,
    compare_gaps,
    compare_replicates,
    compare_rows,
    influence_difference,
    influence_replicates,
    why_uncompared,
)
from qualms.scores import Difference
from qualms.scores.influence import BinGaps, SmoothGaps


class Rival(NamedTuple):
    """A file or row that is ranked by one score."""

    name: str
    value: float
    """Mean over repeats."""
    entries: tuple[Entry, ...]
    """One per repeat."""
    replicates: Array | None = None
    """Replicates of the value, for a score without a known influence."""
    seeds: Spread = ONE_RUN
    """Spread of the value due to seeds."""
    few: str = ""
    """Reason why the runs do not show this spread; '' if they do, or for one run."""
    far: bool = False
    """True if they do not since some of them lie far from the others: it is left out of
    the ranking, and the others are ranked."""
    made_by: str = ""
    """A word that rivals of the same runs share; '' for one with runs of its own."""
    by_run: tuple[float, ...] = ()
    """Its value by each of these runs."""


class Ranking(NamedTuple):
    """The rivals that may be best by one score, and all differences to the best."""

    group: ConfidenceSet
    differences: Mapping[str, Difference]
    """Each rival minus the best; with an aim, of the distances from it."""


def rankings(
    columns: Mapping[K, Sequence[Rival]],
    design: Design,
    options: ScoreOptions,
) -> dict[K, Ranking]:
    """Rank the rivals of every column that has at least two of them.

    `design` is that of all items; all rivals of a column are scored on the same items.
    """
    designs = Designs(design)
    ranked: dict[K, Ranking] = {}
    resampled: dict[K, list[Rival]] = {}
    for key, everyone in columns.items():
        able = [rival for rival in everyone if _able(rival)]
        rivals = [rival for rival in able if not rival.far]
        if len(rivals) < 2 <= len(able):
            ranked[key] = uncompared(able, next(r.few for r in able if r.far))
            continue
        sizes = {len(rival.entries[0].index) for rival in rivals}
        if len(rivals) < 2 or len(sizes) > 1:  # fitted on other validation items
            continue
        if few := next(filter(None, (rival.few for rival in rivals)), ""):
            ranked[key] = uncompared(rivals, few)
            continue
        influences = {rival.name: influences_of(rival.entries) for rival in rivals}
        own_design = designs.of(rivals[0].entries[0].index)
        if reason := why_uncompared(influences.values(), own_design):
            ranked[key] = uncompared(rivals, reason)
        elif all(_usable(repeats) for repeats in influences.values()):
            ranked[key] = _by_influence(rivals, influences, own_design, options)
        elif not all(influences.values()):
            resampled[key] = rivals
        else:
            ranked[key] = _by_gaps(rivals, influences, own_design, options)
    return ranked | _resampled_rankings(resampled, design, options)


class PairDifference(NamedTuple):
    """One rival minus another."""

    difference: Difference
    """Difference of the values, or of their distances from an aim."""
    reason: str = ""
    """Reason for having no interval; '' if it has one."""


def pair_differences(
    columns: Mapping[K, Sequence[Rival]], design: Design, options: ScoreOptions
) -> dict[K, dict[tuple[str, str], PairDifference]]:
    """Return the first minus the second of every two rivals of each column.

    A difference has no interval where `rankings` of the two alone gives none.
    """
    designs = Designs(design)
    able = {key: [r for r in all_ if _able(r)] for key, all_ in columns.items()}
    influences = {
        (key, rival.name): influences_of(rival.entries)
        for key, rivals in able.items()
        for rival in rivals
    }
    unknown = {
        key: rivals
        for key, rivals in able.items()
        if not all(influences[key, rival.name] for rival in rivals)
    }
    replicates = _replicates(unknown, design, options)
    differences: dict[K, dict[tuple[str, str], PairDifference]] = {}
    for key, rivals in able.items():
        if len(rivals) < 2:
            continue
        differences[key] = {}
        ranges = ErrorRanges()
        for one, other in combinations(rivals, 2):
            pair = _Pair(
                (one, other),
                {r.name: influences[key, r.name] for r in (one, other)},
                {
                    r.name: replicates[key, r.name]
                    for r in (one, other)
                    if (key, r.name) in replicates
                },
                designs.of(one.entries[0].index),
                ranges,
            )
            differences[key][one.name, other.name] = _pair_difference(pair, options)
    return differences


class _Pair(NamedTuple):
    """Two rivals of a column, with the influences or replicates of their items."""

    rivals: tuple[Rival, Rival]
    influences: Mapping[str, Sequence[Influence]]
    replicates: Mapping[str, Array]
    design: Design
    ranges: ErrorRanges


def _pair_difference(pair: _Pair, options: ScoreOptions) -> PairDifference:
    """Return the first of two rivals minus the other."""
    one, other = pair.rivals
    influences = pair.influences
    usable = all(map(_usable, influences.values()))
    few = one.few or other.few
    reason = few or why_uncompared(influences.values(), pair.design)
    if reason or len(one.entries[0].index) != len(other.entries[0].index):
        ranking = uncompared(pair.rivals, reason or UNKNOWN)
    elif usable and one.entries[0].aim is None:
        return PairDifference(
            influence_difference(
                influences[one.name],
                influences[other.name],
                design=pair.design,
                level=options.level,
                seeds=(one.seeds, other.seeds),
            )
        )
    elif usable:
        ranking = _by_influence(pair.rivals, influences, pair.design, options)
    elif all(influences.values()):
        ranking = _by_gaps(pair.rivals, influences, pair.design, options, pair.ranges)
    elif len(pair.replicates) == len(pair.rivals):
        ranking = _resampled(pair.rivals, pair.replicates, options)
    else:
        ranking = uncompared(pair.rivals, UNKNOWN)
    return _pair_of(ranking, pair.rivals)


def _pair_of(ranking: Ranking, rivals: tuple[Rival, Rival]) -> PairDifference:
    """Return the first of two rivals minus the other, by their ranking."""
    one, other = rivals
    group = ranking.group
    if group.best == other.name:
        return PairDifference(ranking.differences[one.name], group.reason)
    gap = ranking.differences[other.name]
    turned = Difference(value=-gap.value, low=-gap.high, high=-gap.low, p=gap.p)
    return PairDifference(turned, group.reason)


def _resampled_rankings(
    columns: Mapping[K, Sequence[Rival]], design: Design, options: ScoreOptions
) -> dict[K, Ranking]:
    """Rank columns whose rivals all have replicates."""
    ranked: dict[K, Ranking] = {}
    replicates = _replicates(columns, design, options)
    for key, rivals in columns.items():
        samples = {rival.name: replicates.get((key, rival.name)) for rival in rivals}
        if all(sample is not None for sample in samples.values()):
            ranked[key] = _resampled(rivals, samples, options)
    return ranked


def _resampled(
    rivals: Sequence[Rival], samples: Mapping[str, Array | None], options: ScoreOptions
) -> Ranking:
    """Rank by replicates, unless those of one rival are constant."""
    known = {name: sample for name, sample in samples.items() if sample is not None}
    if any(float(np.ptp(sample)) == 0.0 for sample in known.values()):
        return uncompared(rivals, ALIKE)
    return _by_replicates(rivals, known, options)


def _by_gaps(
    rivals: Sequence[Rival],
    influences: Mapping[str, Sequence[Influence]],
    design: Design,
    options: ScoreOptions,
    ranges: ErrorRanges | None = None,
) -> Ranking:
    """Rank calibration errors, or give the reason why that is not possible."""
    reasons = [
        influence.reason for repeats in influences.values() for influence in repeats
    ]
    reason = next(filter(None, reasons), "")
    gaps = (BinGaps, SmoothGaps)
    if not reason and all(
        isinstance(influence.construction, gaps)
        for repeats in influences.values()
        for influence in repeats
    ):
        return Ranking(
            *compare_gaps(
                influences,
                design=design,
                level=options.level,
                seed=options.seed,
                seeds={rival.name: rival.seeds for rival in rivals},
                ranges=ranges,
            )
        )
    return uncompared(rivals, reason or UNKNOWN)


def uncompared(rivals: Sequence[Rival], reason: str) -> Ranking:
    """Return a ranking in which no rival is called better, with the `reason`."""
    entry = rivals[0].entries[0]
    aim, sign = entry.aim, -1.0 if entry.better == "higher" else 1.0
    values = {r.name: r.value if aim is None else abs(r.value - aim) for r in rivals}
    sign = sign if aim is None else 1.0
    best = min(values, key=lambda name: sign * values[name])
    group = ConfidenceSet(
        best=best,
        members=tuple(values),
        p=dict.fromkeys(values, 1.0),
        eliminated=(),
        reason=reason,
    )
    differences = {
        name: Difference(
            value=value - values[best], low=math.nan, high=math.nan, p=math.nan
        )
        for name, value in values.items()
    }
    return Ranking(group, differences)


def _by_influence(
    rivals: Sequence[Rival],
    influences: Mapping[str, Sequence[Influence]],
    design: Design,
    options: ScoreOptions,
) -> Ranking:
    entry = rivals[0].entries[0]
    if entry.aim is not None or entry.better == "neither":
        replicates = influence_replicates(influences, design=design, seed=options.seed)
        return _by_replicates(rivals, replicates, options)
    return Ranking(
        *compare_rows(
            influences,
            better=entry.better,
            design=design,
            level=options.level,
            seed=options.seed,
            seeds=_row_seeds(rivals),
        )
    )


def _by_replicates(
    rivals: Sequence[Rival], replicates: Mapping[str, Array], options: ScoreOptions
) -> Ranking:
    better, aim = rivals[0].entries[0].better, rivals[0].entries[0].aim
    values = {rival.name: rival.value for rival in rivals}
    if aim is not None:
        better = "lower"
        values = {name: abs(value - aim) for name, value in values.items()}
        replicates = {name: np.abs(sample - aim) for name, sample in replicates.items()}
    return Ranking(
        *compare_replicates(
            values,
            replicates,
            better=better,
            level=options.level,
            seed=options.seed,
            seeds=_row_seeds(rivals),
        )
    )


def _row_seeds(rivals: Sequence[Rival]) -> dict[str, RowSeeds]:
    """Return how each rival varies with its seeds, and the runs that it shares."""
    return {
        rival.name: RowSeeds(rival.seeds, rival.made_by, rival.by_run)
        # Of pools that overlap, runs say less than as many independent ones.
        if rival.seeds.freedom == len(rival.by_run) - 1
        else RowSeeds(rival.seeds)
        for rival in rivals
    }


def _replicates(
    columns: Mapping[K, Sequence[Rival]], design: Design, options: ScoreOptions
) -> dict[tuple[K, str], Array]:
    """Return paired replicates of the rivals without a known influence."""
    rivals = {
        (key, rival.name): rival for key, all_ in columns.items() for rival in all_
    }
    samples = {
        key: rival.replicates
        for key, rival in rivals.items()
        if rival.replicates is not None
    }
    entries = {k: rival.entries for k, rival in rivals.items() if k not in samples}
    return samples | replicates_of(entries, design, options)


def _able(rival: Rival) -> bool:
    first = rival.entries[0]
    directed = first.better != "neither" or first.aim is not None
    return first.ranked and directed and math.isfinite(rival.value)


def _usable(influences: Sequence[Influence]) -> bool:
    return bool(influences) and all(
        influence.values is not None for influence in influences
    )
