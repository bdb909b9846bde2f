"""The VALUES benchmark: tables 1 to 6, figures 2 to 14, and ours.

Kahl, Lüth, Zenk, Maier-Hein and Jaeger (2024), arXiv:2401.08501.
"""

from qualms.evaluate.results import BenchmarkResults
from qualms.report.judged import only_judged
from qualms.report.papers import Paper
from qualms.report.papers.values.downstream import task_tables
from qualms.report.papers.values.separation import separation_tables
from qualms.report.papers.values.settings import Study
from qualms.report.papers.values.verdicts import verdict_table
from qualms.report.table import Table


def values() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(tables=_tables)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    study = Study(results)
    return (
        *verdict_table(study),
        *only_judged((*separation_tables(study), *task_tables(study))),
    )
