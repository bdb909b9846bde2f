"""Figures of ours made of curves: four scores after referral, and shifted items."""

from collections.abc import Iterator

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._settings import SUBSETS, TASKS, main_variants, task_of
from qualms.report.papers.retina._sheets import Sheet, Strip
from qualms.report.papers.retina._strips import strip_of, views
from qualms.report.papers.retina._words import file_of, remark_of

_SCORES = ("accuracy", "auroc", "nll", "auprc")
_SETS = ("in_domain", "shifted", "joint")


def own_sheets(results: BenchmarkResults) -> Iterator[Sheet]:
    """For every variant in either regime, but those of the study of blur."""
    for variant in main_variants(results.preset):
        yield from _referrals(results, variant)
        yield _found(results, variant)


def _referrals(results: BenchmarkResults, variant: Variant) -> Iterator[Sheet]:
    """Four scores of what is kept, on three sets of items."""
    for pooled in (False, True):
        strips = tuple(
            strip_of(
                results, variant, views(f"referral_{score}", *_SETS), pooled=pooled
            )
            for score in _SCORES
        )
        kind = "pools" if pooled else "runs"
        yield Sheet(
            file_of(f"referral_{kind}", variant),
            f"{TASKS[task_of(variant)]}: four scores of what is kept, {strips[0].side}",
            remark_of(results, variant),
            tuple(
                Strip("", tuple(p._replace(title=SUBSETS[p.subset]) for p in s.panels))
                for s in strips
            ),
        )


def _found(results: BenchmarkResults, variant: Variant) -> Sheet:
    """Shifted items found by their uncertainty; table 3 has the areas."""
    strips = [
        strip_of(results, variant, views("ood_roc", "joint"), pooled=pooled)
        for pooled in (False, True)
    ]
    (first,), (second,) = (strip.panels for strip in strips)
    panels = (
        first._replace(title=strips[0].side),
        second._replace(title=strips[1].side),
    )
    return Sheet(
        file_of("ood", variant),
        f"{TASKS[task_of(variant)]}: shifted items found by their uncertainty",
        remark_of(results, variant),
        (Strip("", panels),),
    )
