"""Tables and figures of runs on a user's own data.

The table has the few scores that matter most for the task, in-domain and shifted; the
ordinary tables, with every score, are written beside it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qualms.benchmarks.own._corruption_curves import (
    corruption_figures,
    corruption_tables,
    corruptions_of,
)
from qualms.benchmarks.own._summary_scores import (
    DETECTED,
    ENTROPY,
    INTERVAL,
    PATCH,
    SCORES,
    USUAL,
    SummaryScore,
    score_head,
    score_labels,
    without_settings,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.entry import Curve
from qualms.report.captions import If, caption, lined, ranged
from qualms.report.figures import (
    MARKERS,
    SERIES,
    SOFT,
    CurveMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.report.judged import only_judged
from qualms.report.layout import Layout, LayoutColumn, Wishes, layout_table
from qualms.report.ordinary import ordinary
from qualms.report.own_uncertainties import own_uncertainty_table
from qualms.report.presentation import Presentation
from qualms.report.table import Table, TableCell
from qualms.study import Variant
from qualms.wording import plural

_WORDS = {"in_domain": "in-domain", "shifted": "shifted", "all": ""}
LAST = 0.9
"""Share referred where curves end: beyond it few items are left, and curves jump."""
SPREAD = 0.5
"""Room between the first and the last method of a panel of points."""


class OwnCurve(NamedTuple):
    """A curve of a figure."""

    name: str
    labels: Wishes
    title: str
    caption: str
    on_line: str = ""
    """Label of the dashed line, where one is drawn."""
    diagonal: bool = False
    line: float | None = None
    """Height of the dashed line: the value that is aimed at."""


CURVES = {
    "classification": (
        OwnCurve(
            "referral_accuracy",
            ENTROPY,
            "Accuracy after referral",
            "The items with the largest entropy are referred first, and the accuracy is"
            " that of the others. A curve that rises steeply says that the uncertainty"
            " knows the mistakes.",
        ),
        OwnCurve(
            "reliability",
            {},
            "Reliability",
            "Accuracy of the items against the confidence of the network, in 15 bins.",
            "Below the line the network is too sure of itself.",
            diagonal=True,
        ),
    ),
    "regression": (
        OwnCurve(
            "coverage_by_target",
            INTERVAL,
            "Coverage along the target",
            "Share of test items whose interval holds the target, by the size of the"
            " target.",
            "The line is what the intervals promise.",
            line=0.9,
        ),
    ),
    "segmentation": (
        OwnCurve(
            "risk_coverage",
            PATCH,
            "Risk of the items that are kept",
            "Mean of 1 - Dice (of several classes, the mean of the foreground ones) of"
            " the items with the least uncertainty, which is that of"
            " their most uncertain patch, against the share that is kept.",
        ),
    ),
}


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    stored = _stored(results)
    return (*_stored_tables(stored), *corruption_tables(results))


def _stored(results: BenchmarkResults) -> BenchmarkResults:
    """Return the results of the items as they are stored."""
    if not corruptions_of(results):
        return results
    stored = tuple(v for v in results.plan.variants if "corruption" not in v.labels)
    return replace(
        results,
        plan=replace(results.plan, variants=stored),
        table=results.table.where(corruption=None),
        curves=results.curves.where(corruption=None),
    )


def _stored_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    summaries = [_summary(results, variant) for variant in results.variants]
    rest = [
        replace(table, main=False, title=f"{table.title}, every score")
        for table in ordinary().tables(results)
    ]
    own = [_own_uncertainties(results, variant) for variant in results.variants]
    return only_judged([*summaries, *own, *rest])


def _own_uncertainties(results: BenchmarkResults, variant: Variant) -> Table | None:
    """Lay out how uncertainties of methods' own rank errors and find the shift."""
    subsets = _subsets(results)
    chosen = [("aurc", subset, _WORDS[subset]) for subset in subsets]
    if "shifted" in subsets:
        chosen.append(("ood_auroc", "all", "both"))
    return own_uncertainty_table(
        results,
        variant,
        [
            LayoutColumn(
                label=score_head(SummaryScore(score)),
                group=group,
                labels={"score": score, "subset": subset},
            )
            for score, subset, group in chosen
        ],
        usual=USUAL,
        every_row=True,
        by=("aggregation",) if results.benchmark.task == "segmentation" else (),
        about=f"{results.plan.preset_text}: {results.plan.preset.network.name}",
        keys={"variant": variant.name},
    )


def _subsets(results: BenchmarkResults) -> tuple[str, ...]:
    """Return the sets of items that are shown; all of them without a shift."""
    shifted = "shifted" in results.table.distinct("subset")
    return ("in_domain", "shifted") if shifted else ("all",)


def _shown(results: BenchmarkResults) -> list[SummaryScore]:
    """Return the scores of the task that any method has on these data."""
    judged = results.table.distinct("score")
    return [s for s in SCORES[results.benchmark.task] if s.score in judged]


def _summary(results: BenchmarkResults, variant: Variant) -> Table | None:
    plan, task = results.plan, results.benchmark.task
    subsets = _subsets(results)
    chosen = [
        (shown, subset, _WORDS[subset])
        for subset in subsets
        for shown in _shown(results)
    ]
    if task in DETECTED and "shifted" in subsets:
        chosen.append((DETECTED[task], "all", "both"))
    epochs = plan.training_on(variant)["epochs"]
    about = (
        f"{plan.preset_text}: {plan.preset.network.name}",
        f"{epochs} {plural(epochs, 'epoch')}",
        f"shifted: {variant.shift}" if variant.shift else "",
    )
    layout = Layout(
        name=f"{variant.name}_summary",
        title=f"{results.benchmark.title}, {variant.label}",
        columns=tuple(_column(results, *each) for each in chosen),
        where={"variant": variant.name},
        printed_in=None,
        main=True,
    )
    table = layout_table(
        results,
        layout,
        about="; ".join(filter(None, about)),
        absent="",
        keys={"variant": variant.name},
    )
    if table is None:
        return None
    lines = tuple(
        replace(line, cells=tuple(map(_without_reason, line.cells)))
        for line in table.lines
    )
    return replace(
        table,
        columns=tuple(
            replace(column, decimals=_decimals([line.cells[n].mean for line in lines]))
            for n, column in enumerate(table.columns)
        ),
        lines=lines,
    )


def _without_reason(cell: TableCell) -> TableCell:
    """Return a cell; without words where a method just does not have the score."""
    return cell if cell.repeats else replace(cell, why="")


def _decimals(means: Sequence[float]) -> int | None:
    """Return three, unless a unit makes the numbers large or tiny.

    >>> _decimals([0.2, 0.9]), _decimals([520_000.0]), _decimals([2e-5])
    (3, None, None)
    """
    largest = max((abs(mean) for mean in means if math.isfinite(mean)), default=0)
    return 3 if largest == 0 or 0.01 <= largest < 1000 else None


def _column(
    results: BenchmarkResults, shown: SummaryScore, subset: str, group: str
) -> LayoutColumn:
    return LayoutColumn(
        label=score_head(shown),
        group=group,
        labels=score_labels(results, shown, subset),
    )


def _figures(results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    yield from _stored_figures(_stored(results))
    yield from corruption_figures(results)


def _stored_figures(results: BenchmarkResults) -> Iterator[Drawing]:
    for variant in results.variants:
        yield _points(results, variant)
        for shown in CURVES[results.benchmark.task]:
            drawing = _curves(results, variant, shown)
            if any(panel.marks for panel in drawing.panels):
                yield drawing


def _look(place: int) -> tuple[str, str]:
    return SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]


def _points(results: BenchmarkResults, variant: Variant) -> Drawing:
    """Draw every score of the table: in-domain on the left of a panel, then shifted."""
    subsets = _subsets(results)
    panels = tuple(
        _score_panel(results, variant, shown, subsets) for shown in _shown(results)
    )
    where = " in-domain and shifted" if len(subsets) > 1 else ""
    covers = {row.covers for row in results.table if math.isfinite(row.low)}
    over = "items and seeds" if "items and seeds" in covers else "items"
    return Drawing(
        name=f"figure_{variant.name}_scores",
        title=f"Scores of {variant.label}{where}",
        caption=caption(
            [panels],
            "Each point is a method.",
            If(ranged, f"Ranges are {results.level:.0%} intervals over {over}."),
            _shift_words(variant) if len(subsets) > 1 else "",
        ),
        rows=(panels,),
        size=(1.6, 2.2),
        legend_columns=3,
    )


def _shift_words(variant: Variant) -> str:
    return f"Shifted: {variant.shift}." if variant.shift else ""


def _score_panel(
    results: BenchmarkResults,
    variant: Variant,
    shown: SummaryScore,
    subsets: Sequence[str],
) -> Panel:
    rows, marks = results.plan.rows, []
    for place, row in enumerate(rows):
        colour, marker = _look(place)
        aside = SPREAD * (place / max(1, len(rows) - 1) - 0.5)
        for x, subset in enumerate(subsets):
            labels = score_labels(results, shown, subset)
            result = results.result(variant=variant.name, row=row.name, **labels)
            if result.values:
                marks.append(
                    PointMark(
                        x=x + aside,
                        y=float(np.nanmean(result.values)),
                        low=result.low,
                        high=result.high,
                        colour=colour,
                        marker=marker,
                        label=row.label,
                    )
                )
    return Panel(
        marks=tuple(marks),
        title=score_head(shown),
        x_ticks={float(x): _WORDS[s] or "test" for x, s in enumerate(subsets)},
        x_range=(-0.5, len(subsets) - 0.5),
        empty="" if marks else "no method has it",
    )


def _curves(results: BenchmarkResults, variant: Variant, shown: OwnCurve) -> Drawing:
    panels = tuple(_curve_panel(results, variant, shown, s) for s in _subsets(results))
    return Drawing(
        name=f"figure_{variant.name}_{shown.name}",
        title=f"{shown.title}, {variant.label}",
        caption=caption(
            [panels],
            shown.caption,
            If(lined("--"), shown.on_line),
            _shift_words(variant) if len(panels) > 1 else "",
        ),
        rows=(panels,),
        size=(2.6, 2.3),
        legend_columns=3,
    )


def _curve_panel(
    results: BenchmarkResults, variant: Variant, shown: OwnCurve, subset: str
) -> Panel:
    marks: list[Mark] = []
    curves: list[Curve] = []
    labels = {**without_settings(results), **shown.labels}
    drawn = results.curves.where(variant=variant.name, subset=subset, name=shown.name)
    for place, row in enumerate(results.plan.rows):
        curve = drawn.get(row=row.name, **labels)
        if curve is None:
            continue
        colour, marker = _look(place)
        inside = curve.x <= (LAST if shown.name.startswith("referral") else np.inf)
        curves.append(curve)
        marks.append(
            CurveMark(
                x=curve.x[inside],
                y=curve.y[inside],
                colour=colour,
                marker=marker,
                label=row.label,
                turn=place / 10,
            )
        )
    if curves and shown.diagonal:
        marks.append(RuleMark((0.0, 0.0), (1.0, 1.0), SOFT, "--"))
    if curves and shown.line is not None:
        ends = (min(c.x.min() for c in curves), max(c.x.max() for c in curves))
        marks.append(RuleMark((ends[0], shown.line), (ends[1], shown.line), SOFT, "--"))
    return Panel(
        marks=tuple(marks),
        title=_WORDS.get(subset, ""),
        x_label=curves[0].x_label if curves else "",
        y_label=curves[0].label if curves else "",
        share=shown.name,
    )


PRESENTATION = Presentation(tables=_tables, figures=_figures)
"""A table that sums up, all ordinary tables, and figures of the task."""
