"""Scores of corrupted items against severity: a figure in which readers choose a score.

Each score is data of its own that is loaded when a reader chooses it. Results come by
their labels `corruption` and `severity`, whatever the benchmark.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qualms.arrays import Array
from qualms.evaluate.subsets import subset_label
from qualms.labels import Label
from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.figures import MARKERS, SERIES, CurveMark, Drawing, Panel
from qualms.report.site.charts import chart, on_paper
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.drawn import figure_data
from qualms.report.site.markup import Html
from qualms.report.site.method_scores import score_heading
from qualms.report.site.page import DataFile, Download, Fragment, fragment, slug
from qualms.report.site.paired import settings_words
from qualms.results import ResultsTable

ACROSS = 5
"""Panels side by side on paper."""
MOST_ON_PAPER = 12
"""Scores with a PDF at most, the first ones; each takes about a second to draw."""
HEAD = ("corruption", "method", "severity", "value", "low", "high")
MEAN = "mean of all"
STORED, CORRUPTED = "in_domain", "shifted"
"""Sets of items: as they are stored, and corrupted."""
_AXES = ("corruption", "severity", "row")
_OF_PLACE = (*_AXES, "variant", "method", "pool")
"""Labels that are no setting of a score."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeverityScore:
    """A score of all methods under all corruptions, at all severities."""

    label: str
    items: str
    """The set of items that it is about."""
    rows: tuple[str, ...]
    """Labels of the methods."""
    corruptions: tuple[str, ...]
    severities: Array
    """(severities,); 0, where it is the first, for the items as they are stored."""
    values: Array
    """(corruptions, rows, severities); nan where there is none."""
    low: Array
    high: Array
    reasons: tuple[str, ...] = ()
    """Why numbers have no interval."""


def severity_figure(shown: ShownBenchmark, *, paper: bool) -> Fragment | None:
    """Return the figure of all scores against severity; None without such scores.

    Args:
        shown: The benchmark.
        paper: Whether the first scores are drawn as PDF too.
    """
    name = f"{shown.slug}-severity"
    sources: list[dict[str, str]] = []
    data: list[DataFile] = []
    files: dict[str, tuple[Download, ...]] = {}
    views: list[str] = []
    for score in severity_scores(shown.report):
        key = slug(f"{name} {score.items} {score.label}", (d.name for d in data))
        drawing = severity_drawing(score, shown.report)
        data.append(DataFile(name=key, value=_data(drawing, score), on_demand=True))
        sources.append({"data": key, "label": score.label, "group": score.items})
        views = [panel.title for panel in drawing.panels]
        if paper and len(files) < MOST_ON_PAPER:
            files[key] = on_paper(drawing, key, None)
    if not sources:
        return None
    figure = chart(
        "severity",
        f"{name}-scores",
        {"choice": "Score", "sources": sources, "views": views, "head": HEAD},
        caption=_caption(shown.report, len(sources) if files else 0),
        by_source=files,
        on_demand=True,
    )
    return fragment(figure, Fragment(html=Html(), data=tuple(data)))


def severity_scores(report: BenchmarkReport) -> Iterator[SeverityScore]:
    """Yield every score of corrupted items, those without settings first."""
    if not {*_AXES, "subset", "score"} <= {*report.unlisted.labels}:
        return
    numbers = report.unlisted.computed()
    numbers = numbers.where(severity=numbers.distinct("severity"))
    settings = [
        name
        for name in numbers.labels
        if name not in _OF_PLACE and len(set(numbers.column(name))) > 1
    ]
    names = list(dict.fromkeys((*settings, "subset", "score")))
    lines = numbers.pivot(names, _AXES)
    laid = {which: _laid(numbers, names, which) for which in ("value", "low", "high")}
    keys = [dict(zip(names, line, strict=True)) for line in lines.rows]
    stored = {
        _key(key): place for place, key in enumerate(keys) if _is(key, STORED, "")
    }
    order = sorted(
        (place for place, key in enumerate(keys) if not _is(key, STORED, "")),
        key=lambda place: (
            not _is(keys[place], CORRUPTED, ""),
            str(keys[place]["subset"]),
            len([value for value in keys[place].values() if value is not None]),
        ),
    )
    texts = numbers.column("no_interval")
    severities = _severities(numbers)
    for place in order:
        before = stored.get(_key(keys[place])) if _is(keys[place], CORRUPTED) else None
        values, low, high = (
            _with_stored(laid[which], place, before)
            for which in ("value", "low", "high")
        )
        cells = lines.cells[place]
        reasons = dict.fromkeys(str(texts[at] or "") for at in cells[cells >= 0])
        if np.isfinite(values).any():
            yield SeverityScore(
                label=_label(keys[place]),
                items=_items(keys[place]),
                rows=tuple(report.row_label(str(r)) for r in numbers.distinct("row")),
                corruptions=tuple(map(str, numbers.distinct("corruption"))),
                severities=np.array([*([] if before is None else [0.0]), *severities]),
                values=values,
                low=low,
                high=high,
                reasons=tuple(filter(None, reasons)),
            )


def severity_drawing(score: SeverityScore, report: BenchmarkReport) -> Drawing:
    """Return a score against severity: the mean of corruptions, and each of them.

    The band of the mean is the mean of the bands: the deviation of a mean is at most
    the mean of the deviations, however much the corruptions have in common.
    """
    panels = [
        _panel(score, name.replace("_", " "), *each)
        for name, *each in zip(
            score.corruptions, score.values, score.low, score.high, strict=True
        )
    ]
    if len(panels) > 1:
        # A mean needs all corruptions: nan where one of them is missing.
        means = (each.mean(axis=0) for each in (score.values, score.low, score.high))
        panels.insert(0, _panel(score, MEAN, *means))
    for at in range(0, len(panels), ACROSS):
        panels[at] = replace(panels[at], y_label=score.label)
    rows = [panels[at : at + ACROSS] for at in range(0, len(panels), ACROSS)]
    words = f"{score.label}, {score.items}"
    return Drawing(
        name="severity",
        title=f"{words}, against severity",
        caption=f"{words}. {_reading(report)}",
        rows=tuple(map(tuple, rows)),
        simulated=report.simulated,
        size=(1.75, 1.6),
    )


def _panel(
    score: SeverityScore, title: str, values: Array, low: Array, high: Array
) -> Panel:
    marks = []
    for place, row in enumerate(score.rows):
        known = np.isfinite(values[place])
        bounded = known.any() and np.isfinite([low[place], high[place]])[:, known].all()
        if known.any():
            marks.append(
                CurveMark(
                    x=score.severities[known],
                    y=values[place][known],
                    low=low[place][known] if bounded else None,
                    high=high[place][known] if bounded else None,
                    colour=SERIES[place % len(SERIES)],
                    marker=MARKERS[place % len(MARKERS)],
                    label=row,
                )
            )
    first, last = float(score.severities[0]), float(score.severities[-1])
    return Panel(
        marks=tuple(marks),
        title=title,
        x_label="severity",
        x_ticks=score.severities.tolist(),
        x_range=(first - 0.2, last + 0.2),
        empty="" if marks else "no method has it",
        share=score.label,
    )


def _data(drawing: Drawing, score: SeverityScore) -> dict[str, Any]:
    """Return a score as data of `assets/charts/severity.js`."""
    data = figure_data(drawing)
    low, high = data["panels"][0]["x"]["range"]
    for panel in data["panels"]:
        panel["x"]["steps"] = True
    return {
        **data,
        "bands": True,
        "at": (float(score.severities[-1]) - low) / (high - low),
        "note": f"No interval: {'; '.join(score.reasons)}." if score.reasons else "",
    }


def _laid(numbers: ResultsTable, names: Sequence[str], which: str) -> Array:
    """Return numbers (lines, corruptions, rows, severities)."""
    laid = numbers.pivot(names, _AXES, value=which)
    values: tuple[Sequence[Label | None], ...] = (
        numbers.distinct("corruption"),
        _severities(numbers),
        numbers.distinct("row"),
    )
    places = [{each: at for at, each in enumerate(several)} for several in values]
    dense = np.full((*map(len, places), len(laid.rows)), math.nan)
    for head, column in zip(laid.columns, laid.values.T, strict=True):
        at = [of[value] for of, value in zip(places, head, strict=True)]
        dense[tuple(at)] = column
    return dense.transpose(3, 0, 2, 1)


def _with_stored(laid: Array, place: int, before: int | None) -> Array:
    """Return the numbers of a line, after those of the items as they are stored.

    The latter stand in the line `before`, if in any, the same at every severity.
    """
    line: Array = laid[place]
    if before is None:
        return line
    first: Array = laid[before][..., :1]
    for at in range(1, laid.shape[-1]):
        first = np.where(np.isnan(first), laid[before][..., at : at + 1], first)
    return np.concatenate([first, line], axis=-1)


def _severities(numbers: ResultsTable) -> list[int | float]:
    return sorted(s for s in numbers.distinct("severity") if not isinstance(s, str))


def _is(key: Mapping[str, Label | None], subset: str, more: str = "/") -> bool:
    """Return whether a score is of a set of items, or with `more` of a group in it."""
    words = str(key["subset"])
    return words == subset or (bool(more) and words.startswith(subset + more))


def _key(key: Mapping[str, Label | None]) -> tuple[tuple[str, Label | None], ...]:
    """Return what a score of corrupted items shares with that of stored ones."""
    subset = str(key["subset"])
    for kind in (STORED, CORRUPTED):
        if subset == kind or subset.startswith(f"{kind}/"):
            subset = subset.removeprefix(kind)
    return tuple({**key, "subset": subset}.items())


def _label(key: Mapping[str, Label | None]) -> str:
    named = {k: v for k, v in key.items() if v is not None and k != "subset"}
    score = str(named.pop("score"))
    return ", ".join(filter(None, (score_heading(score), settings_words(named))))


def _items(key: Mapping[str, Label | None]) -> str:
    subset = str(key["subset"])
    if subset == "all":
        return "corrupted and stored items together"
    if _is(key, CORRUPTED):
        rest = subset.removeprefix(CORRUPTED).removeprefix("/")
        return ", ".join(filter(None, ("corrupted items", rest and subset_label(rest))))
    return subset_label(subset)


def _reading(report: BenchmarkReport) -> str:
    return (
        "Severity 0 stands for the items as they are stored. Bands are"
        f" {report.level:.0%} intervals; that of the mean of all corruptions is the"
        " mean of theirs, which is wider than its own would be."
    )


def _caption(report: BenchmarkReport, drawn: int) -> str:
    some = (
        f" The first {MOST_ON_PAPER} scores have a PDF."
        if drawn > MOST_ON_PAPER
        else ""
    )
    return (
        f"{_reading(report)} Up to four methods show their bands together; of more, the"
        f" one that is chosen does.{some}"
    )
