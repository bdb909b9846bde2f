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
from qualms.report.papers.values.lines import study_about, study_source
from qualms.report.papers.values.settings import (
    ACE,
    AGGREGATIONS,
    AURC,
    AUROC,
    DATASETS,
    GAIN,
    MODELS,
    NCC,
    Component,
    ScoreColumn,
    Study,
    Value,
    published_components,
    stands_in,
    theirs,
)
from qualms.report.table import Column, Table, TableCell, TableLine

PARTS = ("measure", "model", "aggregation")
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
"""The score of each task, and the kinds of measures that suit it: the others are left
out where models or aggregations are compared."""
_SCALE = 100.0


class Effect(NamedTuple):
    """What one member of a part changes on one dataset."""

    mean: float
    spread: float
    """Sample deviation over the other parts; nan where there is one method only."""
    methods: int


def effects(
    study: Study, task: str, part: str, dataset: str, value: Value
) -> dict[str, Effect]:
    """The effect of each member of a part: AU, EU, PU, models, or aggregations.

    Where measures are compared, the plain softmax is left out: it has one measure only.
    """
    score, suited = TASKS[task]
    if part == "aggregation" and score in (*ACE, *NCC):
        return {}  # Maps are judged there, before anything is aggregated.
    chosen = {}
    for one in _methods(study, dataset, value):
        kind = study.kind(one)
        kept = one.row != "softmax" if part == "measure" else kind in suited
        found = value(dataset, one, score)
        if kept and math.isfinite(found):
            chosen[one] = -found if score.lower else found
    if not chosen:
        return {}
    middle = mean(chosen.values())
    groups: dict[str, list[float]] = {}
    for one, found in chosen.items():
        groups.setdefault(_member(study, one, part), []).append(found - middle)
    return {name: _effect(values) for name, values in groups.items()}


def _methods(study: Study, dataset: str, value: Value) -> list[Component]:
    """The methods of the paper that a dataset has."""
    variant = study.variants.get(dataset)
    found = [] if variant is None else study.components([variant])
    ours = [one for one in found if not study.beyond(one)]
    if value is not theirs:
        return ours
    # Of the models that ours has: their mean must be of the same ones.
    rows = {one.row for one in ours}
    every = published_components(dataset)
    return [one for one in every if one.row in rows or not rows]


def _member(study: Study, one: Component, part: str) -> str:
    if part == "measure":
        return study.kind(one)
    return one.row if part == "model" else one.aggregation


def _effect(values: Sequence[float]) -> Effect:
    spread = stdev(values) if len(values) > 1 else math.nan
    return Effect(mean(values), spread, len(values))


def members(study: Study, part: str) -> dict[str, str]:
    """The members of a part with what they are called."""
    if part == "measure":
        return {kind: f"{kind} measure" for kind in ("AU", "EU", "PU")}
    if part == "aggregation":
        return dict(zip(AGGREGATIONS, AGGREGATIONS, strict=True))
    there = (name for name in study.results.preset.rows if name in MODELS)
    return {name: study.results.benchmark.row(name).label for name in there}


def component_tables(study: Study) -> Iterator[Table]:
    """The numbers of figure 3, one table for each dataset."""
    for dataset, variant in study.variants.items():
        tasks = [
            task
            for task in TASKS
            if effects(study, task, PARTS[0], dataset, study.ours)
        ]
        lines = tuple(_effect_lines(study, dataset, tasks))
        if lines:
            yield Table(
                name=f"table_parts_{dataset}",
                title=f"{DATASETS[dataset]}: what parts of a method change (x 100)",
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
                main=not dataset.startswith("toy"),
                keys={
                    "number": "3",
                    "preset": study.results.preset.told,
                    "dataset": dataset,
                    "variant": variant.name,
                },
            )


def _task_column(task: str) -> Column:
    group, _, items = task.partition(", ")
    label = items or TASKS[task][0].label
    return Column(label=label, group=group, decimals=1, keys={"task": task})


def _effect_lines(
    study: Study, dataset: str, tasks: Sequence[str]
) -> Iterator[TableLine]:
    for part in PARTS:
        found = [effects(study, task, part, dataset, study.ours) for task in tasks]
        for name, label in members(study, part).items():
            cells = [each.get(name) for each in found]
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
    """Figure 3, one for each part; that of the toy data is apart, and ours alone."""
    for toys in (False, True):
        datasets = [name for name in study.variants if name.startswith("toy") == toys]
        for part in PARTS:
            yield from _part_drawing(study, part, datasets, "_toy" if toys else "")


def _part_drawing(
    study: Study, part: str, datasets: Sequence[str], suffix: str
) -> Iterator[Drawing]:
    shown = [
        task
        for task in TASKS
        if any(effects(study, task, part, name, study.ours) for name in datasets)
    ]
    if not shown:
        return
    variants = [study.variants[name] for name in datasets]
    panels = [
        _part_panel(study, part, task, datasets, first=not place % 4)
        for place, task in enumerate(shown)
    ]
    yield Drawing(
        name=f"figure_3_{part}{suffix}",
        title=f"Figure 3: what the {part} changes",
        caption=f"Methods grouped by their {part}: the mean score of a group minus the "
        "mean of all methods that are compared, so bars above 0 are better than "
        "average (scores of which lower is better are turned). Whiskers are the "
        "deviation over the other parts of a method, not over seeds, so they are wide. "
        f"{_LEFT_OUT[part]} Scores, times 100: AUROC, improvement over random items, "
        "AURC, ACE, NCC. Hollow diamonds are the paper's numbers, treated alike, on "
        f"its own data. {study_source(study.results, variants)}",
        rows=tuple(tuple(panels[at : at + 4]) for at in range(0, len(panels), 4)),
        simulated=any(map(stands_in, variants)),
        size=(1.95, 1.75),
        legend_columns=6,
    )


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
    found = {name: effects(study, task, part, name, study.ours) for name in datasets}
    shown = [name for name, ours in found.items() if ours]
    step = 0.8 / len(names)
    for place, dataset in enumerate(shown):
        printed = effects(study, task, part, dataset, theirs)
        for number, (name, label) in enumerate(names.items()):
            x = place + step * (number - (len(names) - 1) / 2)
            look = label, SERIES[number % len(SERIES)]
            ours = found[dataset].get(name)
            marks += _effect_marks(x, step, ours, printed.get(name), look)
    ends = -0.5, len(shown) - 0.5
    return Panel(
        marks=(RuleMark((ends[0], 0), (ends[1], 0)), *_bars_first(marks)),
        title=task,
        y_label="better than average, x 100" if first else "",
        x_ticks={i: DATASETS[name].replace(" ", "\n") for i, name in enumerate(shown)},
    )


def _bars_first(marks: Sequence[Mark]) -> list[Mark]:
    """In this order they stand in the legend."""
    return sorted(marks, key=lambda mark: not isinstance(mark, BarMark))


def _effect_marks(
    x: float,
    step: float,
    ours: Effect | None,
    printed: Effect | None,
    look: tuple[str, str],
) -> Iterator[Mark]:
    label, colour = look
    if ours is not None:
        middle, spread = _SCALE * ours.mean, _SCALE * ours.spread
        yield BarMark(
            x=x,
            height=middle,
            colour=colour,
            low=middle - spread,
            high=middle + spread,
            label=label,
            width=0.85 * step,
        )
    if ours is not None and printed is not None:
        yield PointMark(
            x=x + 0.17 * step,
            y=_SCALE * printed.mean,
            colour=INK,
            marker="D",
            hollow=True,
            size=2.5,
            label="published",
        )


def toy_drawing(study: Study) -> Iterator[Drawing]:
    """Figure 2b: scores of AU, EU and PU measures, with growing ambiguity."""
    toys = [name for name in study.variants if name.startswith("toy")]
    panels = []
    for scores, names, title in (
        (NCC[0], ("toy1",), "Q1, Q2: NCC"),
        (AUROC, ("toy2", "toy3a", "toy3b"), "Q3, Q4: AUROC"),
    ):
        shown = [name for name in names if name in toys]
        if shown:
            panels.append(_kinds_panel(study, scores, shown, title))
    if panels:
        variants = [study.variants[name] for name in toys]
        yield Drawing(
            name="figure_2b",
            title="Figure 2b: what measures capture in the toy data",
            caption="Mean scores of aleatoric (AU), epistemic (EU) and predictive (PU) "
            "measures over prediction models and aggregations, without the plain "
            "softmax; whiskers are their deviation. Left: does uncertainty lie where "
            "raters disagree? Right: does it tell shifted items, while in-domain items "
            "become more ambiguous from Toy 2 to Toy 3b? Hollow diamonds are the "
            f"paper's numbers. {study_source(study.results, variants)}",
            rows=(tuple(panels),),
            size=(2.8, 2.2),
        )


def _kinds_panel(
    study: Study, score: ScoreColumn, datasets: Sequence[str], title: str
) -> Panel:
    marks: list[Mark] = []
    for place, dataset in enumerate(datasets):
        for number, (kind, label) in enumerate(members(study, "measure").items()):
            x = place + 0.27 * (number - 1)
            for value in (study.ours, theirs):
                found = _kind_values(study, score, dataset, kind, value)
                if found:
                    mark = _kind_mark(x, _effect(found), label, SERIES[number])
                    marks.append(_printed_mark(mark) if value is theirs else mark)
    return Panel(
        marks=tuple(_bars_first(marks)),
        title=title,
        x_range=(-0.6, len(datasets) - 0.4),
        x_ticks={i: DATASETS[name] for i, name in enumerate(datasets)},
        y_range=(0, 1.02),
    )


def _kind_values(
    study: Study, score: ScoreColumn, dataset: str, kind: str, value: Value
) -> list[float]:
    ones = _methods(
        study, "toy2" if dataset == "toy1" and value is theirs else dataset, value
    )
    found = {}
    for one in ones:
        if one.row != "softmax" and study.kind(one) == kind:
            over = one.aggregation if score is AUROC else ""
            found[one.row, over] = value(dataset, one, score)
    return [number for number in found.values() if math.isfinite(number)]


def _kind_mark(x: float, effect: Effect, label: str, colour: str) -> BarMark:
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
