"""Tables 2, 4, 5 and 6 of the paper as layouts, and how far ours lie from table 4."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qualms.benchmarks.values._rows import (
    EXTRA_AGGREGATIONS,
    FIRST_NAMES,
    PAPER_AGGREGATIONS,
    TYPES,
    is_second,
)
from qualms.benchmarks.values._settings import (
    ALL_SCORES,
    AUROC,
    DATA,
    DATASETS,
    DETAILED,
    METHOD,
    NCC,
    SEPARATION,
    TYPES_NOTE,
    ScoreColumn,
    Study,
    as_in_paper,
    data_warning,
    method_labels,
    stands_in,
    study_about,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Label, Labels
from qualms.report.judged import SAMPLE
from qualms.report.layout import Layout, LayoutColumn, Section, layout_table
from qualms.report.own_uncertainties import own_uncertainty_table
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import ResultsTable, result
from qualms.study import RunPlan, Variant

FEATURES = {
    "calcification": "absent / present",
    "sphericity": "round / linear",
    "lobulation": "none / some",
    "spiculation": "none / some",
    "texture": "solid, part solid / non-solid",
    "malignancy": "non-malignant / malignant",
}
"""In-domain and shifted nodules by feature, in the order of table 2."""
NEAR, FAR = 0.05, 0.1
"""Differences from table 4 that are counted."""
_ORDER: Mapping[str, Sequence[Label | None]] = {
    "type": TYPES,
    "aggregation": (None, "patch", "threshold", "image", *sorted(EXTRA_AGGREGATIONS)),
}
_SHARED: Mapping[str, Any] = {
    **{"order": _ORDER, "across": DATA, "spread": SAMPLE},
    # Rows are ranked among those of one measure, but a column holds several.
    "marked": False,
}


def separation_tables(study: Study) -> Iterator[Table]:
    """Yield tables 4a and 4b, and how far ours lie from them."""
    yield from _ambiguity(study)
    yield from _detection(study)
    yield from _differences(study)


def _ambiguity(study: Study) -> Iterator[Table]:
    """Yield table 4a: does uncertainty lie where raters disagree?"""
    names = ("Toy 1", *DATASETS[4:])
    variants = [variant for variant in study.variants if variant.label in names]
    items = {"in_domain": "in-domain test items", "shifted": "shifted test items"}
    yield from _separation_table(
        study,
        variants,
        name="4a",
        title="Table 4a: NCC of uncertainty and the raters' disagreement ↑",
        where={"score": "ncc", "uncertainty": None},
        lines=METHOD[:3],
        line_labels=lambda plan, labels: method_labels(plan, labels)[:2],
        left=("model", "measure"),
        sections=tuple(Section(t, {"subset": name}) for name, t in items.items()),
    )


def _detection(study: Study) -> Iterator[Table]:
    """Yield table 4b: does an item's uncertainty tell that it is shifted?"""
    variants = [variant for variant in study.variants if variant.label != "Toy 1"]
    for beyond in (False, True):
        end = " of methods beyond the paper" if beyond else ""
        yield from _separation_table(
            study,
            variants,
            name="4b_beyond" if beyond else "4b",
            title=f"Table 4b: AUROC of shifted items by uncertainty{end} ↑",
            where={"score": "ood_auroc", "uncertainty": None},
            lines=METHOD,
            line_labels=lambda plan, labels: method_labels(plan, labels)[1:],
            left=("measure", "over"),
            sections=_models(study.results.plan, beyond=beyond),
            main=not beyond,
        )


def _separation_table(
    study: Study,
    variants: Sequence[Variant],
    *,
    name: str,
    main: bool = True,
    **layout: Any,
) -> Iterator[Table]:
    if not variants:
        return
    columns = tuple(
        LayoutColumn(
            label=variant.label,
            labels={"dataset": variant.label, "variant": variant.name},
            decimals=2,
        )
        for variant in variants
    )
    notes = (TYPES_NOTE,)
    yield from _filled(
        layout_table(
            study.results,
            Layout(
                name=name,
                columns=columns,
                printed_in={"table": SEPARATION},
                notes=notes,
                published_notes=data_warning(variants),
                main=main,
                **layout,
                **_SHARED,
            ),
            about=study_about(study.results, variants),
            simulated=any(map(stands_in, variants)),
            keys={"number": name},
        ),
        beyond=not main,
    )


def _models(plan: RunPlan, *, beyond: bool) -> tuple[Section, ...]:
    """Return a section for each model, with methods of the paper or beyond it."""
    extra = EXTRA_AGGREGATIONS if beyond else ()
    sections = []
    for row in plan.rows:
        paper = () if beyond == (row.name in FIRST_NAMES) else PAPER_AGGREGATIONS
        aggregations = (*paper, *extra)
        if aggregations and not is_second(row):
            labels = {"row": row.name, "aggregation": aggregations}
            sections.append(Section(row.label, labels))
    return tuple(sections)


def _filled(table: Table | None, *, beyond: bool) -> Iterator[Table]:
    """Yield a table without the lines and columns that have no number of ours."""
    if table is None:
        return
    lines = [line for line in table.lines if any(c.repeats for c in line.cells)]
    places = [
        place
        for place in range(len(table.columns))
        if any(line.cells[place].repeats for line in lines)
    ]
    yield replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        lines=tuple(
            replace(
                line,
                cells=tuple(line.cells[place] for place in places),
                beyond=beyond or line.beyond,
            )
            for line in lines
        ),
    )


def task_tables(study: Study) -> Iterator[Table]:
    """Yield tables 5 and 6: all scores of each dataset, and ours of the toy data."""
    for variant in study.variants:
        for beyond in (False, True):
            yield from _tasks_table(study, variant, beyond=beyond)
        yield from _own_uncertainties(study, variant)


def _tasks_table(study: Study, variant: Variant, *, beyond: bool) -> Iterator[Table]:
    number = {"LIDC": "5", "GTA5/CS": "6"}.get(str(variant.labels["family"]), "")
    head = f"Table {number}: " if number and not beyond else ""
    methods = ", methods beyond the paper" if beyond else ""
    sections = _models(study.results.plan, beyond=beyond)
    numbers = study.results.table.where(variant=variant.name, uncertainty=None)
    judged = numbers.pivot(("subset", "score"), ()).rows
    scores = [s for s in ALL_SCORES if (s.subset, s.name) in judged]
    layout = Layout(
        name=f"{number or 'tasks'}_{variant.name}{'_beyond' if beyond else ''}",
        title=f"{head}{variant.label}, every downstream task{methods} (x 100)",
        columns=tuple(map(_task_column, scores)),
        where={"variant": variant.name},
        lines=METHOD,
        line_labels=lambda plan, labels: method_labels(plan, labels)[1:],
        left=("measure", "over"),
        sections=sections,
        printed_in={"table": DETAILED},
        compares=as_in_paper(variant),
        notes=(TYPES_NOTE,),
        published_notes=data_warning([variant]),
        **_SHARED,
    )
    table = layout_table(
        replace(study.results, table=numbers),
        layout,
        about=study_about(study.results, [variant]),
        simulated=stands_in(variant),
        keys={
            "number": number,
            "dataset": variant.label,
            "variant": variant.name,
            "scale": 100,
        },
    )
    for filled in _filled(table, beyond=beyond):
        lines = (_without_queries(line, filled.columns) for line in filled.lines)
        yield replace(filled, lines=tuple(lines))


def _without_queries(line: TableLine, columns: Sequence[Column]) -> TableLine:
    """Return a line that gives no reason for a missing gain of an aleatoric measure.

    Items to label are never asked for by such measures.
    """
    if line.keys["type"] != "AU":
        return line
    cells = (
        replace(cell, why="") if column.keys["score"] == "gain" else cell
        for column, cell in zip(columns, line.cells, strict=True)
    )
    return replace(line, cells=tuple(cells))


def _own_uncertainties(study: Study, variant: Variant) -> Iterator[Table]:
    """Yield every task by the maps and numbers that are of methods' own."""
    columns = (s for s in ALL_SCORES if s.by)  # the others take no uncertainty
    table = own_uncertainty_table(
        study.results,
        variant,
        tuple(map(_task_column, columns)),
        by=("aggregation",),
        about=study_about(study.results, [variant]),
        simulated=stands_in(variant),
        keys={"dataset": variant.label, "variant": variant.name, "scale": 100},
    )
    if table is not None:
        yield table


def _task_column(score: ScoreColumn) -> LayoutColumn:
    return LayoutColumn(
        label=score.head,
        group=score.group,
        labels=score.labels,
        scale=100.0,
        decimals=1,
    )


class Gap(NamedTuple):
    """Distance of a number of ours from the published one."""

    labels: Labels
    difference: float


def gaps(study: Study) -> list[Gap]:
    """Return every number of table 4 that we have on data like the paper's.

    Ours is by the rule of the released code.
    """
    judged = study.results.table.where(row=FIRST_NAMES)
    joined = judged.join(study.printed.where(table=SEPARATION))
    pairs = zip(joined.results, joined.differences.tolist(), strict=True)
    return [Gap(number.labels, d) for number, d in pairs if math.isfinite(d)]


def _differences(study: Study) -> Iterator[Table]:
    """Yield how many cells of table 4 lie near the published ones, and each of them."""
    every = gaps(study)
    if not every:
        return
    groups: dict[tuple[Label, ScoreColumn], list[Gap]] = {}
    for gap in every:
        at = gap.labels["score"], gap.labels["subset"]
        score = next(s for s in (*NCC, AUROC) if (s.name, s.subset) == at)
        groups.setdefault((gap.labels["dataset"], score), []).append(gap)
    variants = [v for v in study.variants if v.label in {name for name, _ in groups}]
    about = study_about(study.results, variants)
    named = {f"{name}, {score.title}": each for (name, score), each in groups.items()}
    yield Table(
        name="table_4_differences",
        title="Table 4: how far ours lie from the published numbers",
        about=about,
        columns=(
            Column(label="cells", decimals=0, keys={"score": "cells"}),
            Column(label=f"within {NEAR:g}", decimals=0, keys={"score": "near"}),
            Column(label=f"within {FAR:g}", decimals=0, keys={"score": "far"}),
            Column(label="mean |difference|", decimals=3, keys={"score": "mean"}),
            Column(label="mean difference", decimals=3, keys={"score": "bias"}),
            Column(label="largest", decimals=2, keys={"score": "largest"}),
        ),
        lines=tuple(_near_line(*each) for each in {**named, "all": every}.items()),
        left=("data and score",),
        notes=(
            "Ours minus published, means over repeats; ours by the rule of the "
            "released code. table_4_cells has every cell.",
        ),
        keys={"number": "4", "preset": study.results.plan.preset_text},
    )
    yield from _cells_table(study, list(groups), about)


def _near_line(label: str, each: Sequence[Gap]) -> TableLine:
    sizes = [abs(gap.difference) for gap in each]
    # Published numbers have two decimals: a cell at the limit lies within.
    near = sum(size <= NEAR + 1e-9 for size in sizes)
    far = sum(size <= FAR + 1e-9 for size in sizes)
    mean = math.fsum(sizes) / len(sizes)
    bias = math.fsum(gap.difference for gap in each) / len(each)
    values = (len(each), near, far, mean, bias, max(sizes))
    return TableLine(
        labels=(label,),
        cells=tuple(TableCell(mean=float(value), repeats=1) for value in values),
        keys={"data": label},
    )


def _cells_table(
    study: Study, groups: Sequence[tuple[Label, ScoreColumn]], about: str
) -> Iterator[Table]:
    """Yield every difference; a line of the CSV file is a cell of table 4."""
    layout = Layout(
        name="4_cells",
        title="Table 4: ours minus the published numbers, cell by cell",
        columns=tuple(
            LayoutColumn(
                label=str(name),
                group=score.title,
                labels={"dataset": name, "subset": score.subset, "score": score.name},
                decimals=2,
            )
            for name, score in groups
        ),
        where={
            "row": FIRST_NAMES,
            "score": ("ncc", "ood_auroc"),
            "aggregation": (None, *PAPER_AGGREGATIONS),
        },
        lines=METHOD,
        line_labels=method_labels,
        left=("model", "measure", "over"),
        printed_in={"table": SEPARATION},
        **_SHARED,
    )
    table = layout_table(study.results, layout, about=about, keys={"number": "4"})
    if table is not None:
        lines = (
            replace(line, cells=tuple(map(_gap_cell, line.cells)))
            for line in table.lines
        )
        compared = (line for line in lines if any(cell.text for cell in line.cells))
        yield replace(table, lines=tuple(compared))


def _gap_cell(cell: TableCell) -> TableCell:
    if not math.isfinite(cell.gap):
        return TableCell()
    return replace(cell, text=f"{round(cell.gap, 2) + 0.0:+.2f}")


def screening_table(results: BenchmarkResults) -> Iterator[Table]:
    """Yield table 2: Dice in domain and on shifted nodules, over five divisions."""
    variants = [v for v in results.plan.variants if "feature" in v.labels]
    layout = Layout(
        name="2",
        title="Table 2: what the shift of each feature of nodules costs",
        columns=(
            LayoutColumn(
                label="Dice i.i.d. ↑",
                labels={"subset": "in_domain", "score": "dice"},
                decimals=3,
            ),
            LayoutColumn(
                label="Dice OoD ↑",
                labels={"subset": "shifted", "score": "dice"},
                decimals=3,
            ),
            LayoutColumn(
                label="drop",
                labels={"subset": "all", "score": "dice_drop"},
                unit="%",
                scale=100.0,
                decimals=1,
            ),
        ),
        lines=("feature",),
        line_labels=_feature_labels,
        left=("feature", "i.i.d. / OoD"),
        order={"feature": tuple(FEATURES)},
        printed_in={"table": "2"},
        across=DATA,
        spread=SAMPLE,
        notes=(
            "Each feature is divided anew in every fold, so ± is over folds: other "
            "items and another seed.",
        ),
        published_notes=data_warning(variants),
        main=True,
    )
    table = layout_table(
        replace(results, table=_over_folds(results.table)),
        layout,
        about=study_about(results, variants),
        simulated=any(map(stands_in, variants)),
        keys={"number": "2"},
    )
    if table is not None:
        yield table


def _feature_labels(_plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    feature = str(labels["feature"])
    return feature.capitalize(), FEATURES[feature]


def _over_folds(table: ResultsTable) -> ResultsTable:
    """Return the screening with folds as repeats, each the mean over its seeds.

    Seeds of a fold are not further folds.
    """
    names = ("feature", "simulated", "row", "subset", "score")
    screened = table.where(feature=tuple(FEATURES))
    results = []
    for line in screened.pivot(names, ()).rows:
        folds = [
            number
            for number in screened.where(**dict(zip(names, line, strict=True)))
            if number.values
        ]
        if folds:
            results.append(
                result(
                    {n: v for n, v in zip(names, line, strict=True) if v is not None},
                    tuple(math.fsum(f.values) / len(f.values) for f in folds),
                    released_values=tuple(
                        math.fsum(f.released_values) / len(f.released_values)
                        for f in folds
                        if f.released_values
                    ),
                )
            )
    return ResultsTable.of(results)
