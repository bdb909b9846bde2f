"""Results as JSON (documented in docs/json.md) and curves as CSV."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import __version__
from qualms.arrays import Array
from qualms.evaluate import (
    Comparison,
    Curve,
    GroupSpread,
    OperatingPoint,
    Results,
    Scored,
    ScoreRow,
)
from qualms.evaluate.drawings import thin
from qualms.inference import Bounded
from qualms.labels import labels_text
from qualms.report._csv_files import write_records

JSON_FORMAT = 5


def to_json(scored: Scored) -> dict[str, Any]:
    """Return plain data of results and comparison; stable within a `format`."""
    return {
        "format": JSON_FORMAT,
        "qualms": __version__,
        "files": [_file(result) for result in scored.results],
        "comparison": _comparison(scored.comparison),
    }


def _file(result: Results) -> dict[str, Any]:
    return {
        "name": result.name,
        "task": result.task,
        "items": result.n,
        "draws": result.draws,
        "subset": result.subset,
        "uncertainty": result.uncertainty or None,
        "header": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(result.header).items()
        },
        "notes": list(result.notes),
        "aggregations": list(result.aggregations),
        "interval": {
            "level": result.level,
            "resamples": result.resamples,
            "seed": result.seed,
        },
        "verdict": [
            {
                "question": answer.question,
                "answer": answer.answer,
                "because": answer.because,
                "words": answer.words or answer.answer,
            }
            for answer in result.verdict
        ],
        "points": [_point(point) for point in result.points],
        "groups": [_groups(spread) for spread in result.groups],
        "scores": [_row(row) for row in result.rows],
        "curves": [_curve(curve) for curve in result.curves],
    }


def _point(point: OperatingPoint) -> dict[str, Any]:
    return {
        "threshold": point.rule,
        "unit": point.unit,
        "subset": point.subset,
        # Infinite where all items are called, or none is.
        "value": _number(point.threshold),
        "source": point.source,
        "answer": point.answer,
        "because": point.because,
    }


def _groups(spread: GroupSpread) -> dict[str, Any]:
    return {
        "score": spread.score,
        "settings": dict(spread.settings),
        "subset": spread.subset,
        "array": spread.array,
        "groups": list(spread.groups),
        "left_out": list(spread.left_out),
        "worst": spread.worst,
        "least": _bounded(spread.least),
        "best": spread.best,
        "gap": _bounded(spread.gap),
        "differences": {
            name: _bounded(gap) for name, gap in spread.differences.items()
        },
    }


def _bounded(number: Bounded) -> dict[str, Any]:
    return {name: _number(value) for name, value in number._asdict().items()}


def _row(row: ScoreRow) -> dict[str, Any]:
    return {
        "score": row.score,
        "label": row.label,
        "subset": row.subset,
        "settings": dict(row.settings),
        "better": row.better,
        "value": _number(row.value),
        "low": _number(row.low),
        "high": _number(row.high),
        "items": row.n,
        "why": row.why,
        "method": row.method,
        "no_interval": row.no_interval,
        "aim": None if row.entry is None else row.entry.aim,
    }


def _curve(curve: Curve) -> dict[str, Any]:
    shown = thin(curve.y)
    return {
        "name": curve.name,
        "label": curve.label,
        "subset": curve.subset,
        "settings": dict(curve.settings),
        "x_label": curve.x_label,
        "points": curve.points or len(curve.x),
        "x": [_number(value) for value in curve.x[shown].tolist()],
        "y": [_number(value) for value in curve.y[shown].tolist()],
        "low": _ends(curve.low, shown),
        "high": _ends(curve.high, shown),
    }


def _ends(values: Array | None, shown: NDArray[np.int64]) -> list[float | None] | None:
    if values is None:
        return None
    return [_number(value) for value in values[shown].tolist()]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "names": list(comparison.names),
        "notes": list(comparison.notes),
        "contrasts": [
            {
                "score": contrast.score,
                "subset": contrast.subset,
                "settings": dict(contrast.settings),
                "better": contrast.better,
                "best": contrast.best,
                "tied": list(contrast.tied),
                "difference": {
                    name: {
                        "value": _number(gap.value),
                        "low": _number(gap.low),
                        "high": _number(gap.high),
                        "p": _number(gap.p),
                    }
                    for name, gap in contrast.difference.items()
                },
            }
            | ({"reason": contrast.reason} if contrast.reason else {})
            | ({} if contrast.aim is None else {"aim": contrast.aim})
            for contrast in comparison.contrasts
        ],
    }


def write_curves(results: Sequence[Results], path: Path) -> None:
    """Write every curve at full length as CSV, one line per point.

    Values that are undefined stay empty.
    """
    write_records(
        (
            {
                "file": result.name,
                "curve": curve.name,
                "items": curve.subset,
                "by": labels_text(curve.settings),
                "x": x,
                "y": y if math.isfinite(y) else "",
            }
            for result in results
            for curve in result.curves
            for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True)
        ),
        path,
    )
