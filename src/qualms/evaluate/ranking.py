"""Which rows are best and their equals, and whether the promised effects showed."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from qualms.benchmarks import Benchmark, Expectation, Preset, Settings, settings_text
from qualms.evaluate.entry import Array
from qualms.evaluate.results import Cell, Check, Key
from qualms.scores import (
    Difference,
    TieGroup,
    paired_difference,
    replicates_needed,
    tie_group,
)


def checked(
    benchmark: Benchmark, preset: Preset, cells: Mapping[Key, Cell]
) -> tuple[Check, ...]:
    """The benchmark's expectations at this preset, with our numbers."""
    known = {variant.name for variant in preset.variants}
    return tuple(
        Check(
            expectation=expectation,
            values={row: _value(expectation, row, cells) for row in expectation.rows},
        )
        for expectation in benchmark.expectations.get(preset.name, ())
        if {expectation.variant, expectation.minus} - {""} <= known
    )


def _value(expectation: Expectation, row: str, cells: Mapping[Key, Cell]) -> float:
    def mean(variant: str, row: str, score: str, settings: Settings) -> float:
        key = Key(variant, row, settings_text(settings), score)
        return cells[key].ours.mean if key in cells else math.nan

    own = expectation.variant, row, expectation.score, expectation.settings
    other = (
        expectation.minus or expectation.variant,
        expectation.pairs[row],
        expectation.minus_score or expectation.score,
        expectation.settings
        if expectation.minus_settings is None
        else expectation.minus_settings,
    )
    return mean(*own) - (mean(*other) if other != own else 0.0)


class Ranking(NamedTuple):
    """The best row of every column, with its equals and the others' distance."""

    ties: dict[Key, TieGroup]
    """By variant, settings and score; the row is ''."""
    differences: dict[Key, Difference]
    """Each row that is ranked, minus the best of its column."""


def ranking_of(cells: Iterable[Cell], level: float) -> Ranking:
    """Rank the rows of every column whose cells are ranked and have replicates."""
    columns: dict[Key, list[_Rival]] = {}
    for cell in cells:
        rival = _rival(cell)
        if rival is not None:
            columns.setdefault(cell.key._replace(row=""), []).append(rival)
    ties: dict[Key, TieGroup] = {}
    differences: dict[Key, Difference] = {}
    for key, rivals in columns.items():
        if not _enough(rivals, level):
            continue
        best = ties[key] = tie_group(
            {rival.row: rival.value for rival in rivals},
            {rival.row: rival.replicates for rival in rivals},
            better=rivals[0].better,
            level=level,
        )
        leader = next(rival for rival in rivals if rival.row == best.best)
        for rival in rivals:
            differences[key._replace(row=rival.row)] = paired_difference(
                rival.replicates,
                leader.replicates,
                rival.value,
                leader.value,
                level=level,
            )
    return Ranking(ties, differences)


class _Rival(NamedTuple):
    """What of a row is compared: a score, or how far it is from its aim."""

    row: str
    value: float
    replicates: Array
    better: Literal["higher", "lower"]


def _rival(cell: Cell) -> _Rival | None:
    if not cell.ranked or cell.replicates is None:
        return None
    value, replicates, better = cell.ours.mean, cell.replicates, cell.better
    if cell.aim is not None:
        value, better = abs(value - cell.aim), "lower"
        replicates = np.abs(replicates - cell.aim)
    if better == "neither" or not math.isfinite(value):
        return None
    return (
        _Rival(cell.key.row, value, replicates, better)
        if np.isfinite(replicates).all()
        else None
    )


def _enough(rivals: list[_Rival], level: float) -> bool:
    """Whether there is something to compare, with replicates enough to tell."""
    if len(rivals) < 2:
        return False
    replicates = min(len(rival.replicates) for rival in rivals)
    return replicates >= replicates_needed(len(rivals) - 1, level=level)
