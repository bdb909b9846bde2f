"""One score, curve or histogram of a file as matplotlib axes: `results.plot(...)`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qualms.evaluate import Curve, Histogram, Results, ScoreRow
from qualms.evaluate.subsets import is_group, subset_label
from qualms.labels import values_text
from qualms.report._draw import MISSING, STYLE, fill_axes, legend_key
from qualms.report.figures import (
    SERIES,
    SOFT,
    CurveMark,
    Drawing,
    HistogramMark,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.wording import suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = {
    "ece": "reliability",
    "adaptive_ece": "reliability",
    "smooth_ece": "reliability",
    "auroc": "roc",
    "ood_auroc": "ood_roc",
    "aurc": "risk_coverage",
    "eaurc": "risk_coverage",
    "augrc": "risk_coverage",
    "risk_at_coverage": "risk_coverage",
    "coverage": "coverage_by_target",
}
"""The curve that belongs to a score."""
_DIAGONAL = ("reliability", "roc", "ood_roc")
_SIDE = (3.4, 2.9)
_LINE = 0.24
"""Height of a line of an interval plot, in inches."""


def plot(results: Results, what: str, *, axes: "Axes | None" = None) -> "Axes":
    """Draw `what` of a file; see `Results.plot`."""
    panel = _panel(results, what)
    try:
        from matplotlib import pyplot, rc_context
    except ImportError as error:
        raise ValueError(MISSING) from error
    with rc_context(STYLE):
        if axes is None:
            lines = len(panel.y_ticks or ())
            size = (5.0, 0.8 + _LINE * lines) if lines else _SIDE
            axes = pyplot.subplots(figsize=size, layout="constrained")[1]
        fill_axes(axes, panel)
        keyed = Drawing(name=what, title="", caption="", rows=((panel,),)).keyed
        if len(keyed) > 1:
            axes.legend(handles=[legend_key(label, m) for label, m in keyed.items()])
    return axes


def _panel(results: Results, what: str) -> Panel:
    name, subset = _name_and_subset(results, what)
    chosen = _about(results, subset) if subset else results.shown()
    bars = [bars for bars in chosen.histograms if bars.name == name]
    bars = [each for each in bars if subset or not is_group(each.subset)]
    if bars:
        return _bars(results, bars)
    wanted = CURVES.get(name, name)
    curves = [curve for curve in _with_risk(chosen) if curve.name == wanted]
    if curves:
        return _curves(results, curves[: len(SERIES)])
    rows = [row for row in chosen.rows if row.score == name]
    if not rows:
        _refuse(results, what)
    return _intervals(results, rows)


def _about(results: Results, subset: str) -> Results:
    """Return results about a set of items only, or about a group of those shown."""
    names = (subset, f"{results.subset}/{subset}") if is_group(subset) else (subset,)
    return replace(
        results,
        rows=tuple(row for row in results.rows if row.subset in names),
        curves=tuple(curve for curve in results.curves if curve.subset in names),
        histograms=tuple(bars for bars in results.histograms if bars.subset in names),
    )


def _name_and_subset(results: Results, what: str) -> tuple[str, str]:
    """Return what to draw, and its items; '' for those that the results are about."""
    names = _drawable(results)
    if what in names:
        return what, ""
    name = max((n for n in names if what.endswith(f"/{n}")), key=len, default=what)
    return name, what.removesuffix(name).rstrip("/")


def _drawable(results: Results) -> dict[str, None]:
    """Return the names of the scores, curves and histograms, each once."""
    return dict.fromkeys(
        (
            *(row.score for row in results.rows),
            *(curve.name for curve in _with_risk(results)),
            *(bars.name for bars in results.histograms),
        )
    )


def _refuse(results: Results, what: str) -> None:
    drawable = _drawable(results)
    raise LookupError(
        f"nothing to draw for {what!r} in {results.name}.{suggest(what, drawable)} It "
        f"has {', '.join(drawable)}."
    )


def _with_risk(results: Results) -> Iterator[Curve]:
    """Yield the curves, and accuracy after referral also as risk against coverage."""
    for curve in results.curves:
        yield curve
        if curve.name == "referral_accuracy":
            yield replace(
                curve,
                name="risk_coverage",
                label="error rate of the kept items",
                x_label="share kept",
                x=1.0 - curve.x,
                y=1.0 - curve.y,
            )


def _curves(results: Results, curves: Sequence[Curve]) -> Panel:
    first = curves[0]
    square = first.name in _DIAGONAL
    rule = (RuleMark((0.0, 0.0), (1.0, 1.0), line="--"),) if square else ()
    marks = tuple(
        CurveMark(
            x=curve.x,
            y=curve.y,
            low=curve.low,
            high=curve.high,
            colour=colour,
            marker="o" if first.name == "reliability" else "",
            label=_words(curve, curves),
        )
        for curve, colour in zip(curves, SERIES, strict=False)
    )
    unit = (0.0, 1.0) if square else (None, None)
    return Panel(
        marks=(*rule, *marks),
        title=_title(results, curves),
        x_label=first.x_label,
        y_label=first.label,
        x_range=unit,
        y_range=unit,
    )


def _title(results: Results, shown: Sequence[Curve | Histogram]) -> str:
    """Return the file's name, with its items where only some are shifted."""
    subsets = {thing.subset for thing in shown}
    if not results.has_shift or len(subsets) > 1 or "ood" in shown[0].name:
        return results.name
    return f"{results.name}, {subset_label(subsets.pop())}"


def _words(curve: Curve, curves: Sequence[Curve]) -> str:
    """Return the label of a curve among others; '' where it is the only one."""
    if len(curves) == 1:
        return ""
    same = len({other.subset for other in curves}) == 1
    subset = "" if same else subset_label(curve.subset)
    parts = filter(None, (subset, values_text(curve.settings)))
    return ", ".join(parts) or "as predicted"


def _bars(results: Results, several: Sequence[Histogram]) -> Panel:
    """Return a panel of histograms; those of several sets of items share its bins."""
    marks: list[Mark] = []
    for bars in several:
        total = sum(float(counts.sum()) for counts in bars.parts.values()) or 1.0
        items = f"{subset_label(bars.subset)}, " if len(several) > 1 else ""
        first = len(marks)
        marks += [
            HistogramMark(
                edges=bars.edges,
                heights=counts / total,
                colour=SERIES[(first + number) % len(SERIES)],
                label=f"{items}{part}",
            )
            for number, (part, counts) in enumerate(bars.parts.items())
        ]
    edges = several[0].edges
    return Panel(
        marks=tuple(marks),
        title=_title(results, several),
        x_label=several[0].label,
        y_label="share of items" if len(several) == 1 else "share of these items",
        x_range=(float(edges[0]), float(edges[-1])),
        y_range=(0.0, None),
    )


def _intervals(results: Results, rows: Sequence[ScoreRow]) -> Panel:
    """Return a panel with an interval for each set of items and setting."""
    marks: list[Mark] = []
    for number, row in enumerate(rows):  # the first on top
        up = float(len(rows) - number)
        if math.isfinite(row.low) and math.isfinite(row.high):
            marks.append(RuleMark((row.low, up), (row.high, up), colour=SERIES[0]))
        if math.isfinite(row.value):
            marks.append(PointMark(x=row.value, y=up, colour=SERIES[0]))
    aims = {row.entry.aim for row in rows if row.entry is not None}
    top = len(rows) + 0.5
    marks += [
        RuleMark((aim, 0.5), (aim, top), colour=SOFT, line="--")
        for aim in aims
        if aim is not None
    ]
    ticks = {
        float(len(rows) - number): ", ".join(
            filter(None, (subset_label(row.subset), row.detail))
        )
        for number, row in enumerate(rows)
    }
    arrow = {"higher": " (higher is better)", "lower": " (lower is better)"}
    return Panel(
        marks=tuple(marks),
        title=results.name,
        x_label=f"{rows[0].label}{arrow.get(rows[0].better, '')}",
        y_ticks=ticks,
        y_range=(0.5, top),
    )
