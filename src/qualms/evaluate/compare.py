"""Several files beside each other: paired differences and tie groups per score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qualms.evaluate.results import Results, ScoreRow
from qualms.scores import Better, Difference, paired_difference, tie_group

DIFFERENT_ITEMS = (
    "the files do not hold the same items in the same order, so their differences "
    "are not paired and no tie groups are given"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One score over all files: the best, and who cannot be told apart from it."""

    score: str
    label: str
    subset: str
    settings: Mapping[str, Any]
    better: Better
    best: str
    tied: tuple[str, ...]
    """Files that cannot be told apart from the best, the best itself included."""
    difference: Mapping[str, Difference]
    """Each file minus the best, paired over items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The contrasts of every score that all files share."""

    names: tuple[str, ...]
    contrasts: tuple[Contrast, ...] = ()
    notes: tuple[str, ...] = ()


def compare(results: Sequence[Results]) -> Comparison:
    """Paired differences and tie groups between files that hold the same items."""
    names = tuple(result.name for result in results)
    tasks = {result.task for result in results}
    if len(tasks) > 1:
        raise ValueError(
            "files compare only within one task, got "
            + ", ".join(f"{result.name}: {result.task}" for result in results)
        )
    if len({result.identity for result in results}) > 1:
        return Comparison(names=names, notes=(DIFFERENT_ITEMS,))
    tables = [{row.key: row for row in result.rows} for result in results]
    shared = [key for key in tables[0] if all(key in table for table in tables)]
    rows = [
        {name: table[key] for name, table in zip(names, tables, strict=True)}
        for key in shared
    ]
    return Comparison(
        names=names,
        contrasts=tuple(
            _contrast(row, results[0].level) for row in rows if _usable(row)
        ),
    )


def _usable(rows: Mapping[str, ScoreRow]) -> bool:
    first = next(iter(rows.values()))
    return first.better != "neither" and all(
        math.isfinite(row.value)
        and row.replicates is not None
        and len(row.replicates) > 0
        for row in rows.values()
    )


def _contrast(rows: Mapping[str, ScoreRow], level: float) -> Contrast:
    first = next(iter(rows.values()))
    values = {name: row.value for name, row in rows.items()}
    samples = {
        name: row.replicates for name, row in rows.items() if row.replicates is not None
    }
    tied = tie_group(values, samples, better=first.better, level=level)
    return Contrast(
        score=first.score,
        label=first.label,
        subset=first.subset,
        settings=first.settings,
        better=first.better,
        best=tied.best,
        tied=tuple(tied.members),
        difference={
            name: paired_difference(
                samples[name],
                samples[tied.best],
                values[name],
                values[tied.best],
                level=level,
            )
            for name in rows
        },
    )
