"""The paper's figures of results: 2, 3, 8 to 17, 19 and 20, and ours.

Curves are means over repeats with one standard error. What the paper's tables print
stands beside referral curves of its own data, hollow.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qualms.benchmarks.retina._curves import (
    CurveView,
    Strand,
    curve_caption,
    curve_panel,
    method_strands,
    views,
)
from qualms.benchmarks.retina._histograms import histogram_drawings
from qualms.benchmarks.retina._photographs import photograph_drawings
from qualms.benchmarks.retina._rows import BLURS, USUAL_BLUR
from qualms.benchmarks.retina._settings import (
    SUBSETS,
    TASKS,
    about_text,
    main_variants,
    own_variants,
    pool_text,
    variants_where,
)
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import Drawing, Panel
from qualms.study import TableRow, Variant

_BLUR_LOOKS = {
    # One hue that darkens, so that the order shows without colour.
    5: ("#f0a35e", "o"),
    10: ("#d1605e", "s"),
    20: ("#8c3b73", "^"),
    30: ("#32205f", "D"),
}
_LETTERS = "abcdefgh"


class CurveFigure(NamedTuple):
    """The panels of a figure of the paper."""

    name: str
    task: str
    title: str
    views: tuple[CurveView, ...]


_REBALANCED = ("in_domain", "shifted", "rebalanced")
CURVE_FIGURES = (
    CurveFigure(
        "2",
        "severity",
        "decisions, and accuracy after referral",
        (
            *views("roc", "in_domain", "joint"),
            *views("referral_accuracy", "in_domain", "shifted"),
        ),
    ),
    CurveFigure(
        "3",
        "country",
        "decisions, and AUROC after referral",
        (
            *views("roc", "in_domain", "shifted"),
            *views("referral_auroc", "in_domain", "shifted"),
        ),
    ),
    CurveFigure(
        "14",
        "country",
        "accuracy after referral",
        views("referral_accuracy", "in_domain", "shifted", "joint"),
    ),
    CurveFigure(
        "16",
        "country",
        "decisions when grades are rebalanced",
        views("roc", *_REBALANCED),
    ),
    CurveFigure(
        "17",
        "country",
        "AUROC after referral when grades are rebalanced",
        views("referral_auroc", *_REBALANCED),
    ),
)
_BLUR_FIGURES = {"2": "19", "3": "20"}
"""The figure of the preprocessing has the panels of the main one."""


class Strip(NamedTuple):
    """A row of panels, each with the curves in it."""

    side: str
    panels: tuple[tuple[str, CurveView, tuple[Strand, ...]], ...]


def retina_figures(results: BenchmarkResults, data: Path | None) -> Iterator[Drawing]:
    """Yield every figure that has curves, histograms or photographs."""
    yield from _curve_figures(results)
    for simulated in (False, True):
        yield from _selections(results, simulated)
        for figure in CURVE_FIGURES:
            if figure.name in _BLUR_FIGURES:
                yield from _blur_figures(results, figure, simulated)
    for variant in own_variants(results.plan):
        yield from _referrals(results, variant)
        yield from _shift_figure(results, variant)
    yield from histogram_drawings(results)
    yield from photograph_drawings(results, data)


def _curve_figures(results: BenchmarkResults) -> Iterator[Drawing]:
    for variant in main_variants(results.plan, selection="in_domain"):
        for figure in CURVE_FIGURES:
            if figure.task == results.plan.labels_of(variant)["shift"]:
                yield from _drawing(
                    results,
                    [variant],
                    _strips(results, variant, figure.views),
                    name=figure.name,
                    title=f"Figure {figure.name}: {TASKS[figure.task]}, {figure.title}",
                )


def _strips(
    results: BenchmarkResults, variant: Variant, views: tuple[CurveView, ...]
) -> list[Strip]:
    """Return the same panels for single runs and for pools."""
    strips = []
    for pooled in (False, True):
        strands = method_strands(results, variant, pooled=pooled)
        panels = tuple((view.title, view, strands) for view in views)
        strips.append(Strip(pool_text([strand.row for strand in strands]), panels))
    return strips


def _selections(results: BenchmarkResults, simulated: bool) -> Iterator[Drawing]:
    """Yield figure 15: curves chosen without and with shifted validation items."""
    variants = main_variants(results.plan, shift="country", simulated=simulated)
    if len(variants) < 2:
        return
    plain, joint = variants
    view = CurveView("shifted", "referral_accuracy")
    strips = []
    for pooled in (False, True):
        panels = []
        for variant in (plain, joint):
            strands = method_strands(results, variant, pooled=pooled)
            chosen = SUBSETS[variant.selection]
            panels.append((f"chosen on {chosen} items", view, strands))
        side = pool_text([strand.row for strand in panels[0][2]])
        strips.append(Strip(side, tuple(panels)))
    yield from _drawing(
        results,
        [plain],
        strips,
        name="15",
        title="Figure 15: Country Shift, accuracy after referral, shifted items",
        selection="selections in_domain and joint: chosen on validation items without "
        "and with shifted ones",
    )


def _blur_figures(
    results: BenchmarkResults, figure: CurveFigure, simulated: bool
) -> Iterator[Drawing]:
    """Yield figures 19 and 20: curves by blur constant, of at least two of them."""
    variants = {
        blur: variant
        for blur in (*BLURS, USUAL_BLUR)
        for variant in variants_where(
            results.plan,
            shift=figure.task,
            selection="in_domain",
            simulated=simulated,
            blur=blur,
        )
    }
    if len(variants) < 2:
        return
    strips = []
    for row in _rows_of_all(results, list(variants.values())):
        strands = tuple(
            Strand(variant, row, *_BLUR_LOOKS[blur], f"blur {blur}")
            for blur, variant in variants.items()
        )
        panels = tuple((view.title, view, strands) for view in figure.views)
        strips.append(Strip(row.label, panels))
    number = _BLUR_FIGURES[figure.name]
    subject = f"{TASKS[figure.task]}, preprocessing with different blur"
    yield from _drawing(
        results,
        [variants[max(variants)], *variants.values()],
        strips,
        name=number,
        title=f"Figure {number}: {subject}",
    )


def _rows_of_all(results: BenchmarkResults, variants: list[Variant]) -> list[TableRow]:
    """Return the rows that are judged on all variants, in the order of tables."""
    names_by_variant = [{row.name for row in results.plan.rows_on(v)} for v in variants]
    return [
        row
        for row in results.plan.rows
        if all(row.name in names for names in names_by_variant)
    ]


def _referrals(results: BenchmarkResults, variant: Variant) -> Iterator[Drawing]:
    """Yield a figure of ours: four scores of kept items, on three sets of items."""
    for pooled in (False, True):
        strands = method_strands(results, variant, pooled=pooled)
        strips = [
            Strip(
                "",
                tuple(
                    (SUBSETS[view.subset], view, strands)
                    for view in views(
                        f"referral_{score}", "in_domain", "shifted", "joint"
                    )
                ),
            )
            for score in ("accuracy", "auroc", "nll", "auprc")
        ]
        kind = pool_text([strand.row for strand in strands])
        yield from _drawing(
            results,
            [variant],
            strips,
            name=f"referral_{'pools' if pooled else 'runs'}",
            title=f"{variant.label}: four scores of what is kept, {kind}",
        )


def _shift_figure(results: BenchmarkResults, variant: Variant) -> Iterator[Drawing]:
    """Yield a figure of ours: the ROC of the shift; table 3 has the areas."""
    view = CurveView("joint", "ood_roc")
    strands = [method_strands(results, variant, pooled=p) for p in (False, True)]
    panels = tuple(
        (pool_text([s.row for s in curves]), view, curves) for curves in strands
    )
    yield from _drawing(
        results,
        [variant],
        [Strip("", panels)],
        name="ood",
        title=f"{variant.label}: shifted items found by their uncertainty",
    )


def _drawing(
    results: BenchmarkResults,
    variants: list[Variant],
    strips: list[Strip],
    *,
    name: str,
    title: str,
    selection: str = "",
) -> Iterator[Drawing]:
    """Yield the figure; nothing where none of its curves was judged."""
    first = variants[0]
    rows = [_row(results, strip, last=strip is strips[-1]) for strip in strips]
    filled = [
        (row, strip.side)
        for row, strip in zip(rows, strips, strict=True)
        if any(not panel.empty for panel in row)
    ]
    if not filled:
        return
    about = about_text(results, variants, selection=selection)
    explanation = curve_caption(results, [p for strip in strips for p in strip.panels])
    suffix = "_simulated" if first.simulated else ""
    yield Drawing(
        name=f"figure_{name}_{first.name}{suffix}",
        title=title,
        caption=f"{explanation} {about}.",
        rows=tuple(_with_titles(row, top=not i) for i, (row, _) in enumerate(filled)),
        sides=tuple(side for _, side in filled),
        simulated=first.simulated,
        size=(1.85, 2.1 if len(filled) == 1 else 1.7),
    )


def _row(results: BenchmarkResults, strip: Strip, *, last: bool) -> tuple[Panel, ...]:
    return tuple(
        curve_panel(results, view, strands, title=title, last=last)
        for title, view, strands in strip.panels
    )


def _with_titles(row: tuple[Panel, ...], *, top: bool) -> tuple[Panel, ...]:
    """Return the panels with titles above the first row alone."""
    titles = (f"({_LETTERS[i]}) {panel.title}" for i, panel in enumerate(row))
    return tuple(
        replace(panel, title=title if top else "")
        for panel, title in zip(row, titles, strict=True)
    )
