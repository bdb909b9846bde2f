"""The figures of predictions files, as declarations.

A figure for each kind of curve, and not for each set of items: in-domain and shifted
items, or several files, stand in one panel with the same axes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qualms.evaluate import Curve, Histogram, Results
from qualms.evaluate.subsets import is_group, subset_label
from qualms.labels import values_text
from qualms.report.figures import (
    SERIES,
    CurveMark,
    Drawing,
    HistogramMark,
    Panel,
    RuleMark,
)

MOST_SERIES = 6
"""Curves in a panel; figures have six colours."""
MOST_PANELS = 6
_WIDEST, _PAGE = 3.4, 6.9
"""Inches of a panel, and of all panels beside each other: the width of a page."""
_ASPECT = 2.6 / 3.4


class _CurveWords(NamedTuple):
    """Words and look of a kind of curve."""

    title: str
    caption: str
    diagonal: bool = False


_REFERRAL = (
    "The most uncertain items are referred to an expert, and the score is of those that"
    " are kept. Where a curve gets better from left to right, the uncertainty finds"
    " errors."
)
_ABOUT: Mapping[str, _CurveWords] = {
    "referral_accuracy": _CurveWords("Accuracy after referral", _REFERRAL),
    "referral_auroc": _CurveWords("AUROC after referral", _REFERRAL),
    "referral_nll": _CurveWords("NLL after referral", _REFERRAL),
    "referral_recall_at_1": _CurveWords(
        "R@1 after referral",
        "A person checks the most uncertain queries, and R@1 is of those that are kept."
        " Where a curve gets better from left to right, the uncertainty finds wrong"
        " neighbours.",
    ),
    "reliability": _CurveWords(
        "Reliability",
        "How often predictions of a confidence are right. On the dashed line confidence"
        " says the truth; below it, it claims too much.",
        diagonal=True,
    ),
    "calibration": _CurveWords(
        "Calibration",
        "How often items with a P(y=1) are of class 1, smoothed, with pointwise 95 %"
        " intervals. On the dashed line it says the truth.",
        diagonal=True,
    ),
    "roc": _CurveWords(
        "ROC",
        "Items of the class that are found, against items of the other that are taken"
        " for it, as the threshold moves. The dashed line is a coin.",
        diagonal=True,
    ),
    "ood_roc": _CurveWords(
        "Shifted items told from others by uncertainty",
        "Shifted items that a threshold on the uncertainty finds, against in-domain"
        " items that it takes for them. The dashed line is a coin.",
        diagonal=True,
    ),
    "risk_coverage": _CurveWords(
        "Risk against coverage",
        "The mean error of the items that are kept, the most certain ones first.",
    ),
    "coverage_by_target": _CurveWords(
        "Coverage along the target",
        "The share of intervals that hold their target, for items with such a target.",
    ),
}
_HISTOGRAM = (
    "How uncertain the predictions are, right and wrong ones apart. An uncertainty that"
    " finds errors has the wrong ones on the right."
)


class _DrawnCurve(NamedTuple):
    """A curve, and what distinguishes it from others of its kind."""

    file: str
    subset: str
    settings: Mapping[str, Any]
    curve: Curve


def file_drawings(results: Sequence[Results]) -> Iterator[Drawing]:
    """Yield the figures of files with the same items."""
    every = [
        (result.name, curve)
        for result in results
        for curve in result.curves
        if not is_group(curve.subset)
    ]
    order = [*_ABOUT, *(curve.name for _, curve in every)]
    for kind in dict.fromkeys(order):
        named = [(name, curve) for name, curve in every if curve.name == kind]
        if named:
            yield _curve_drawing(
                kind, [_DrawnCurve(name, c.subset, c.settings, c) for name, c in named]
            )
    bars = [
        (result.name, each)
        for result in results
        for each in result.histograms
        if not is_group(each.subset)
    ]
    for kind in dict.fromkeys(each.name for _, each in bars):
        yield _histogram_drawing(kind, [pair for pair in bars if pair[1].name == kind])


def _curve_drawing(kind: str, series: Sequence[_DrawnCurve]) -> Drawing:
    first = series[0].curve
    about = _ABOUT.get(kind, _CurveWords(first.label, ""))
    panels = [_panel(kind, title, each) for title, each in _panels(series)]
    rows = tuple(_rows(panels))
    return Drawing(
        name=f"figure_{kind}",
        title=about.title,
        caption=about.caption,
        rows=rows,
        size=_size(rows),
    )


def _size(rows: Sequence[Sequence[Panel]]) -> tuple[float, float]:
    """Return the size of panels of a figure that fits a page."""
    width = min(_WIDEST, _PAGE / max(map(len, rows), default=1))
    return width, _ASPECT * width


def _rows(panels: Sequence[Panel]) -> Iterator[tuple[Panel, ...]]:
    """Yield panels in rows of at most three."""
    shown = panels[:MOST_PANELS]
    wide = 2 if len(shown) in (2, 4) else 3
    for start in range(0, len(shown), wide):
        yield tuple(shown[start : start + wide])


def _panels(series: Sequence[_DrawnCurve]) -> Iterator[tuple[str, list[_DrawnCurve]]]:
    """Yield curves by panel: all in one if they are few, else by their settings."""
    if len(series) <= MOST_SERIES:
        yield "", list(series)
        return
    keys = list(dict.fromkeys(key for each in series for key in each.settings))
    for names in (keys[:-1], keys):
        by_title: dict[str, list[_DrawnCurve]] = {}
        for each in series:
            settings = {name: each.settings.get(name, "") for name in names}
            by_title.setdefault(values_text(settings), []).append(each)
        fits = all(len(members) <= MOST_SERIES for members in by_title.values())
        if names and (fits or names == keys):
            yield from by_title.items()
            return
    yield "", list(series)


def _panel(kind: str, title: str, series: Sequence[_DrawnCurve]) -> Panel:
    diagonal = kind in _ABOUT and _ABOUT[kind].diagonal
    marks: list[Any] = []
    if diagonal:
        marks.append(RuleMark((0.0, 0.0), (1.0, 1.0), line="--"))
    looks = _looks(series)
    for each, (colour, line) in zip(series, looks, strict=True):
        marks.append(
            CurveMark(
                x=each.curve.x,
                y=each.curve.y,
                low=each.curve.low,
                high=each.curve.high,
                colour=colour,
                line=line,
                marker="o",
                label=_label(each, series),
            )
        )
    unit = (0.0, 1.0) if diagonal else (None, None)
    return Panel(
        marks=tuple(marks),
        title=title,
        x_label=series[0].curve.x_label,
        y_label=series[0].curve.label,
        x_range=unit,
        y_range=unit,
        share=kind,
    )


def _label(each: _DrawnCurve, series: Sequence[_DrawnCurve]) -> str:
    """Return what distinguishes a curve from the others of its panel."""
    files = {other.file for other in series}
    subsets = {other.subset for other in series}
    settings = {
        name: value
        for name, value in each.settings.items()
        if len({str(other.settings.get(name)) for other in series}) > 1
    }
    parts = (
        each.file if len(files) > 1 else "",
        subset_label(each.subset) if len(subsets) > 1 else "",
        values_text(settings),
    )
    return ", ".join(filter(None, parts)) or each.file


def _looks(series: Sequence[_DrawnCurve]) -> Iterator[tuple[str, str]]:
    """Yield a colour and a line for each curve: shifted items of a file are dashed."""
    owners = [(each.file, values_text(each.settings)) for each in series]
    kinds = list(dict.fromkeys(owners))
    for each, owner in zip(series, owners, strict=True):
        if len(kinds) == 1:
            yield SERIES[int(each.subset == "shifted")], "-"
        else:
            line = "--" if each.subset == "shifted" else "-"
            yield SERIES[kinds.index(owner) % len(SERIES)], line


def _histogram_drawing(kind: str, named: Sequence[tuple[str, Histogram]]) -> Drawing:
    several = len({name for name, _ in named}) > 1
    panels = []
    for name, bars in named:
        items = "" if bars.subset == "all" else subset_label(bars.subset)
        title = ", ".join(filter(None, (name if several else "", items)))
        panels.append(_histogram_panel(title, bars))
    rows = tuple(_rows(panels))
    return Drawing(
        name=f"figure_{kind.replace('/', '_')}",
        title=f"Uncertainty: {named[0][1].label}",
        caption=_HISTOGRAM,
        rows=rows,
        size=_size(rows),
    )


def _histogram_panel(title: str, bars: Histogram) -> Panel:
    total = sum(float(counts.sum()) for counts in bars.parts.values()) or 1.0
    marks = tuple(
        HistogramMark(edges=bars.edges, heights=counts / total, colour=c, label=part)
        for (part, counts), c in zip(bars.parts.items(), SERIES, strict=False)
    )
    return Panel(
        marks=marks,
        title=title,
        x_label=bars.label,
        y_label="share of items",
        y_range=(0.0, None),
    )
