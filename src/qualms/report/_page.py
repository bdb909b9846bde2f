"""The offline page of `qualms score`: tables, curves and histograms."""

import json
import math
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qualms import __version__
from qualms.atomic import replacing, temporary_path
from qualms.evaluate import Curve, Histogram, Results, Scored, with_shown_items
from qualms.evaluate.rows import QUESTIONS
from qualms.evaluate.subsets import subset_label
from qualms.labels import values_text
from qualms.report._html import html_table
from qualms.report._index import page_style
from qualms.report._json_output import thin
from qualms.report._scored import difference_table, score_notes, score_table

PAGE_BYTES = 6_000_000
"""Size of a page, most of it the script that draws charts."""
MISSING = (
    "a page needs Jinja2 and Plotly, which are not installed: "
    "pip install 'qualms-bench[report]'"
)


def write_page(scored: Scored, path: Path, *, command: str = "") -> None:
    """Write the page atomically; it opens from disk with no network."""
    page = render_page(scored, command=command)
    with replacing(path) as temporary:
        # Bytes of a file name that are no text become "?".
        temporary.write_text(page, encoding="utf-8", errors="replace")


def check_page(path: Path) -> None:
    """Raise before any work unless a page can be written there."""
    if find_spec("jinja2") is None or find_spec("plotly") is None:
        raise ValueError(MISSING)
    check_room(path, PAGE_BYTES)


def check_room(path: Path, size: int) -> None:
    """Raise unless `size` bytes can be written beside `path`."""
    if path.is_dir():
        raise IsADirectoryError(
            f"cannot write {path}: it is a folder; give the path of a file, in it or"
            " elsewhere"
        )
    temporary = temporary_path(path)
    try:
        try:
            with temporary.open("xb") as file:
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"cannot write {path}: {error.strerror or error}; free "
            f"{max(1, size // 1_000_000)} MB there, or choose another folder"
        ) from error


def render_page(scored: Scored, *, command: str = "") -> str:
    """Return the page as one HTML text; every name in it is escaped."""
    try:
        from jinja2 import Environment, PackageLoader
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ValueError(MISSING) from error
    scored = with_shown_items(scored)
    loader = PackageLoader("qualms.report", "templates")
    page = Environment(loader=loader, autoescape=True).get_template("page.html")
    charts = [*_line_charts(scored), *_bar_charts(scored)]
    return page.render(
        results=scored.results,
        questions=QUESTIONS,
        table=html_table(score_table(scored), title=False),
        differences=_differences(scored),
        notes=score_notes(scored),
        style=page_style(),
        charts=charts,
        data=_embed(charts),
        plotly=get_plotlyjs(),
        command=command,
        version=__version__,
    )


def _differences(scored: Scored) -> str:
    if scored.comparison is None or not scored.comparison.contrasts:
        return ""
    return html_table(difference_table(scored.comparison), title=False)


def _embed(charts: list[dict[str, Any]]) -> str:
    # Inside <script> only "<" can end the data early, so it is escaped.
    return json.dumps(charts, allow_nan=False).replace("<", "\\u003c")


def _line_charts(scored: Scored) -> Iterator[dict[str, Any]]:
    """Yield a chart for each kind of curve and subset, with the curves of all files."""
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
            "title": f"{_TITLES.get(first.name, first.label)} ({_items(first.subset)})",
            "x": first.x_label,
            "y": first.label,
            "diagonal": first.name in ("reliability", "roc", "ood_roc"),
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
    "roc": 4,
    "ood_roc": 5,
}
_TITLES = {
    "referral_accuracy": "Accuracy after referral",
    "referral_auroc": "AUROC after referral",
    "referral_nll": "NLL after referral",
    "roc": "ROC",
    "ood_roc": "Shifted items told from others by uncertainty",
    "reliability": "Reliability",
    "risk_coverage": "Risk against coverage",
    "coverage_by_target": "Coverage along the target",
}


def _trace(name: str, curve: Curve, *, many: bool) -> dict[str, Any]:
    points = thin(curve.y)
    values = values_text(curve.settings)
    label = " · ".join(part for part in (name if many else "", values) if part)
    trace = {
        "label": label or name,
        "x": _numbers(curve.x[points]),
        "y": _numbers(curve.y[points]),
    }
    if curve.low is not None and curve.high is not None:
        trace["low"] = _numbers(curve.low[points])
        trace["high"] = _numbers(curve.high[points])
    return trace


def _bar_charts(scored: Scored) -> Iterator[dict[str, Any]]:
    for result in scored.results:
        for bars in result.histograms:
            yield _bar_chart(result, bars, many=len(scored.results) > 1)


def _bar_chart(result: Results, bars: Histogram, *, many: bool) -> dict[str, Any]:
    total = sum(float(counts.sum()) for counts in bars.parts.values()) or 1.0
    centres = (bars.edges[1:] + bars.edges[:-1]) / 2
    items = _items(bars.subset)
    items = f"{result.name}, {items}" if many else items
    return {
        "kind": "bars",
        "name": bars.name,
        "title": f"Uncertainty: {bars.label} ({items})",
        "x": bars.label,
        "y": "share of items",
        "width": float(bars.edges[1] - bars.edges[0]),
        "traces": [
            {"label": part, "x": _numbers(centres), "y": _numbers(counts / total)}
            for part, counts in bars.parts.items()
        ],
    }


def _items(subset: str) -> str:
    return {"all": "all items"}.get(subset, subset_label(subset))


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]
