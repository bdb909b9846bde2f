"""How runs on a user's own data are shown: one table that sums up, and figures.

The table has the few scores that matter most for the task, in-domain and shifted; the
ordinary tables, with every score, are written beside it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qualms import scores
from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.entry import Curve
from qualms.evaluate.results import BenchmarkResults, Cell, DrawnKey, Key
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
from qualms.report.judged import DEVIATION, judged_variants, only_judged, table_cell
from qualms.report.ordinary import ARROWS, ordinary
from qualms.report.papers import Paper
from qualms.report.table import Column, Table, TableLine
from qualms.wording import plural

_PLACES = {"in_domain": "in-domain", "shifted": "shifted"}
LAST = 0.9
"""Share referred where curves end: beyond it few items are left, and curves jump."""
SPREAD = 0.5
"""Room between the first and the last method of a panel of points."""


class ShownScore(NamedTuple):
    """A score of the table, and the settings at which a row may have it."""

    score: str
    settings: tuple[str, ...] = ("",)
    label: str = ""
    """'' for the score's own."""


class ShownCurve(NamedTuple):
    """A curve of a figure."""

    name: str
    settings: tuple[str, ...]
    title: str
    caption: str
    subsets: tuple[str, ...] = ("all",)
    diagonal: bool = False
    line: float | None = None
    """A height that is aimed at."""


_INTERVAL = ("interval=gaussian", "interval=as predicted")
_IMAGE = ("measure=predictive, aggregation=image",)
SCORES = {
    "classification": (
        ShownScore("accuracy"),
        ShownScore("nll"),
        ShownScore("ece"),
        ShownScore("aurc", ("u=entropy",)),
    ),
    "regression": (
        ShownScore("mae"),
        ShownScore("crps_gaussian"),
        ShownScore("coverage", _INTERVAL),
        ShownScore("interval_length", _INTERVAL),
        ShownScore("coverage", ("interval=conformal",), "conformal coverage"),
    ),
    "segmentation": (
        ShownScore("dice"),
        ShownScore("macro_dice"),
        ShownScore("ged"),
        ShownScore("stated_ace"),
        ShownScore("aurc", _IMAGE),
    ),
}
"""Of each task, the scores that sum up."""
DETECTED = {
    "classification": ShownScore("ood_auroc", ("u=entropy",)),
    "segmentation": ShownScore("ood_auroc", _IMAGE),
}
CURVES = {
    "classification": (
        ShownCurve(
            "referral_accuracy",
            ("u=entropy",),
            "Accuracy after referral",
            "The items with the largest entropy are referred first, and the accuracy is"
            " that of the others. A curve that rises steeply says that the uncertainty"
            " knows the mistakes.",
            ("in_domain", "shifted"),
        ),
        ShownCurve(
            "reliability",
            ("",),
            "Reliability",
            "Accuracy of all test items against the confidence of the network, in 15"
            " bins. Below the line the network is too sure of itself.",
            diagonal=True,
        ),
    ),
    "regression": (
        ShownCurve(
            "coverage_by_target",
            _INTERVAL,
            "Coverage along the target",
            "Share of test items whose interval holds the target, by the size of the"
            " target. The line is what the intervals promise.",
            line=0.9,
        ),
    ),
    "segmentation": (
        ShownCurve(
            "risk_coverage",
            _IMAGE,
            "Risk of the items that are kept",
            "Mean of 1 - Dice of the items with the least uncertainty, the mean over"
            " the image, against the share that is kept.",
        ),
    ),
}


def own() -> Paper:
    """A table that sums up, all ordinary tables, and figures of the task."""
    return Paper(tables=_tables, figures=_figures)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    first = [_summary(results, variant) for variant in judged_variants(results)]
    rest = [
        replace(table, main=False, title=f"{table.title}, every score")
        for table in ordinary().tables(results)
    ]
    return only_judged([*first, *rest])


def _subsets(results: BenchmarkResults) -> dict[str, str]:
    """Sets of items that are shown, with their words; all of them without a shift."""
    shifted = any(key.score.startswith("shifted/") for key in results.cells)
    return dict(_PLACES) if shifted else {"": ""}


def _shown(results: BenchmarkResults) -> list[ShownScore]:
    """Scores of the task, without those that no method has on these data."""
    there = {key.score.rpartition("/")[2] for key in results.cells}
    return [s for s in SCORES[results.benchmark.task] if s.score in there]


def _summary(results: BenchmarkResults, variant: Variant) -> Table:
    task, preset = results.benchmark.task, results.preset
    epochs = preset.training["epochs"]
    subsets = _subsets(results)
    chosen = [
        (s, words, shown) for s, words in subsets.items() for shown in _shown(results)
    ]
    if task in DETECTED and "shifted" in subsets:
        chosen.append(("", "both", DETECTED[task]))
    told = (
        f"{preset.told}: {preset.network.name}",
        f"{epochs} {plural(epochs, 'epoch')}",
        f"shifted: {variant.shift}" if variant.shift else "",
    )
    lines = tuple(
        TableLine(
            labels=(row.label,),
            cells=tuple(
                table_cell(results, _cell(results, at, shown, s), absent="")
                for s, _, shown in chosen
            ),
            keys={"row": row.name, "method": row.label},
        )
        for row in _rows(results)
        for at in (Key(variant.name, row.name, "", ""),)
    )
    columns = (_column(words, shown) for _, words, shown in chosen)
    return Table(
        name=f"table_{variant.name}_summary",
        title=f"{results.benchmark.title}, {variant.label}",
        about="; ".join(filter(None, told)),
        columns=tuple(
            replace(column, decimals=_decimals([line.cells[n].mean for line in lines]))
            for n, column in enumerate(columns)
        ),
        lines=lines,
        spread=DEVIATION,
        level=results.level,
        keys={"preset": preset.told, "variant": variant.name},
    )


def _rows(results: BenchmarkResults) -> list[TableRow]:
    return [results.benchmark.row(name) for name in results.preset.rows]


def _decimals(means: Sequence[float]) -> int | None:
    """Three, unless a unit makes the numbers large or tiny.

    >>> _decimals([0.2, 0.9]), _decimals([520_000.0]), _decimals([2e-5])
    (3, None, None)
    """
    largest = max((abs(mean) for mean in means if math.isfinite(mean)), default=0)
    return 3 if largest == 0 or 0.01 <= largest < 1000 else None


def _column(words: str, shown: ShownScore) -> Column:
    about = scores.about(getattr(scores, shown.score))
    return Column(
        label=f"{shown.label or about.label}{ARROWS[about.better]}",
        group=words,
        keys={"score": shown.score, "settings": " or ".join(shown.settings)},
    )


def _cell(results: BenchmarkResults, at: Key, shown: ShownScore, subset: str) -> Cell:
    """The number of a row; of its settings the first that it has."""
    name = "/".join(filter(None, (subset, shown.score)))
    keys = [at._replace(settings=each, score=name) for each in shown.settings]
    found = [results.cells[key] for key in keys if key in results.cells]
    return found[0] if found else Cell(key=keys[0])


def _figures(results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    for variant in judged_variants(results):
        yield _points(results, variant)
        for shown in CURVES[results.benchmark.task]:
            drawing = _curves(results, variant, shown)
            if any(panel.marks for panel in drawing.panels):
                yield drawing


def _look(place: int) -> tuple[str, str]:
    return SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]


def _points(results: BenchmarkResults, variant: Variant) -> Drawing:
    """Every score of the table: in-domain on the left of a panel, shifted right."""
    subsets = _subsets(results)
    panels = tuple(
        _score_panel(results, variant, shown, list(subsets))
        for shown in _shown(results)
    )
    told = " in-domain and shifted" if len(subsets) > 1 else ""
    return Drawing(
        name=f"figure_{variant.name}_scores",
        title=f"Scores of {variant.label}{told}",
        caption=(
            f"Each point is a method, with its {results.level:.0%} interval over items"
            f" and seeds. {_shift_words(variant)}"
        ).strip(),
        rows=(panels,),
        size=(1.6, 2.2),
        legend_columns=3,
    )


def _shift_words(variant: Variant) -> str:
    return f"Shifted: {variant.shift}." if variant.shift else ""


def _score_panel(
    results: BenchmarkResults,
    variant: Variant,
    shown: ShownScore,
    subsets: Sequence[str],
) -> Panel:
    rows, marks = _rows(results), []
    for place, row in enumerate(rows):
        colour, marker = _look(place)
        aside = SPREAD * (place / max(1, len(rows) - 1) - 0.5)
        for x, subset in enumerate(subsets):
            at = Key(variant.name, row.name, "", "")
            cell = _cell(results, at, shown, subset)
            if cell.values:
                marks.append(
                    PointMark(
                        x=x + aside,
                        y=float(np.nanmean(cell.values)),
                        low=cell.low,
                        high=cell.high,
                        colour=colour,
                        marker=marker,
                        label=row.label,
                    )
                )
    return Panel(
        marks=tuple(marks),
        title=_column("", shown).label,
        x_ticks={float(x): _PLACES.get(s, "test") for x, s in enumerate(subsets)},
        x_range=(-0.5, len(subsets) - 0.5),
        empty="" if marks else "no method has it",
    )


def _curves(results: BenchmarkResults, variant: Variant, shown: ShownCurve) -> Drawing:
    there = {key.subset for key in results.curves if key.name == shown.name}
    subsets = [s for s in shown.subsets if s in there] or ["all"]
    panels = tuple(_curve_panel(results, variant, shown, s) for s in subsets)
    return Drawing(
        name=f"figure_{variant.name}_{shown.name}",
        title=f"{shown.title}, {variant.label}",
        caption=f"{shown.caption} {_shift_words(variant)}".strip(),
        rows=(panels,),
        size=(2.6, 2.3),
        legend_columns=3,
    )


def _curve_panel(
    results: BenchmarkResults, variant: Variant, shown: ShownCurve, subset: str
) -> Panel:
    marks: list[Mark] = []
    found: list[Curve] = []
    for place, row in enumerate(_rows(results)):
        curve = _curve(results, variant, row, shown, subset)
        if curve is None:
            continue
        colour, marker = _look(place)
        kept = curve.x <= (LAST if shown.name.startswith("referral") else np.inf)
        found.append(curve)
        marks.append(
            CurveMark(
                x=curve.x[kept],
                y=curve.y[kept],
                colour=colour,
                marker=marker,
                label=row.label,
                turn=place / 10,
            )
        )
    if found and shown.diagonal:
        marks.append(RuleMark((0.0, 0.0), (1.0, 1.0), SOFT, "--"))
    if found and shown.line is not None:
        ends = (min(c.x.min() for c in found), max(c.x.max() for c in found))
        marks.append(RuleMark((ends[0], shown.line), (ends[1], shown.line), SOFT, "--"))
    return Panel(
        marks=tuple(marks),
        title=_PLACES.get(subset, ""),
        x_label=found[0].x_label if found else "",
        y_label=found[0].label if found else "",
        share=shown.name,
    )


def _curve(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    shown: ShownCurve,
    subset: str,
) -> Curve | None:
    keys = (
        DrawnKey(variant.name, row.name, settings, subset, shown.name)
        for settings in shown.settings
    )
    return next((results.curves[key] for key in keys if key in results.curves), None)
