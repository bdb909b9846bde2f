"""Tables that the paper does not have: a summary, what rules change, and the truth."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qualms.benchmarks import Variant
from qualms.evaluate.results import BenchmarkResults
from qualms.report.judged import only_judged
from qualms.report.papers.retina.settings import (
    AREAS,
    STANDARD,
    SUBSETS,
    TASKS,
    ScoreLabel,
    main_variants,
    rows_of,
    task_of,
)
from qualms.report.papers.retina.tables import (
    FOUND,
    SETS,
    LineOf,
    RetinaColumn,
    filled_line,
    retina_table,
)
from qualms.report.table import Table


def summaries(results: BenchmarkResults) -> tuple[Table, ...]:
    """A handful of scores of each variant: what a run shows first."""
    made = (_summary(results, variant) for variant in main_variants(results.preset))
    return only_judged(made)


def own_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """What the rules change, and estimates beside what a simulator knows."""
    variants = main_variants(results.preset)
    areas = (_areas(results, variant) for variant in variants)
    truths = (_truth(results, variant) for variant in variants if variant.simulated)
    return only_judged(_without_empty(table) for table in (*areas, *truths))


def _own(
    results: BenchmarkResults,
    variant: Variant,
    columns: Sequence[RetinaColumn],
    **told: Any,
) -> Table:
    """A table of ours, of one variant."""
    by_task = {task_of(variant): variant}
    rows = rows_of(results.benchmark, results.preset, variant)
    lines = [
        filled_line(results, columns, LineOf(row.label, row, "", by_task))
        for row in rows
    ]
    suffix = "_simulated" if variant.simulated else ""
    name = f"{told.pop('name')}_{variant.name}{suffix}"
    title = f"{TASKS[task_of(variant)]}{told.pop('title')}"
    return retina_table(
        results, columns, lines, [variant], name=name, title=title, **told
    )


def _without_empty(table: Table) -> Table:
    """A table of ours without the columns that were not judged."""
    places = [
        place
        for place in range(len(table.columns))
        if any(line.cells[place].repeats for line in table.lines)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        lines=tuple(
            replace(line, cells=tuple(line.cells[place] for place in places))
            for line in table.lines
        ),
    )


def _summary(results: BenchmarkResults, variant: Variant) -> Table:
    task = task_of(variant)
    names = (("accuracy", "accuracy"), ("auroc", "AUROC"), ("nll", "NLL"))
    columns = [
        RetinaColumn(score, subset, SUBSETS[subset], label, task)
        for subset in ("in_domain", "shifted")
        for score, label in (
            *((STANDARD[name], label) for name, label in names),
            (STANDARD["accuracy"].at(0.5), "half kept"),
        )
    ]
    columns.append(RetinaColumn(FOUND[0], "joint", "shift found", "AUROC", task))
    return _own(
        results,
        variant,
        columns,
        name="summary",
        title=": summary",
        main=True,
        notes=(
            "Half kept: accuracy on the half of the items that the network decides "
            "itself when the more uncertain half is referred to an expert. Shift "
            "found: how well uncertainty tells shifted items from in-domain ones.",
        ),
    )


def _areas(results: BenchmarkResults, variant: Variant) -> Table:
    """Areas under referral curves by both rules."""
    task = task_of(variant)
    columns = []
    for name, oracle in AREAS.items():
        kept = oracle._replace(name=f"referral_{name}_area", metric="")
        for subset in SETS:
            group = f"{oracle.label}, {SUBSETS[subset]}"
            columns += [
                RetinaColumn(oracle, subset, group, "their rule", task, True),
                RetinaColumn(oracle, subset, group, "corrected", task),
                RetinaColumn(kept, subset, group, "kept only", task),
            ]
    # The release takes AUROC and AUPRC of its balanced set on the plain joint one.
    for score in (STANDARD["auroc"], STANDARD["auprc"]):
        group = f"balanced {score.label}"
        columns += [
            RetinaColumn(score, "balanced", group, "their rule", task, True),
            RetinaColumn(score, "balanced", group, "corrected", task),
        ]
    return _without_published(
        _own(
            results,
            variant,
            columns,
            name="referral_areas",
            title=", areas under referral curves: by the rule of the released code, "
            "corrected, and without counting referred items as perfect",
        )
    )


def _without_published(table: Table) -> Table:
    """A table in which rules are compared, not papers."""
    lines = (
        replace(line, cells=tuple(replace(cell, published=None) for cell in line.cells))
        for line in table.lines
    )
    return replace(table, lines=tuple(lines))


_PARTS = ("aleatoric", "total", "epistemic")
_TRUTHS = {
    "spearman": ("entropy: rank correlation", _PARTS, (1.0, 3, "")),
    "mae": ("entropy: distance", _PARTS, (1.0, 3, "nats")),
    "shift_auroc": ("shift: AUROC", (*_PARTS, "true_entropy"), (100.0, 1, "%")),
}
"""How an estimate is held against the truth."""
_BETTER = {
    "aleatoric_spearman": "aleatoric ↑",
    "aleatoric_mae": "aleatoric ↓",
    "epistemic_shift_auroc": "epistemic ↑",
}
"""Columns with a better direction: of an estimate only what it is named after."""
_TRUE_SHIFT = {
    "country": "The true entropy of shifted items differs too, so that a perfect "
    "aleatoric estimate tells some of them apart; columns without an arrow have no "
    "better direction.",
    "severity": "The true entropy of shifted items is 0 by construction, so that even "
    "a perfect aleatoric estimate tells them apart; columns without an arrow have no "
    "better direction.",
}


def _truth(results: BenchmarkResults, variant: Variant) -> Table:
    """Estimates beside what a simulator knows."""
    columns = [
        RetinaColumn(
            ScoreLabel(f"{part}_{kind}", "", part, *printing),
            "joint" if kind == "shift_auroc" else "in_domain",
            head,
            _BETTER.get(f"{part}_{kind}", part.replace("_", " ")),
            task_of(variant),
        )
        for kind, (head, parts, printing) in _TRUTHS.items()
        for part in parts
    ]
    return _own(
        results,
        variant,
        columns,
        name="truth",
        title=", parts of the uncertainty beside the true entropy of the targets "
        "(in-domain) and beside the shift (joint)",
        notes=(_TRUE_SHIFT[task_of(variant)],),
        main=True,
    )
