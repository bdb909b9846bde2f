"""Tables the paper does not have: what its rules change, and estimates beside truth."""

from collections.abc import Iterable, Iterator

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._layouts import Column
from qualms.report.papers.retina._scores import AREAS, PERCENT, STANDARD, Score, Unit
from qualms.report.papers.retina._settings import (
    SUBSETS,
    TASKS,
    main_variants,
    rows_of,
    task_of,
)
from qualms.report.papers.retina._table import Line, Part, Table, compared

_PARTS = ("aleatoric", "total", "epistemic")
_KINDS = {
    "spearman": ("entropy: rank corr.", _PARTS, Unit(decimals=3)),
    "mae": ("entropy: distance", _PARTS, Unit(decimals=3, text="nats")),
    "shift_auroc": ("shift: AUROC", (*_PARTS, "true_entropy"), PERCENT),
}
"""How an estimate is held against the truth."""
_BETTER = {
    "aleatoric_spearman": "aleatoric ↑",
    "aleatoric_mae": "aleatoric ↓",
    "epistemic_shift_auroc": "epistemic ↑",
}
"""Columns with a better direction: of an estimate only what it is named after."""
_NOTES = {
    "country": "The true entropy of shifted items differs too, so that a perfect "
    "aleatoric estimate tells some of them apart; columns without an arrow have no "
    "better direction.",
    "severity": "The true entropy of shifted items is 0 by construction, so that even "
    "a perfect aleatoric estimate tells them apart; columns without an arrow have no "
    "better direction.",
}


def area_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Areas under referral curves by both rules, for each variant."""
    variants = main_variants(results.preset)
    return tuple(table for v in variants for table in _areas(results, v))


def truth_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Estimates beside what a simulator knows, for each simulated variant."""
    variants = (v for v in main_variants(results.preset) if v.simulated)
    return tuple(table for v in variants for table in _truth(results, v))


def _areas(results: BenchmarkResults, variant: Variant) -> Iterator[Table]:
    parts = [_area_columns(variant, name) for name in AREAS]
    parts.append(_balanced_columns(variant))
    yield from _table(
        results,
        variant,
        parts,
        name="referral_areas",
        title="areas under referral curves: as published, corrected, and without "
        "counting referred items as perfect",
    )


def _area_columns(variant: Variant, name: str) -> list[Column]:
    oracle = AREAS[name]
    kept = oracle._replace(name=f"referral_{name}_area", metric="")
    task = task_of(variant)
    return [
        Column(score, subset, f"{oracle.label}, {SUBSETS[subset]}", label, task, theirs)
        for subset in ("in_domain", "shifted", "joint", "balanced")
        for score, label, theirs in (
            (oracle, "their rule", True),
            (oracle, "oracle", False),
            (kept, "kept only", False),
        )
    ]


def _balanced_columns(variant: Variant) -> list[Column]:
    """The release takes AUROC and AUPRC of its balanced set on the plain joint one."""
    return [
        Column(score, "balanced", f"balanced {score.label}", label, task, theirs)
        for task in (task_of(variant),)
        for score in (STANDARD["auroc"], STANDARD["auprc"])
        for label, theirs in (("their rule", True), ("corrected", False))
    ]


def _truth(results: BenchmarkResults, variant: Variant) -> Iterator[Table]:
    columns = [
        Column(
            Score(f"{part}_{kind}", "", part, unit),
            "joint" if kind == "shift_auroc" else "in_domain",
            head,
            _BETTER.get(f"{part}_{kind}", part.replace("_", " ")),
            task_of(variant),
        )
        for kind, (head, parts, unit) in _KINDS.items()
        for part in parts
    ]
    yield from _table(
        results,
        variant,
        [columns],
        name="truth",
        title="parts of the uncertainty beside the true entropy of the targets "
        "(in-domain) and beside the shift (joint)",
        note=_NOTES[task_of(variant)],
    )


def _table(
    results: BenchmarkResults,
    variant: Variant,
    parts: Iterable[list[Column]],
    *,
    name: str,
    title: str,
    note: str = "",
) -> Iterator[Table]:
    """The table of what was judged; nothing where none of it was."""
    made = [_part(results, variant, columns) for columns in parts]
    judged = [part for part in made if part.columns]
    if judged:
        yield Table(
            name=f"{name}_{variant.name}",
            title=f"{TASKS[task_of(variant)]}, {title}",
            preset=results.preset,
            variants=(variant,),
            parts=tuple(judged),
            note=note,
            own=True,
        )


def _part(results: BenchmarkResults, variant: Variant, columns: list[Column]) -> Part:
    rows = rows_of(results.benchmark, results.preset, variant)
    filled = [
        column
        for column in columns
        if any(compared(results, variant, row, column).cell.values for row in rows)
    ]
    lines = (
        Line(
            row.label,
            row,
            {task_of(variant): variant},
            tuple(compared(results, variant, row, column) for column in filled),
        )
        for row in rows
    )
    return Part("", tuple(filled), tuple(lines) if filled else ())
