"""The paper's figures made of curves: 2, 3 and 14 to 17."""

from collections.abc import Iterator
from typing import NamedTuple

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._settings import (
    TASKS,
    numbered_variants,
    task_of,
    variant_for,
)
from qualms.report.papers.retina._sheets import Sheet, Strip
from qualms.report.papers.retina._strips import View, strip_of, views
from qualms.report.papers.retina._words import file_of, remark_of


class CurveFigure(NamedTuple):
    """Which panels a figure of the paper has."""

    name: str
    task: str
    title: str
    views: tuple[View, ...]


_THREE = ("in_domain", "shifted", "joint")
_REGIMES = "regimes in-domain and joint: validation without and with shifted items"
_REBALANCED = ("in_domain", "shifted", "rebalanced")
FIGURES = (
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
        "14", "country", "accuracy after referral", views("referral_accuracy", *_THREE)
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


def curve_sheets(results: BenchmarkResults) -> Iterator[Sheet]:
    """All of them, in the regime in which the paper draws them."""
    for variant in numbered_variants(results.preset):
        for figure in FIGURES:
            if figure.task == task_of(variant):
                yield _numbered(results, variant, figure)
    for simulated in (False, True):
        yield from _regimes(results, simulated)


def _numbered(
    results: BenchmarkResults, variant: Variant, figure: CurveFigure
) -> Sheet:
    return Sheet(
        file_of(figure.name, variant),
        f"Figure {figure.name}: {TASKS[figure.task]}, {figure.title}",
        remark_of(results, variant),
        tuple(
            strip_of(results, variant, figure.views, pooled=p) for p in (False, True)
        ),
    )


def _regimes(results: BenchmarkResults, simulated: bool) -> Iterator[Sheet]:
    """Figure 15: the same curves, chosen without and with shifted validation items."""
    plain, joint = (
        variant_for(results.preset, "country", regime, simulated=simulated)
        for regime in ("in-domain", "joint")
    )
    if plain is None or joint is None:
        return
    view = View("shifted", "referral_accuracy")
    strips = []
    for pooled in (False, True):
        pair = [strip_of(results, v, (view,), pooled=pooled) for v in (plain, joint)]
        panels = tuple(
            strip.panels[0]._replace(title=f"regime {variant.regime}")
            for strip, variant in zip(pair, (plain, joint), strict=True)
        )
        strips.append(Strip(pair[0].side, panels))
    yield Sheet(
        file_of("15", plain),
        "Figure 15: Country Shift, accuracy after referral, shifted items",
        remark_of(results, plain, regime=_REGIMES),
        tuple(strips),
    )
