"""A common name for the uncalibrated intervals of several regression files.

One file has quantiles, another a mean and a variance. Both give intervals before any
calibration, whose coverage and length are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qualms.evaluate._results import Results
from qualms.evaluate.entry import Curve
from qualms.evaluate.rows import ScoreRow

KINDS = ("gaussian", "as predicted")
"""Settings of intervals that a file has before calibration."""
SHARED = "uncalibrated"
"""The setting of such intervals if files have different kinds."""


def with_shared_kind(results: Sequence[Results]) -> tuple[Results, ...]:
    """Return `results` with one name for intervals of two kinds."""
    kinds = {result.name: _kind(result) for result in results}
    if len(set(filter(None, kinds.values()))) < 2:
        return tuple(results)
    files = "; ".join(f"{kind} in {name}" for name, kind in kinds.items() if kind)
    note = f"intervals before calibration are {files}"
    return tuple(
        replace(
            result,
            rows=tuple(map(_renamed_row, result.rows)),
            curves=tuple(map(_renamed_curve, result.curves)),
            notes=(*result.notes, note),
        )
        for result in results
    )


def aims(result: Results) -> frozenset[float]:
    """Return the coverages that the intervals and sets of a file aim at."""
    entries = (row.entry for row in result.rows if "interval" in row.settings)
    return frozenset(e.aim for e in entries if e is not None and e.aim is not None)


def _kind(result: Results) -> str:
    intervals = (row.settings.get("interval") for row in result.rows)
    return next((kind for kind in intervals if kind in KINDS), "")


def _renamed_row(row: ScoreRow) -> ScoreRow:
    entry = row.entry
    if entry is not None:
        entry = replace(entry, settings=_renamed(entry.settings))
    return replace(row, settings=_renamed(row.settings), entry=entry)


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: SHARED if name == "interval" and value in KINDS else value
        for name, value in settings.items()
    }


def _renamed_curve(curve: Curve) -> Curve:
    return replace(curve, settings=_renamed(curve.settings))
