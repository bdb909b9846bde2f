"""The effects that a benchmark promises, decided by our numbers."""

import math
from collections.abc import Mapping

from qualms.benchmarks import Benchmark, Expectation, Preset, Settings, settings_text
from qualms.evaluate.results import Cell, Check, Key


def checks_of(
    benchmark: Benchmark, preset: Preset, cells: Mapping[Key, Cell]
) -> tuple[Check, ...]:
    """The benchmark's expectations at this preset, with our numbers."""
    known = {variant.name for variant in preset.variants}
    found = (
        Check(expectation=expectation, values=_values(expectation, cells))
        for expectation in benchmark.expectations.get(preset.name, ())
        if {expectation.variant, expectation.minus} - {""} <= known
    )
    return tuple(check for check in found if check.values)


def _values(expectation: Expectation, cells: Mapping[Key, Cell]) -> dict[str, float]:
    if expectation.contest:
        return _behind(expectation, cells)
    return {row: _value(expectation, row, cells) for row in expectation.rows}


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


def _behind(expectation: Expectation, cells: Mapping[Key, Cell]) -> dict[str, float]:
    """How far each value of a setting falls behind the best, where it does worst."""
    rounds: dict[Key, dict[str, float]] = {}
    for key, cell in cells.items():
        if not _takes_part(expectation, key) or not math.isfinite(cell.ours.mean):
            continue
        parts = dict(part.split("=", 1) for part in key.settings.split(", "))
        value = parts.pop(expectation.contest)
        place = key._replace(settings=settings_text(parts))
        rounds.setdefault(place, {})[value] = cell.ours.mean
    most: dict[str, float] = {}
    for means in rounds.values():
        best = max(means.values())
        for value, mean in means.items():
            most[value] = max(best - mean, most.get(value, 0.0))
    return most


def _takes_part(expectation: Expectation, key: Key) -> bool:
    return (
        key.score == expectation.score
        and key.row in expectation.rows
        and expectation.variant in ("", key.variant)
        and f"{expectation.contest}=" in key.settings
    )
