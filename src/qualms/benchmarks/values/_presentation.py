"""The VALUES benchmark: tables 1 to 6, figures 2 to 14, and ours.

Kahl, Lüth, Zenk, Maier-Hein and Jaeger (2024), arXiv:2401.08501.
"""

from collections.abc import Iterator
from pathlib import Path

from qualms.benchmarks.values._components import (
    component_drawings,
    component_tables,
    toy_drawing,
)
from qualms.benchmarks.values._counts import count_tables, split_drawings
from qualms.benchmarks.values._examples import example_items
from qualms.benchmarks.values._maps import map_drawings
from qualms.benchmarks.values._settings import DATASETS, study_of
from qualms.benchmarks.values._sizes import size_drawings
from qualms.benchmarks.values._tables import (
    screening_table,
    separation_tables,
    task_tables,
)
from qualms.benchmarks.values._verdicts import verdict_table
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.judged import only_judged
from qualms.report.presentation import Presentation
from qualms.report.table import Table


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    study = study_of(results)
    judged = (
        *separation_tables(study),
        *screening_table(results),
        *component_tables(study),
        *task_tables(study),
    )
    return (*verdict_table(study), *only_judged(judged))


def _figures(results: BenchmarkResults, data: Path | None) -> Iterator[Drawing]:
    """Yield every figure that there are numbers, maps or items for."""
    study = study_of(results)
    yield from toy_drawing(study)
    yield from component_drawings(study)
    yield from example_items(study, data)
    yield from split_drawings(results, data)
    yield from size_drawings(study)
    yield from map_drawings(study, data)


def _unjudged(results: BenchmarkResults) -> list[str]:
    """Name the paper's data and tables that nothing was judged for, in notes."""
    judged = {variant.label for variant in results.variants}
    missing = [name for name in DATASETS if name not in judged]
    notes = []
    if missing:
        notes.append(
            f"nothing was judged on {', '.join(missing)}: no tables, no figures"
        )
    plan = results.plan
    screened = any("feature" in variant.labels for variant in plan.variants)
    if not screened and plan.preset.name != "demo":
        notes.append("table 2 needs the variants 'screening_*'")
    return notes


PRESENTATION = Presentation(
    tables=_tables, figures=_figures, counts=count_tables, notes=_unjudged
)
"""All tables and figures, with ours beside the published numbers."""
