"""Scores of corrupted items against severity: tables, and curves with bands."""

from collections.abc import Iterator, Sequence

import numpy as np

from qualms.benchmarks.own._summary_scores import (
    DETECTED,
    SCORES,
    USUAL,
    SummaryScore,
    score_head,
    score_labels,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.evaluate.uncertainty_ranking import UNCERTAINTY
from qualms.labels import Labels
from qualms.report.captions import If, banded, caption
from qualms.report.figures import MARKERS, SERIES, CurveMark, Drawing, Mark, Panel
from qualms.report.layout import Layout, LayoutColumn, Wishes, layout_table
from qualms.report.table import Table
from qualms.results import Result
from qualms.study import RunPlan, TableRow

ACROSS = 5
"""Panels side by side."""
NAMES = ("corruption", "severity")


def corruptions_of(results: BenchmarkResults) -> tuple[str, ...]:
    """Return the corruptions that were judged, in the order of the plan."""
    return tuple(map(str, results.table.distinct("corruption")))


def corruption_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Return a table for each main score: methods and corruptions by severities."""
    names, tables = corruptions_of(results), []
    for place, shown in enumerate(_shown(results) if names else ()):
        table = layout_table(
            results,
            _layout(results, names, shown, main=place == 0),
            about=results.plan.preset_text,
            absent="",
            keys={"score": shown.score},
        )
        if table is not None:
            tables.append(table)
    return (*tables, *_detection_tables(results))


def _detection_tables(results: BenchmarkResults) -> Iterator[Table]:
    """Yield how every uncertainty of all methods tells corrupted items from others.

    There is none where methods have but those that all of them have.
    """
    task = results.benchmark.task
    shown = DETECTED.get(task)
    if shown is None or not corruptions_of(results):
        return
    numbers = results.table.where(score=shown.score, subset="all")
    if set(numbers.distinct(UNCERTAINTY)) <= {*USUAL}:
        return
    others = {name: v for name, v in shown.labels.items() if name != UNCERTAINTY}
    layout = Layout(
        name="corruptions_detection",
        title="Corrupted items found, by every uncertainty",
        columns=tuple(
            LayoutColumn(
                label=str(severity),
                group=f"{score_head(shown)} by severity",
                labels={
                    **others,
                    "severity": severity,
                    "subset": "all",
                    "score": shown.score,
                },
            )
            for severity in _severities(results)
        ),
        where={
            "corruption": corruptions_of(results),
            UNCERTAINTY: numbers.distinct(UNCERTAINTY),
        },
        lines=("corruption", "row", UNCERTAINTY),
        line_labels=_uncertainty_words,
        left=("corruption", "method", UNCERTAINTY),
        order={"corruption": corruptions_of(results)},
        printed_in=None,
        among_uncertainties=True,
        notes=(
            "A mark stands in each corruption and severity: uncertainties of one method"
            " and of several are compared together, on the same items and seeds.",
        ),
    )
    about = results.plan.preset_text
    table = layout_table(results, layout, about=about, absent="")
    if table is not None:
        yield table


def corruption_figures(results: BenchmarkResults) -> Iterator[Drawing]:
    """Yield a figure for each main score: a panel for each corruption."""
    names = corruptions_of(results)
    for shown in _shown(results) if names else ():
        panels = [_panel(results, shown, name) for name in names]
        if len(names) > 1:
            panels.insert(0, _mean_panel(results, shown, names))
        rows = [tuple(panels[i : i + ACROSS]) for i in range(0, len(panels), ACROSS)]
        if any(panel.marks for panel in panels):
            yield Drawing(
                name=f"figure_corruptions_{_file(shown)}",
                title=f"{score_head(shown)} of corrupted items",
                caption=_caption(results, rows, shown),
                rows=tuple(rows),
                size=(1.75, 1.6),
            )


def _shown(results: BenchmarkResults) -> list[SummaryScore]:
    """Return the main scores that any method has, and how the shift is detected."""
    task = results.benchmark.task
    detected = [DETECTED[task]] if task in DETECTED else []
    judged = results.table.distinct("score")
    return [s for s in (*SCORES[task], *detected) if s.score in judged]


def _file(shown: SummaryScore) -> str:
    return "_".join((shown.label or shown.score).lower().split())


def _severities(results: BenchmarkResults) -> list[int]:
    return sorted(map(int, results.table.distinct("severity")))


def _wanted(results: BenchmarkResults, shown: SummaryScore, severity: int) -> Wishes:
    """Return the labels of a score at a severity; 0 is for items as they are."""
    severities = _severities(results)
    detects = shown in DETECTED.values()
    subset = "in_domain" if severity == 0 else "all" if detects else "shifted"
    labels = score_labels(results, shown, subset)
    return {**labels, "severity": severity or severities[0]}


def _layout(
    results: BenchmarkResults,
    names: Sequence[str],
    shown: SummaryScore,
    *,
    main: bool,
) -> Layout:
    detects = shown in DETECTED.values()
    severities = [*([] if detects else [0]), *_severities(results)]
    return Layout(
        name=f"corruptions_{_file(shown)}",
        title=f"{score_head(shown)} of corrupted items",
        columns=tuple(
            LayoutColumn(
                label=str(severity) if severity else "as stored",
                group="severity" if severity else "",
                labels=_wanted(results, shown, severity),
            )
            for severity in severities
        ),
        where={"corruption": tuple(names)},
        lines=("corruption", "row"),
        line_labels=_line_words,
        left=("corruption", "method"),
        order={"corruption": names},
        printed_in=None,
        main=main,
    )


def _uncertainty_words(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    return (*_line_words(plan, labels), str(labels[UNCERTAINTY]))


def _line_words(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    return (str(labels["corruption"]), plan.row(str(labels["row"])).label)


def _curve(
    results: BenchmarkResults, shown: SummaryScore, name: str, row: TableRow
) -> list[tuple[int, Result]]:
    """Return the numbers of a method by severity, beginning without corruption."""
    points = []
    for severity in (0, *_severities(results)):
        wanted = _wanted(results, shown, severity)
        number = results.result(corruption=name, row=row.name, **wanted)
        if number.values:
            points.append((severity, number))
    return points


def _panel(results: BenchmarkResults, shown: SummaryScore, name: str) -> Panel:
    marks: list[Mark] = []
    for place, row in enumerate(results.plan.rows):
        points = _curve(results, shown, name, row)
        low = np.array([number.low for _, number in points])
        high = np.array([number.high for _, number in points])
        bounded = len(points) > 0 and bool(np.isfinite([low, high]).all())
        marks.append(
            CurveMark(
                x=np.array([float(severity) for severity, _ in points]),
                y=np.array([float(np.nanmean(n.values)) for _, n in points]),
                low=low if bounded else None,
                high=high if bounded else None,
                colour=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                label=row.label,
            )
        )
    return _framed(results, shown, name, marks)


def _mean_panel(
    results: BenchmarkResults, shown: SummaryScore, names: Sequence[str]
) -> Panel:
    """Return the means over corruptions at each severity that all of them have."""
    marks: list[Mark] = []
    for place, row in enumerate(results.plan.rows):
        curves = [dict(_curve(results, shown, name, row)) for name in names]
        shared = sorted(set.intersection(*map(set, curves)))
        values = [[np.nanmean(c[s].values) for c in curves] for s in shared]
        marks.append(
            CurveMark(
                x=np.array(shared, np.float64),
                y=np.array([float(np.mean(each)) for each in values]),
                colour=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                label=row.label,
            )
        )
    return _framed(results, shown, "mean of all", marks)


def _framed(
    results: BenchmarkResults, shown: SummaryScore, title: str, marks: Sequence[Mark]
) -> Panel:
    drawn = tuple(mark for mark in marks if isinstance(mark, CurveMark) and len(mark.x))
    last = max(_severities(results))
    return Panel(
        marks=drawn,
        title=title.replace("_", " "),
        x_label="severity",
        x_ticks=[float(severity) for severity in range(last + 1)],
        x_range=(-0.2, last + 0.2),
        empty="" if drawn else "no method has it",
        share=shown.score,
    )


def _caption(
    results: BenchmarkResults, rows: Sequence[Sequence[Panel]], shown: SummaryScore
) -> str:
    covers = {row.covers for row in results.table.where(score=shown.score)}
    over = "items and seeds" if "items and seeds" in covers else "items"
    detects = shown in DETECTED.values()
    return caption(
        rows,
        "Each curve is a method, on test items that are corrupted more and more.",
        "It begins at the items as they are stored."
        if not detects
        else "Corrupted items are told from those as they are stored.",
        If(banded, f"Bands are {results.level:.0%} intervals over {over}."),
        "The mean of all corruptions has no band." if len(rows[0]) > 1 else "",
    )
