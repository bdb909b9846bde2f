"""The URL benchmark: figures 1 to 13, table 1, and ours.

Kirchhof, Mucsányi, Oh and Kasneci (2023), arXiv:2307.03810. Published numbers are those
of the text, and of the table of runs that its authors released.
"""

from collections.abc import Iterator
from pathlib import Path

from qualms.benchmarks.url._bars import bar_figures
from qualms.benchmarks.url._norms import norm_figure
from qualms.benchmarks.url._scatters import scatter_figures
from qualms.benchmarks.url._settings import UrlStudy
from qualms.benchmarks.url._shots import shots_figure
from qualms.benchmarks.url._tables import url_tables
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.judged import only_judged
from qualms.report.presentation import Presentation
from qualms.report.table import Table


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    return only_judged(url_tables(UrlStudy(results)))


def _figures(results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    study = UrlStudy(results)
    yield from bar_figures(study)
    yield from scatter_figures(study)
    yield from norm_figure(study)
    yield from shots_figure(study)


def _left_out(results: BenchmarkResults) -> list[str]:
    """Name the studies of the paper that were not judged, which figures lack."""
    study = UrlStudy(results)
    variants = study.judged
    notes = []
    configured = any("config" in variant.labels for variant in variants)
    if not any(variant.selection == "recall" for variant in variants):
        figures = "figure 6 needs" if configured else "figures 3 and 6 need"
        notes.append(f"{figures} runs whose epoch is chosen by R@1")
    if not configured:
        notes.append(
            "figures 7 and 8 need the runs of other configurations: ask for the "
            "variants 'tradeoff_*'"
        )
    if all(row.stage is None for row in results.plan.rows):
        notes.append("figure 13 needs the few-shot rows, which this preset leaves out")
    elif not any(study.taught_methods(variant) for variant in study.backbones):
        notes.append(
            "figure 13 shows means over downstream sets: no method was trained on all "
            "of those that few-shot rows name"
        )
    return notes


PRESENTATION = Presentation(tables=_tables, figures=_figures, notes=_left_out)
