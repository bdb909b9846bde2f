"""Rows of panels with one curve per method: of single runs, or of pools."""

from typing import NamedTuple

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._looks import colour, marker
from qualms.report.papers.retina._panels import LABELS, Curve, Panel
from qualms.report.papers.retina._settings import (
    SUBSETS,
    method_label,
    pool_text,
    rows_of,
)
from qualms.report.papers.retina._sheets import Strip


class View(NamedTuple):
    """What a panel shows, of whichever variant and rows."""

    subset: str
    name: str

    @property
    def title(self) -> str:
        """The items, and what is drawn of them."""
        what = "ROC" if self.name == "roc" else LABELS[self.name][1]
        return f"{what}, {SUBSETS[self.subset]}"


def views(name: str, *subsets: str) -> tuple[View, ...]:
    """The same of several sets of items."""
    return tuple(View(subset, name) for subset in subsets)


def strip_of(
    results: BenchmarkResults,
    variant: Variant,
    views: tuple[View, ...],
    *,
    pooled: bool,
) -> Strip:
    """What `views` show of one variant."""
    curves = _method_curves(results, variant, pooled=pooled)
    panels = (Panel(view.title, view.subset, view.name, curves) for view in views)
    return Strip(pool_text(curve.row for curve in curves), tuple(panels))


def _method_curves(
    results: BenchmarkResults, variant: Variant, *, pooled: bool
) -> tuple[Curve, ...]:
    """A curve per method: of single runs, or of pools."""
    return tuple(
        Curve(
            variant,
            row,
            colour(row.method.name),
            marker(row.method.name),
            method_label(results.benchmark, row),
        )
        for row in rows_of(results.benchmark, results.preset, variant)
        if (row.pool > 1) == pooled
    )
