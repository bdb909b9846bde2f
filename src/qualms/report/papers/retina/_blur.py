"""Figures of the preprocessing: curves by blur constant, 19 and 20."""

from collections.abc import Iterator

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._curves import FIGURES, CurveFigure
from qualms.report.papers.retina._layouts import BLURS
from qualms.report.papers.retina._looks import BLUR_COLOURS, BLUR_MARKERS
from qualms.report.papers.retina._panels import Curve, Panel
from qualms.report.papers.retina._settings import TASKS, shared_rows, variant_for
from qualms.report.papers.retina._sheets import Sheet, Strip
from qualms.report.papers.retina._words import file_of, remark_of

_NUMBERS = {"2": "19", "3": "20"}
"""The figure of the preprocessing has the panels of the main one."""


def blur_sheets(results: BenchmarkResults) -> Iterator[Sheet]:
    """One figure per task with at least two blur constants."""
    for simulated in (False, True):
        for figure in FIGURES:
            if figure.name in _NUMBERS:
                yield from _sheet(results, figure, simulated)


def _sheet(
    results: BenchmarkResults, figure: CurveFigure, simulated: bool
) -> Iterator[Sheet]:
    found = {
        blur: variant_for(
            results.preset, figure.task, "in-domain", simulated=simulated, blur=blur
        )
        for blur in BLURS
    }
    variants = {blur: v for blur, v in found.items() if v is not None}
    if len(variants) < 2:
        return
    number = _NUMBERS[figure.name]
    main = variants[max(variants)]
    yield Sheet(
        file_of(number, main),
        f"Figure {number}: {TASKS[figure.task]}, preprocessing with different blur",
        remark_of(results, *variants.values()),
        tuple(
            _strip(row, variants, figure)
            for row in shared_rows(
                results.benchmark, results.preset, [(v,) for v in variants.values()]
            )
        ),
    )


def _strip(row: TableRow, variants: dict[int, Variant], figure: CurveFigure) -> Strip:
    curves = tuple(
        Curve(variant, row, BLUR_COLOURS[blur], BLUR_MARKERS[blur], f"blur {blur}")
        for blur, variant in variants.items()
    )
    panels = (Panel(v.title, v.subset, v.name, curves) for v in figure.views)
    return Strip(row.label, tuple(panels))
