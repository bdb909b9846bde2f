"""The cells of one row: its repeats, calibrated both ways, scored and resampled."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qualms.benchmarks._benchmark import Place
from qualms.evaluate._benchmark_results import Array, Cell, Key
from qualms.evaluate._entry import Settings
from qualms.evaluate._measured import (
    SCORES,
    Calibration,
    Measured,
    calibrate,
    calibrate_as_published,
    items_of,
    restricted,
    scores_of,
)
from qualms.evaluate._replicates import (
    REPLAYED,
    Weights,
    draw_weights,
    held_replicates,
    mean_of_repeats,
    replicates,
)
from qualms.evaluate._runs import Runs
from qualms.evaluate._weighted import Ratio, calibrate_weighted, density_ratio
from qualms.scores import percentile_interval
from qualms.spec import RunSpec


class Shared(NamedTuple):
    """What the rows of one variant have in common."""

    runs: Runs
    settings: Settings
    draws: dict[tuple[int, int], Weights]
    """By the numbers of validation and test items."""
    ratios: dict[tuple[str, ...], Ratio]
    """By the hashes of the runs pooled."""


class Repeat(NamedTuple):
    """One repeat of a row, with both calibrations."""

    measured: Measured
    ours: Calibration
    theirs: Calibration | None
    """None where the released code has no such row."""


def repeat_of(place: Place, specs: tuple[RunSpec, ...], shared: Shared) -> Repeat:
    """What the pool of `specs` says at `place`, calibrated."""
    variant, _, row = place
    alpha = _alpha(place)
    val = shared.runs.pooled(specs, "val")
    test = restricted(shared.runs.pooled(specs, variant.test), variant)
    if shared.settings.resamples and (val.n, test.n) not in shared.draws:
        shared.draws[val.n, test.n] = draw_weights(val, test, shared.settings)
    measured = Measured(items_of(val, row, alpha), items_of(test, row, alpha))
    if row.weighted:
        key = tuple(spec.hash for spec in specs)
        if key not in shared.ratios:
            shared.ratios[key] = density_ratio(val, test)
        ours = calibrate_weighted(measured, shared.ratios[key], alpha)
        return Repeat(measured, ours, None)
    theirs = None if row.beyond else calibrate_as_published(measured, alpha)
    return Repeat(measured, calibrate(measured, alpha), theirs)


def cells_of(place: Place, repeats: list[Repeat], shared: Shared) -> Iterator[Cell]:
    """One cell per score, over all repeats of a row."""
    ours = [scores_of(repeat.measured, repeat.ours) for repeat in repeats]
    theirs = [
        scores_of(repeat.measured, repeat.theirs)
        for repeat in repeats
        if repeat.theirs is not None
    ]
    samples = _samples(place, repeats, shared) if shared.settings.resamples else None
    for column, score in enumerate(SCORES):
        found = None
        if samples is not None and column < REPLAYED:
            found = samples[:, column]
        low, high = _interval(found, shared.settings.level)
        values = tuple(line[column] for line in ours)
        undefined = any(map(math.isnan, values))
        yield Cell(
            key=Key(place.variant.name, place.alpha, place.row.name, score),
            values=values,
            as_published=tuple(line[column] for line in theirs),
            low=low,
            high=high,
            samples=found,
            why="no test item is accepted" if undefined else "",
        )


def _alpha(place: Place) -> float:
    if place.alpha is None:
        raise ValueError(
            f"variant {place.variant.name!r} must state the alphas of its intervals, "
            "got None"
        )
    return place.alpha


def _samples(place: Place, repeats: list[Repeat], shared: Shared) -> Array:
    each = []
    for measured, ours, _ in repeats:
        weights = shared.draws[len(measured.val.target), len(measured.test.target)]
        if place.row.weighted:
            each.append(held_replicates(measured, ours, weights))
        else:
            each.append(replicates(measured, _alpha(place), weights))
    return mean_of_repeats(np.stack(each), shared.settings.seed)


def _interval(samples: Array | None, level: float) -> tuple[float, float]:
    if samples is None:
        return math.nan, math.nan
    if np.isinf(samples).any():
        # Between a number and infinity there is nothing to interpolate.
        ends = np.array([1 - level, 1 + level]) / 2
        low, high = np.quantile(samples, ends, method="closest_observation")
        return float(low), float(high)
    interval = percentile_interval(samples, level=level)
    return interval.low, interval.high


def empty_cells(place: Place, why: str) -> Iterator[Cell]:
    """Cells without values that say why."""
    for score in SCORES:
        key = Key(place.variant.name, place.alpha, place.row.name, score)
        yield Cell(key=key, why=why)
