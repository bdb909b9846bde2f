"""The VALUES benchmark: tables 1 to 6, figures 2 to 14, and ours.

Kahl, Lüth, Zenk, Maier-Hein and Jaeger (2024), arXiv:2401.08501.
"""

from qualms.evaluate.results import BenchmarkResults
from qualms.report.judged import only_judged
from qualms.report.papers import Paper
from qualms.report.papers.values.components import component_tables
from qualms.report.papers.values.counts import count_tables, screening_table
from qualms.report.papers.values.downstream import task_tables
from qualms.report.papers.values.figures import values_figures
from qualms.report.papers.values.separation import separation_tables
from qualms.report.papers.values.settings import DATASETS, Study
from qualms.report.papers.values.verdicts import verdict_table
from qualms.report.table import Table


def values() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(
        tables=_tables, figures=values_figures, counts=count_tables, notes=_left_out
    )


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    study = Study(results)
    judged = (
        *separation_tables(study),
        *screening_table(study),
        *component_tables(study),
        *task_tables(study),
    )
    return (*verdict_table(study), *only_judged(judged))


def _left_out(results: BenchmarkResults) -> list[str]:
    """What of the paper is lacking, and what would bring it."""
    there = Study(results).variants
    missing = [label for name, label in DATASETS.items() if name not in there]
    notes = []
    if missing:
        lack = ", ".join(missing)
        notes.append(f"nothing was judged on {lack}: tables and figures lack it")
    screened = any("screening" in v.settings for v in results.preset.variants)
    if not screened and results.preset.name != "demo":
        notes.append("table 2 needs the variants 'screening_*'")
    return notes
