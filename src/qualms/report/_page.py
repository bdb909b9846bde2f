"""One offline page: the table, curves, reliability, histograms, and how it was made."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qualms import __version__
from qualms.atomic import replacing
from qualms.evaluate import Bars, Contrast, Curve, Results, Row, Scored
from qualms.report._terminal import ARROW, number
from qualms.report._thin import thin

MISSING = (
    "a page needs Jinja2 and Plotly, which are not installed: "
    "pip install 'qualms[report]'"
)


def write_page(scored: Scored, path: Path, *, command: str = "") -> None:
    """Write the page atomically; it opens from disk with no network."""
    text = render_page(scored, command=command)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render_page(scored: Scored, *, command: str = "") -> str:
    """The page as one HTML text; every name in it is escaped."""
    try:
        from jinja2 import Environment, PackageLoader
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ValueError(MISSING) from error
    loader = PackageLoader("qualms.report", "templates")
    page = Environment(loader=loader, autoescape=True).get_template("page.html")
    charts = [*_line_charts(scored), *_bar_charts(scored)]
    return page.render(
        results=scored.results,
        table=_table(scored),
        comparison=scored.comparison,
        charts=charts,
        data=_embed(charts),
        plotly=get_plotlyjs(),
        command=command,
        version=__version__,
        number=number,
    )


def _embed(charts: list[dict[str, Any]]) -> str:
    # Inside <script> only "<" can end the data early, so it never stands there.
    return json.dumps(charts, allow_nan=False).replace("<", "\\u003c")


def _table(scored: Scored) -> list[dict[str, Any]]:
    """Rows by subset: label, variant and one cell per file."""
    contrasts = {}
    if scored.comparison is not None:
        contrasts = {
            (c.score, c.subset, c.variant): c for c in scored.comparison.contrasts
        }
    tables = [{row.key: row for row in result.rows} for result in scored.results]
    keys = dict.fromkeys(key for table in tables for key in table)
    names = [result.name for result in scored.results]
    return [
        _table_row([table.get(key) for table in tables], names, contrasts.get(key))
        for key in keys
    ]


def _table_row(
    rows: list[Row | None], names: list[str], contrast: Contrast | None
) -> dict[str, Any]:
    first = next(row for row in rows if row is not None)
    return {
        "label": first.label,
        "score": first.score,
        "arrow": ARROW[first.better],
        "better": first.better,
        "subset": first.subset,
        "variant": first.variant,
        "cells": [
            _cell(row, name, contrast) for row, name in zip(rows, names, strict=True)
        ],
    }


def _cell(row: Row | None, name: str, contrast: Contrast | None) -> dict[str, Any]:
    if row is None:
        return {"value": "-", "interval": "", "why": "", "tied": False, "best": False}
    defined = not math.isnan(row.value)
    bounded = math.isfinite(row.low) and math.isfinite(row.high)
    return {
        "value": number(row.value) if defined else "undefined",
        "interval": f"{number(row.low)} to {number(row.high)}" if bounded else "",
        "why": row.why,
        "tied": contrast is not None and name in contrast.tied,
        "best": contrast is not None and name == contrast.best,
    }


def _line_charts(scored: Scored) -> Iterator[dict[str, Any]]:
    """One chart per kind of curve and subset, all files and variants in it."""
    named = [
        (result.name, curve) for result in scored.results for curve in result.curves
    ]
    named.sort(key=lambda pair: (_RANK.get(pair[1].name, 9), pair[1].name))
    kinds = dict.fromkeys((curve.name, curve.subset) for _, curve in named)
    for kind in kinds:
        chosen = [
            (name, curve) for name, curve in named if (curve.name, curve.subset) == kind
        ]
        first = chosen[0][1]
        yield {
            "kind": "lines",
            "name": first.name,
            "title": f"{_TITLES.get(first.name, first.label)} ({first.subset})",
            "x": first.x_label,
            "y": first.label,
            "diagonal": first.name == "reliability",
            "markers": first.name in ("reliability", "coverage_by_target"),
            "traces": [
                _trace(name, curve, many=len(scored.results) > 1)
                for name, curve in chosen
            ],
        }


_RANK = {
    "referral_accuracy": 0,
    "referral_auroc": 1,
    "referral_nll": 2,
    "reliability": 3,
}
_TITLES = {
    "referral_accuracy": "Accuracy after referral",
    "referral_auroc": "AUROC after referral",
    "referral_nll": "NLL after referral",
    "reliability": "Reliability",
    "risk_coverage": "Risk against coverage",
    "coverage_by_target": "Coverage along the target",
}


def _trace(name: str, curve: Curve, *, many: bool) -> dict[str, Any]:
    kept = thin(curve.y)
    label = " · ".join(part for part in (name if many else "", curve.variant) if part)
    trace = {
        "label": label or name,
        "x": _numbers(curve.x[kept]),
        "y": _numbers(curve.y[kept]),
    }
    if curve.low is not None and curve.high is not None:
        trace["low"] = _numbers(curve.low[kept])
        trace["high"] = _numbers(curve.high[kept])
    return trace


def _bar_charts(scored: Scored) -> Iterator[dict[str, Any]]:
    for result in scored.results:
        for bars in result.bars:
            yield _bar_chart(result, bars, many=len(scored.results) > 1)


def _bar_chart(result: Results, bars: Bars, *, many: bool) -> dict[str, Any]:
    total = sum(float(counts.sum()) for counts in bars.parts.values()) or 1.0
    centres = (bars.edges[1:] + bars.edges[:-1]) / 2
    where = f"{result.name}, {bars.subset}" if many else bars.subset
    return {
        "kind": "bars",
        "name": bars.name,
        "title": f"Uncertainty: {bars.label} ({where})",
        "x": bars.label,
        "y": "share of items",
        "width": float(bars.edges[1] - bars.edges[0]),
        "traces": [
            {"label": part, "x": _numbers(centres), "y": _numbers(counts / total)}
            for part, counts in bars.parts.items()
        ],
    }


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]
