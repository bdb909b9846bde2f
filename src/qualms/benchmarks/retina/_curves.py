"""Panels with one curve per method: ROC, shifted items found, scores after referral."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qualms.benchmarks.retina._findings import NHS
from qualms.benchmarks.retina._rows import METHODS
from qualms.benchmarks.retina._settings import SUBSETS
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.entry import Curve
from qualms.report.figures import (
    FAINT,
    INK,
    MARKERS,
    SERIES,
    SOFT,
    CurveMark,
    Mark,
    Panel,
    PointMark,
    RuleMark,
    Ticks,
)
from qualms.report.layout import published_number, published_of
from qualms.study import RunPlan, TableRow, Variant

LOOKS = {
    name: (SERIES[(place + 4) % 6], MARKERS[place])
    for place, name in enumerate(METHODS)
}
"""Colour and marker of each method, the same in all figures."""
LAST = 0.95
"""Share referred where curves end: beyond it few items are left, and curves jump."""
_LABELS = {
    "roc": ("1 - specificity", "sensitivity"),
    "ood_roc": ("in-domain items flagged", "shifted items flagged"),
    "referral_accuracy": ("share referred", "accuracy"),
    "referral_auroc": ("share referred", "AUROC"),
    "referral_nll": ("share referred", "NLL"),
    "referral_auprc": ("share referred", "AUPRC"),
}
_SCORES = ("accuracy", "auroc", "nll", "auprc")
_WHOLE = {0.0: "0", 0.5: "0.5", 1.0: "1"}


class CurveView(NamedTuple):
    """The score and items of a panel, without its variant and rows."""

    subset: str
    name: str

    @property
    def title(self) -> str:
        """The drawn score and its items, in words."""
        score = "ROC" if self.name == "roc" else _LABELS[self.name][1]
        return f"{score}, {SUBSETS[self.subset]}"


class Strand(NamedTuple):
    """A row on a variant that has a curve, and the look of that curve."""

    variant: Variant
    row: TableRow
    colour: str
    marker: str
    label: str


def views(name: str, *subsets: str) -> tuple[CurveView, ...]:
    """Return a view of the same score for each of several sets of items."""
    return tuple(CurveView(subset, name) for subset in subsets)


def method_strands(
    results: BenchmarkResults, variant: Variant, *, pooled: bool
) -> tuple[Strand, ...]:
    """Return a curve per method: of single runs, or of pools."""
    return tuple(
        Strand(
            variant,
            row,
            *LOOKS.get(row.method.name, (FAINT, "X")),
            method_label(results.plan, row),
        )
        for row in results.plan.rows_on(variant)
        if (row.pool > 1) == pooled
    )


def method_label(plan: RunPlan, row: TableRow) -> str:
    """Return the method's name as a single run, which its pools share in figures."""
    rows = (*plan.benchmark.rows, *plan.rows)
    same = (r for r in rows if r.method.name == row.method.name)
    return next((r.label for r in same if r.pool == 1), row.label)


def curve_panel(
    results: BenchmarkResults,
    view: CurveView,
    strands: tuple[Strand, ...],
    *,
    title: str,
    last: bool,
) -> Panel:
    """Return one panel; a panel without curves states the reason."""
    x_label, y_label = _LABELS[view.name]
    marks = [mark for strand in strands for mark in _curve(results, view, strand)]
    square = view.name in ("roc", "ood_roc")
    ends = (-0.03, 1.03) if square else (-0.03, 1.0)
    ticks: Ticks = _WHOLE if square else (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    return Panel(
        marks=tuple(_space_markers(marks)) + (_reference(view.name) if marks else ()),
        title=title,
        x_label=x_label if last else "",
        y_label=y_label,
        x_range=ends,
        y_range=ends if square else (None, None),
        x_ticks=ticks if last else dict.fromkeys(ticks, ""),
        y_ticks=ticks if square else None,
        # A curve that is 1 all along has no height to make room above it.
        y_most=math.inf if square or view.name == "referral_nll" else 1.01,
        empty="" if marks else _reason(results, view, strands),
        share="" if square else f"{view.name} {view.subset}",
    )


def drawn_curve(
    results: BenchmarkResults, view: CurveView, strand: Strand
) -> Curve | None:
    """Return the curve's points, if they were judged and any is defined."""
    curve = results.curves.get(
        variant=strand.variant.name,
        row=strand.row.name,
        subset=view.subset,
        name=view.name,
    )
    return curve if curve is not None and np.isfinite(curve.y).any() else None


def curve_caption(
    results: BenchmarkResults,
    panels: Iterable[tuple[str, CurveView, tuple[Strand, ...]]],
) -> str:
    """Return a caption on how to read the panels."""
    curves = [
        (view, strand)
        for _, view, strands in panels
        for strand in strands
        if drawn_curve(results, view, strand) is not None
    ]
    names = {view.name for view, _ in curves}
    sentences = []
    if "roc" in names:
        sentences.append(
            "ROC: the share of patients with the disease that is found, against the "
            "share of healthy ones that is referred in vain, as the threshold moves. "
            "The black dot is the NHS's recommendation, 85 % sensitivity at 80 % "
            "specificity; a curve above it can meet it."
        )
    if any(name.startswith("referral") for name in names):
        sentences.append(
            "After referral: the most uncertain items go to an expert, and the score "
            "is of those that the network keeps. A curve that rises means that the "
            "network knows where it is wrong. Curves end at 95 % referred, where few "
            "items are left."
        )
    if "ood_roc" in names:
        sentences.append(
            "Shifted items flagged, against in-domain items flagged, as the threshold "
            "on uncertainty falls. On the dotted line uncertainty tells nothing."
        )
    sentences.append(_bands(results, curves))
    if any(_points(results, view, strand) for view, strand in curves):
        sentences.append("Hollow points are the paper's numbers.")
    return " ".join(sentences)


def _bands(results: BenchmarkResults, curves: list[tuple[CurveView, Strand]]) -> str:
    """Say what bands show, and why curves may have none."""
    points = [drawn_curve(results, view, strand) for view, strand in curves]
    wide = [_has_band(curve) for curve in points if curve is not None]
    if not any(wide):
        return "There is one repeat, so there are no bands."
    alone = "" if all(wide) else "; a single repeat has none"
    return f"Bands are one standard error over repeats{alone}."


def _has_band(curve: Curve) -> bool:
    return curve.stderr is not None and bool(np.isfinite(curve.stderr).any())


def _curve(
    results: BenchmarkResults, view: CurveView, strand: Strand
) -> Iterator[Mark]:
    curve = drawn_curve(results, view, strand)
    if curve is None:
        return
    inside = curve.x <= (LAST if view.name.startswith("referral") else 1.0)
    x, y = curve.x[inside], curve.y[inside]
    error = (
        curve.stderr[inside] if _has_band(curve) and curve.stderr is not None else None
    )
    yield CurveMark(
        x=x,
        y=y,
        low=None if error is None else y - error,
        high=None if error is None else y + error,
        colour=strand.colour,
        marker=strand.marker,
        label=strand.label,
    )
    for share, value in _points(results, view, strand):
        yield PointMark(
            x=share,
            y=value,
            colour=strand.colour,
            marker=strand.marker,
            hollow=True,
            size=3.6,
            label="published",
        )


def _space_markers(marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks, with markers of different curves at different places."""
    curves = [mark for mark in marks if isinstance(mark, CurveMark)]
    for mark in marks:
        if isinstance(mark, CurveMark):
            turn = (curves.index(mark) + 1) / (len(curves) + 1)
            yield replace(mark, turn=turn)
        else:
            yield mark


def _reference(name: str) -> tuple[Mark, ...]:
    if name == "roc":
        point = PointMark(
            x=NHS[0], y=NHS[1], colour=INK, label="NHS recommendation", size=5
        )
        return (_diagonal(), point)
    return (_diagonal(),) if name == "ood_roc" else ()


def _diagonal() -> RuleMark:
    return RuleMark((0, 0), (1, 1), colour=SOFT, line=":")


def _points(
    results: BenchmarkResults, view: CurveView, strand: Strand
) -> list[tuple[float, float]]:
    """Return the paper's points of a referral curve, if it is of the paper's data."""
    kind, _, name = view.name.partition("_")
    book = published_of(results)
    if kind != "referral" or book is None:
        return []
    points = []
    for share in (None, 0.5, 0.7):
        result = results.result(
            variant=strand.variant.name,
            row=strand.row.name,
            subset=view.subset,
            score=name,
            referred=share,
        )
        number = published_number(results, book.table, result)
        if number is not None:
            points.append((share or 0.0, number.value))
    return points


def _reason(
    results: BenchmarkResults, view: CurveView, strands: tuple[Strand, ...]
) -> str:
    """Say why nothing is drawn: the reason that all curves share, if there is one."""
    score = view.name.removeprefix("referral_")
    score = score if score in _SCORES else score.replace("roc", "auroc")
    numbers = (
        results.result(
            variant=strand.variant.name,
            row=strand.row.name,
            subset=view.subset,
            score=score,
            referred=None,
        )
        for strand in strands
    )
    reasons = {number.why for number in numbers} - {""}
    return reasons.pop() if len(reasons) == 1 else "no numbers"
