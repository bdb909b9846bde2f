"""Figures 2b and 3: what one part of an uncertainty method changes, on average.

All methods of a dataset are grouped by one part: prediction model, measure or
aggregation. A bar is the mean of a group minus the mean of all methods that are
compared, turned so that higher is better; its whisker is the deviation over the other
parts, not over seeds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from qualms.benchmarks.values._rows import FIRST_NAMES, PAPER_AGGREGATIONS
from qualms.benchmarks.values._settings import (
    ACE,
    AURC,
    AUROC,
    GAIN,
    NCC,
    ScoreColumn,
    Study,
    is_toy,
    stands_in,
    study_about,
    study_source,
)
from qualms.labels import Label
from qualms.report.captions import If, caption, hollow, ranged
from qualms.report.figures import (
    INK,
    SERIES,
    BarMark,
    Drawing,
    Mark,
    Panel,
    PointMark,
    RuleMark,
)
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import ResultsTable
from qualms.study import Variant
from qualms.wording import listed_words

PARTS = {"measure": "type", "model": "row", "aggregation": "aggregation"}
"""Parts of a method, with the label that tells their members apart."""
TASKS: Mapping[str, tuple[ScoreColumn, tuple[str, ...]]] = {
    "OoD detection": (AUROC, ("PU", "EU")),
    "Active learning": (GAIN, ("PU", "EU")),
    "Failure detection, i.i.d.": (AURC[0], ("PU",)),
    "Failure detection, OoD": (AURC[1], ("PU",)),
    "Calibration, i.i.d.": (ACE[0], ("PU",)),
    "Calibration, OoD": (ACE[1], ("PU",)),
    "Ambiguity, i.i.d.": (NCC[0], ("PU", "AU")),
    "Ambiguity, OoD": (NCC[1], ("PU", "AU")),
}
"""The score of each task, and the types of measures that suit it. Other types are left
out where models or aggregations are compared."""
_SCALE = 100.0


class Effect(NamedTuple):
    """Change of a score on one dataset by one member of a part."""

    mean: float
    spread: float
    """Sample deviation over the other parts; nan where there is one method only."""
    methods: int


def effects(numbers: ResultsTable, task: str, part: str) -> dict[str, Effect]:
    """Return the effect of each member of a part, such as a model or an aggregation.

    Where measures are compared, the plain softmax is left out: it has one measure only.

    Args:
        numbers: Ours, or the published ones, of one dataset.
        task: Its score and suitable measures are those of `TASKS`.
        part: One of `PARTS`.
    """
    score, suited = TASKS[task]
    if part == "aggregation" and "aggregation" not in score.by:
        return {}  # Maps are judged there, before anything is aggregated.
    values: list[tuple[str, float]] = []
    for method, value in method_values(numbers, score):
        compared = (
            method["row"] != "softmax"
            if part == "measure"
            else method["type"] in suited
        )
        if compared and math.isfinite(value):
            member = str(method[PARTS[part]])
            values.append((member, -value if score.lower else value))
    if not values:
        return {}
    middle = mean(value for _, value in values)
    groups: dict[str, list[float]] = {}
    for name, value in values:
        groups.setdefault(name, []).append(value - middle)
    return {name: _effect(group) for name, group in groups.items()}


def method_values(
    numbers: ResultsTable, score: ScoreColumn
) -> Iterator[tuple[dict[str, Label | None], float]]:
    """Yield the labels and the value of each method.

    A score of maps, which no aggregation enters, is that of all aggregations.
    """
    labels = ("row", *score.by)
    table = numbers.where(**score.labels).pivot(labels, ())
    aggregations = numbers.where(aggregation=PAPER_AGGREGATIONS).distinct("aggregation")
    for line, values in zip(table.rows, table.values.tolist(), strict=True):
        method = dict(zip(labels, line, strict=True))
        if "aggregation" in method:
            yield method, values[0]
        else:
            yield from (({**method, "aggregation": a}, values[0]) for a in aggregations)


def _effect(values: Sequence[float]) -> Effect:
    spread = stdev(values) if len(values) > 1 else math.nan
    return Effect(mean(values), spread, len(values))


def members(study: Study, part: str) -> dict[str, str]:
    """Return the members of a part with their labels in tables."""
    if part == "measure":
        return {kind: f"{kind} measure" for kind in ("AU", "EU", "PU")}
    if part == "aggregation":
        return {name: name for name in ("patch", "threshold", "image")}
    rows = study.results.plan.rows
    return {row.name: row.label for row in rows if row.name in FIRST_NAMES}


def component_tables(study: Study) -> Iterator[Table]:
    """Yield the numbers of figure 3, one table for each dataset."""
    for variant in study.variants:
        numbers = study.ours.where(dataset=variant.label)
        tasks = [task for task in TASKS if effects(numbers, task, "measure")]
        lines = tuple(_effect_lines(study, numbers, tasks))
        if lines:
            yield Table(
                name=f"table_parts_{variant.name}",
                title=f"{variant.label}: what parts of a method change (x 100)",
                about=study_about(study.results, [variant]),
                simulated=stands_in(variant),
                columns=tuple(map(_task_column, tasks)),
                lines=lines,
                left=("part",),
                notes=(
                    "Mean of the methods with this part minus the mean of all that are "
                    "compared; above 0 is better than average. ± is the sample "
                    "deviation over the other parts, not over seeds.",
                ),
                main=not is_toy(variant),
                keys={
                    "number": "3",
                    "preset": study.results.plan.preset_text,
                    "dataset": variant.label,
                    "variant": variant.name,
                },
            )


def _task_column(task: str) -> Column:
    group, _, items = task.partition(", ")
    label = items or TASKS[task][0].label
    return Column(label=label, group=group, decimals=1, keys={"task": task})


def _effect_lines(
    study: Study, numbers: ResultsTable, tasks: Sequence[str]
) -> Iterator[TableLine]:
    for part in PARTS:
        by_task = [effects(numbers, task, part) for task in tasks]
        for name, label in members(study, part).items():
            cells = [each.get(name) for each in by_task]
            if any(cells):
                yield TableLine(
                    labels=(label,),
                    cells=tuple(map(_effect_cell, cells)),
                    section=part,
                    keys={"part": part, "member": name},
                )


def _effect_cell(effect: Effect | None) -> TableCell:
    if effect is None:
        return TableCell()
    return TableCell(
        mean=_SCALE * effect.mean,
        spread=_SCALE * effect.spread,
        repeats=effect.methods,
    )


def component_drawings(study: Study) -> Iterator[Drawing]:
    """Yield figure 3, one for each part; ours of the toy data are apart."""
    for toys in (False, True):
        variants = [v for v in study.variants if is_toy(v) == toys]
        for part in PARTS:
            yield from _part_drawing(study, part, variants, "_toy" if toys else "")


def _part_drawing(
    study: Study, part: str, variants: Sequence[Variant], suffix: str
) -> Iterator[Drawing]:
    names = [variant.label for variant in variants]
    by_dataset = {name: study.ours.where(dataset=name) for name in names}
    tasks = [
        task
        for task in TASKS
        if any(effects(numbers, task, part) for numbers in by_dataset.values())
    ]
    if not tasks:
        return
    panels = [
        _part_panel(study, part, task, names, first=not place % 4)
        for place, task in enumerate(tasks)
    ]
    rows = tuple(tuple(panels[at : at + 4]) for at in range(0, len(panels), 4))
    labels = dict.fromkeys(TASKS[task][0].label for task in tasks)
    judged = listed_words([_SPELT.get(label, label) for label in labels])
    yield Drawing(
        name=f"figure_3_{part}{suffix}",
        title=f"Figure 3: what the {part} changes",
        caption=caption(
            rows,
            f"Methods grouped by their {part}: the mean score of a group minus the "
            "mean of all methods that are compared, so bars above 0 are better than "
            "average (scores of which lower is better are turned).",
            If(
                ranged,
                "Whiskers are the deviation over the other parts of a method, not over "
                "seeds, so they are wide.",
            ),
            _LEFT_OUT[part],
            f"Scores, times 100: {judged}.",
            If(
                hollow,
                "Hollow diamonds are the paper's numbers, treated alike, on its own "
                "data.",
            ),
            study_source(study.results, variants),
        ),
        rows=rows,
        simulated=any(map(stands_in, variants)),
        size=(1.95, 1.75),
        legend_columns=6,
    )


_SPELT = {"gain": "improvement over random items"}
_LEFT_OUT = {
    "measure": "The plain softmax is left out: it has one measure only.",
    "model": "Measures that do not suit a task are left out: AU for OoD detection, AU "
    "and EU for failures and calibration, EU for ambiguity.",
}
_LEFT_OUT["aggregation"] = _LEFT_OUT["model"]


def _part_panel(
    study: Study, part: str, task: str, datasets: Sequence[str], *, first: bool
) -> Panel:
    marks: list[Mark] = []
    names = members(study, part)
    by_dataset = {
        name: effects(study.ours.where(dataset=name), task, part) for name in datasets
    }
    judged = [name for name in datasets if by_dataset[name]]
    step = 0.8 / len(names)
    for place, dataset in enumerate(judged):
        printed = effects(study.printed_for(dataset), task, part)
        for number, (name, label) in enumerate(names.items()):
            x = place + step * (number - (len(names) - 1) / 2)
            look = label, SERIES[number % len(SERIES)]
            pair = by_dataset[dataset].get(name), printed.get(name)
            marks += _effect_marks(x, step, *pair, look)
    ends = -0.5, len(judged) - 0.5
    return Panel(
        marks=(RuleMark((ends[0], 0), (ends[1], 0)), *_bars_first(marks)),
        title=task,
        y_label="better than average, x 100" if first else "",
        x_ticks={i: name.replace(" ", "\n") for i, name in enumerate(judged)},
    )


def _bars_first(marks: Sequence[Mark]) -> list[Mark]:
    """Return bars before other marks, the order of the legend."""
    return sorted(marks, key=lambda mark: not isinstance(mark, BarMark))


def _effect_marks(
    x: float,
    step: float,
    judged: Effect | None,
    printed: Effect | None,
    look: tuple[str, str],
) -> Iterator[Mark]:
    label, colour = look
    if judged is not None:
        middle, spread = _SCALE * judged.mean, _SCALE * judged.spread
        yield BarMark(
            x=x,
            height=middle,
            colour=colour,
            low=middle - spread,
            high=middle + spread,
            label=label,
            width=0.85 * step,
        )
    if judged is not None and printed is not None:
        yield PointMark(
            x=x + 0.17 * step,
            y=_SCALE * printed.mean,
            colour=INK,
            marker="D",
            hollow=True,
            size=2.5,
            label="published",
        )


_AMBIGUOUS = "Q1, Q2: does uncertainty lie where raters disagree?"
_UNSEEN = (
    "Q3, Q4: does it tell shifted items, while in-domain items become more ambiguous "
    "from Toy 2 to Toy 3b?"
)


def toy_drawing(study: Study) -> Iterator[Drawing]:
    """Yield figure 2b: scores of AU, EU and PU measures, with growing ambiguity."""
    toys = {variant.label: variant for variant in study.variants if is_toy(variant)}
    panels, questions = [], []
    for score, names, title, question in (
        (NCC[0], ("Toy 1",), "Q1, Q2: NCC", _AMBIGUOUS),
        (AUROC, ("Toy 2", "Toy 3a", "Toy 3b"), "Q3, Q4: AUROC", _UNSEEN),
    ):
        judged = [name for name in names if name in toys]
        if judged:
            panels.append(_types_panel(study, score, judged, title))
            questions.append(question)
    if panels:
        yield Drawing(
            name="figure_2b",
            title="Figure 2b: what measures capture in the toy data",
            caption=caption(
                [panels],
                "Mean scores of aleatoric (AU), epistemic (EU) and predictive (PU) "
                "measures over prediction models and aggregations, without the plain "
                "softmax.",
                If(ranged, "Whiskers are their deviation."),
                *questions,
                If(hollow, "Hollow diamonds are the paper's numbers."),
                study_source(study.results, list(toys.values())),
            ),
            rows=(tuple(panels),),
            size=(2.8, 2.2),
        )


def _types_panel(
    study: Study, score: ScoreColumn, datasets: Sequence[str], title: str
) -> Panel:
    marks: list[Mark] = []
    for place, dataset in enumerate(datasets):
        judged = study.ours.where(dataset=dataset)
        printed = study.printed_for(dataset)
        for number, (kind, label) in enumerate(members(study, "measure").items()):
            x = place + 0.27 * (number - 1)
            for numbers in (judged, printed):
                values = _type_values(numbers, score, kind)
                if values:
                    mark = _type_mark(x, _effect(values), label, SERIES[number])
                    marks.append(_printed_mark(mark) if numbers is printed else mark)
    return Panel(
        marks=tuple(_bars_first(marks)),
        title=title,
        x_range=(-0.6, len(datasets) - 0.4),
        x_ticks=dict(enumerate(datasets)),
        y_range=(0, 1.02),
    )


def _type_values(numbers: ResultsTable, score: ScoreColumn, kind: str) -> list[float]:
    """Return the values of all methods with measures of a type, without softmax."""
    rows = tuple(name for name in FIRST_NAMES if name != "softmax")
    chosen = numbers.where(**{**score.labels, "row": rows, "type": kind})
    values = chosen.pivot(("row", *score.by), ()).values.ravel().tolist()
    return [value for value in values if math.isfinite(value)]


def _type_mark(x: float, effect: Effect, label: str, colour: str) -> BarMark:
    return BarMark(
        x=x,
        height=effect.mean,
        colour=colour,
        low=effect.mean - effect.spread,
        high=effect.mean + effect.spread,
        label=label,
        width=0.24,
    )


def _printed_mark(bar: BarMark) -> PointMark:
    return PointMark(
        x=bar.x + 0.06,
        y=bar.height,
        low=bar.low,
        high=bar.high,
        marker="D",
        hollow=True,
        size=3.5,
        label="published",
    )
