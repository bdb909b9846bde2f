"""Tables 1 to 13 of the paper, and four of ours, as layouts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from qualms.benchmarks.retina._rows import BLUR_ROWS
from qualms.benchmarks.retina._settings import (
    SUBSETS,
    TASKS,
    about_text,
    main_variants,
    own_variants,
    retina_data_text,
    variants_where,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Labels
from qualms.report.judged import ERROR, NOT_PRINTED, only_judged
from qualms.report.layout import Layout, LayoutColumn, Section, layout_table
from qualms.report.own_uncertainties import own_uncertainty_table
from qualms.report.table import Table
from qualms.study import RunPlan, Variant

SETS = ("in_domain", "shifted", "joint", "balanced")
_SUPPLEMENT, _FULL_PAPER = "000_retina", "001_retina"


class PrintedScore(NamedTuple):
    """A score, and how it is printed."""

    name: str
    label: str
    unit: str = "%"
    scale: float = 100.0
    decimals: int = 1


STANDARD = (
    PrintedScore("nll", "NLL ↓", "nats", 1.0, 2),
    PrintedScore("accuracy", "Accuracy ↑"),
    PrintedScore("auprc", "AUPRC ↑"),
    PrintedScore("auroc", "AUROC ↑"),
    PrintedScore("ece", "ECE ↓", "", 1.0, 2),
)
_BY_NAME = {score.name: score for score in STANDARD}
AREAS = tuple(
    PrintedScore(
        f"referral_{name}_oracle_area",
        f"R-{label} AUC {'↓' if name == 'nll' else '↑'}",
        unit="x100" if name == "nll" else "%",
    )
    for name, label in (
        ("auroc", "AUROC"),
        ("accuracy", "Accuracy"),
        ("nll", "NLL"),
        ("auprc", "AUPRC"),
    )
)
DETECTION = (
    PrintedScore("ood_auroc", "AUROC ↑"),
    PrintedScore("ood_auprc", "AUPRC ↑"),
)


def _column(
    score: PrintedScore,
    labels: Labels,
    *,
    label: str = "",
    group: str = "",
    referred: float | None = None,
    released: bool = False,
) -> LayoutColumn:
    return LayoutColumn(
        label=label or score.label,
        group=group,
        labels={"score": score.name, "referred": referred, **labels},
        unit=score.unit,
        scale=score.scale,
        decimals=score.decimals,
        released=released,
    )


def _table(
    name: str,
    title: str,
    columns: Iterable[LayoutColumn],
    *,
    shift: str | tuple[str, ...],
    selection: str = "in_domain",
    source: str = _SUPPLEMENT,
    **fields: Any,
) -> Layout:
    number = name.partition("_")[0]
    return Layout(
        name=name,
        title=f"Table {number}: {title}",
        columns=tuple(columns),
        where={"shift": shift, "selection": selection},
        printed_in={"source": source, "table": number},
        spread=ERROR,
        **fields,
    )


def _referral(name: str, shift: str, *, blurs: bool = False, **more: Any) -> Layout:
    """Lay out tables 1, 2, 12 and 13: AUROC and accuracy of the kept items."""
    parts = {None: "no referral", 0.5: "50% referred", 0.7: "70% referred"}
    content = "AUROC and accuracy of the items kept after referral"
    end = ", preprocessing with different blur" if blurs else ""
    if blurs:
        more |= {"lines": ("row", "blur"), "line_labels": _blur_label, "marked": False}
    return _table(
        name,
        f"{TASKS[shift]}, {content}{end}",
        (
            _column(_BY_NAME[score], {}, group=group, referred=share)
            for share, group in parts.items()
            for score in ("auroc", "accuracy")
        ),
        shift=shift,
        sections=tuple(
            Section(SUBSETS[subset], {"subset": subset})
            for subset in ("in_domain", "shifted")
        ),
        **more,
    )


def _blur_label(plan: RunPlan, labels: Labels) -> tuple[str, ...]:
    return (f"{plan.row(str(labels['row'])).label}, blur {labels['blur']}",)


def _crossed(
    name: str,
    content: str,
    scores: Iterable[PrintedScore],
    subsets: Iterable[str],
    shift: str,
    selection: str,
) -> Layout:
    """Lay out tables 4 to 11: scores by set of items."""
    columns = (
        _column(score, {"subset": subset}, label=SUBSETS[subset], group=score.label)
        for score in scores
        for subset in subsets
    )
    title = f"{TASKS[shift]}, {content}"
    return _table(name, title, columns, shift=shift, selection=selection)


def _standard(name: str, shift: str, selection: str) -> Layout:
    return _crossed(name, "standard scores", STANDARD, SETS[:3], shift, selection)


def _area(name: str, shift: str, selection: str) -> Layout:
    content = "areas under referral curves, referred items count as perfect"
    return _crossed(name, content, AREAS, SETS, shift, selection)


LAYOUTS = (
    _referral("1", "country"),
    _referral(
        "1_full_paper",
        "country",
        source=_FULL_PAPER,
        notes=("Numbers of the full paper.",),
    ),
    _referral("2", "severity"),
    _table(
        "3",
        "shifted items found by their uncertainty",
        (
            _column(score, {"subset": "joint", "shift": shift}, group=group)
            for shift, group in TASKS.items()
            for score in DETECTION
        ),
        shift=tuple(TASKS),
    ),
    _standard("4", "country", "in_domain"),
    _standard("5", "severity", "in_domain"),
    _area("6", "country", "in_domain"),
    _area("7", "severity", "in_domain"),
    _standard("8", "country", "joint"),
    _standard("9", "severity", "joint"),
    _area("10", "country", "joint"),
    _area("11", "severity", "joint"),
    _referral("12", "severity", blurs=True),
    _referral("13", "country", blurs=True),
)
"""Tables 1 to 13 of the supplement, and the full paper's own version of the first."""


def retina_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Return every table with at least one judged number."""
    own = own_variants(results.plan)
    return (
        *only_judged(_own(results, variant, SUMMARY) for variant in own),
        *only_judged(_own_uncertainties(results, variant) for variant in own),
        *_paper_tables(results),
        *only_judged(
            _own(results, variant, layout)
            for layout in (SCREENING, _AREAS_BY_RULE, TRUTH)
            for variant in own
            if layout is not TRUTH or variant.simulated
        ),
    )


def _own_uncertainties(results: BenchmarkResults, variant: Variant) -> Table | None:
    """Lay out scores by a method's own uncertainties, beside those by its entropy."""
    labels = results.plan.labels_of(variant)
    half = (
        _column(
            _BY_NAME[score],
            {"subset": subset},
            label=f"{_BY_NAME[score].label}, half kept",
            group=SUBSETS[subset],
            referred=0.5,
        )
        for subset in ("in_domain", "shifted")
        for score in ("accuracy", "auroc")
    )
    detection = _column(DETECTION[0], {"subset": "joint"}, group="shift found")
    return own_uncertainty_table(
        results,
        variant,
        (*half, detection),
        built_in="entropy of the mean",
        every_row=True,
        about=about_text(results, [variant]),
        simulated=variant.simulated,
        keys={
            "data": retina_data_text(labels),
            "selection": variant.selection,
            "variant": variant.name,
        },
    )


def unjudged_tables(results: BenchmarkResults) -> list[str]:
    """Name the paper's tables without any judged number, in a note."""
    numbers = {table.keys["number"] for table in _paper_tables(results)}
    names = [layout.name for layout in LAYOUTS if layout.name.isdecimal()]
    missing = [name for name in names if name not in numbers]
    if not missing:
        return []
    return [f"nothing was judged for the paper's tables {', '.join(missing)}"]


def _paper_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Return the paper's tables; those of simulated data come last."""
    pairs = [
        (layout, table)
        for simulated in (False, True)
        for layout in LAYOUTS
        for table in only_judged([_paper_table(results, layout, simulated)])
    ]
    # Without published numbers the same table of the other paper text is a second copy.
    return tuple(t for layout, t in pairs if t.compares or layout.name.isdecimal())


def _paper_table(
    results: BenchmarkResults, layout: Layout, simulated: bool
) -> Table | None:
    plan, blurs = results.plan, "blur" in layout.lines
    where: dict[str, Any] = {**layout.where, "simulated": simulated}
    if blurs:
        variants = variants_where(plan, **where)
        constants = {plan.labels_of(v).get("blur") for v in variants} - {None}
        if len(constants) < 2:
            return None
        where |= {"row": BLUR_ROWS, "blur": tuple(constants)}
    else:
        shifts = where.pop("shift")
        shifts = (shifts,) if isinstance(shifts, str) else shifts
        variants = [
            v for shift in shifts for v in main_variants(plan, **where, shift=shift)
        ]
        where["variant"] = tuple(variant.name for variant in variants)
    if not variants:
        return None
    suffix = "_simulated" if simulated else ""
    layout = replace(layout, name=f"{layout.name}{suffix}", where=where)
    number = layout.name.removesuffix(suffix)
    return _fill_layout(results, layout, variants, {"number": number})


def _own(results: BenchmarkResults, variant: Variant, layout: Layout) -> Table | None:
    """Lay a table of ours out; empty columns are left out but in the summary."""
    shift = str(results.plan.labels_of(variant)["shift"])
    suffix = "_simulated" if variant.simulated else ""
    notes = (_TRUE_SHIFT[shift],) if layout is TRUTH else layout.notes
    where: dict[str, Any] = {"variant": variant.name}
    layout = replace(
        layout,
        name=f"{layout.name}_{variant.name}{suffix}",
        title=f"{variant.label}{layout.title}",
        where=where,
        notes=notes,
        columns=tuple(
            column
            for column in layout.columns
            if layout is SUMMARY
            or any(r.values for r in results.table.where(**where, **column.labels))
        ),
    )
    return _fill_layout(results, layout, [variant], {})


def _fill_layout(
    results: BenchmarkResults,
    layout: Layout,
    variants: list[Variant],
    keys: Mapping[str, str],
) -> Table | None:
    labels = results.plan.labels_of(variants[0])
    data = retina_data_text(labels)
    return layout_table(
        results,
        layout,
        about=about_text(results, variants),
        simulated=variants[0].simulated,
        absent=NOT_PRINTED if data == "the paper's data" else data,
        keys={
            "data": data,
            "selection": variants[0].selection,
            "shift": "" if len(variants) > 1 else labels["shift"],
            "onset": labels["onset"],
            "variant": " ".join(variant.name for variant in variants),
            **keys,
        },
    )


_SUMMED_UP = (("accuracy", "accuracy"), ("auroc", "AUROC"), ("nll", "NLL"))
SUMMARY = Layout(
    name="summary",
    title=": summary",
    columns=(
        *(
            column
            for subset in ("in_domain", "shifted")
            for column in (
                *(
                    _column(
                        _BY_NAME[name],
                        {"subset": subset},
                        label=label,
                        group=SUBSETS[subset],
                    )
                    for name, label in _SUMMED_UP
                ),
                _column(
                    _BY_NAME["accuracy"],
                    {"subset": subset},
                    label="half kept",
                    group=SUBSETS[subset],
                    referred=0.5,
                ),
            )
        ),
        _column(DETECTION[0], {"subset": "joint"}, label="AUROC", group="shift found"),
    ),
    spread=ERROR,
    notes=(
        "Half kept: accuracy on the half of the items that the network decides itself "
        "when the more uncertain half is referred to an expert. Shift found: how well "
        "uncertainty tells shifted items from in-domain ones.",
    ),
    main=True,
)
"""A handful of scores of each variant: what a run shows first."""


def _rule_columns() -> Iterator[LayoutColumn]:
    for oracle in AREAS:
        plain = oracle._replace(name=oracle.name.replace("_oracle", ""))
        for subset in SETS:
            group, at = f"{oracle.label}, {SUBSETS[subset]}", {"subset": subset}
            yield _column(oracle, at, label="their rule", group=group, released=True)
            yield _column(oracle, at, label="corrected", group=group)
            yield _column(plain, at, label="kept only", group=group)
    # The release takes AUROC and AUPRC of its balanced set on the plain joint one.
    for name in ("auroc", "auprc"):
        score, at = _BY_NAME[name], {"subset": "balanced"}
        group = f"balanced {score.label}"
        yield _column(score, at, label="their rule", group=group, released=True)
        yield _column(score, at, label="corrected", group=group)


_AREAS_BY_RULE = Layout(
    name="referral_areas",
    title=", areas under referral curves: by the rule of the released code, corrected, "
    "and without counting referred items as perfect",
    columns=tuple(_rule_columns()),
    printed_in=None,
    spread=ERROR,
)

SCREENING = Layout(
    name="screening",
    title=", sensitivity at a specificity of 80 %",
    columns=tuple(
        _column(
            PrintedScore("sensitivity_at_specificity", "Sensitivity ↑"),
            {"subset": subset, "specificity": 0.8},
            label=SUBSETS[subset],
        )
        for subset in SETS[:3]
    ),
    printed_in=None,
    spread=ERROR,
    notes=(
        "The NHS asks a sensitivity of 85 % of screening: it is met where the whole "
        "interval lies above 85, missed where all of it lies below, and cannot be told "
        "else (`qualms docs operating_points`).",
    ),
    main=True,
)
"""The point that the paper draws on its ROC curves, as numbers."""
_PARTS = ("aleatoric", "total", "epistemic")
_TRUTHS = {
    "spearman": ("entropy: rank correlation", _PARTS, ("", 1.0, 3)),
    "mae": ("entropy: distance", _PARTS[:2], ("nats", 1.0, 3)),
    "shift_auroc": ("shift: AUROC", (*_PARTS, "true_entropy"), ("%", 100.0, 1)),
}
"""Comparisons of an estimate with the truth."""
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
TRUTH = Layout(
    name="truth",
    title=", parts of the uncertainty beside the true entropy of the targets "
    "(in-domain) and beside the shift (joint)",
    columns=tuple(
        _column(
            PrintedScore(f"{part}_{kind}", part, *printing),
            {"subset": "joint" if kind == "shift_auroc" else "in_domain"},
            label=_BETTER.get(f"{part}_{kind}", part.replace("_", " ")),
            group=head,
        )
        for kind, (head, parts, printing) in _TRUTHS.items()
        for part in parts
    ),
    printed_in=None,
    spread=ERROR,
    main=True,
)
"""Estimates beside what a simulator knows."""
