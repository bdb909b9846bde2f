"""The URL benchmark: figures 1 to 13, table 1, and ours.

Kirchhof, Mucsányi, Oh and Kasneci (2023), arXiv:2307.03810. Published numbers are those
of the text, and of the table of runs that its authors released.
"""

from collections.abc import Iterator
from pathlib import Path

from qualms.evaluate.results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.judged import only_judged
from qualms.report.papers import Paper
from qualms.report.papers.url.bars import bar_figures
from qualms.report.papers.url.norms import norm_figure
from qualms.report.papers.url.scatters import scatter_figures
from qualms.report.papers.url.settings import UrlStudy
from qualms.report.papers.url.shots import shots_figure, taught_methods
from qualms.report.papers.url.tables import url_tables
from qualms.report.table import Table


def url() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(tables=_tables, figures=_figures, notes=_left_out)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    return only_judged(url_tables(UrlStudy(results)))


def _figures(results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    study = UrlStudy(results)
    yield from bar_figures(study)
    yield from scatter_figures(study)
    yield from norm_figure(study)
    yield from shots_figure(study)


def _left_out(results: BenchmarkResults) -> list[str]:
    """Which studies of the paper were not judged, so that figures lack them."""
    study = UrlStudy(results)
    judged = study.judged
    notes = []
    configured = any("config" in variant.settings for variant in judged)
    if not any(variant.selection == "recall" for variant in judged):
        which = "figure 6 needs" if configured else "figures 3 and 6 need"
        notes.append(f"{which} runs whose epoch is chosen by R@1")
    if not configured:
        notes.append(
            "figures 7 and 8 need the runs of other configurations: ask for the "
            "variants 'tradeoff_*'"
        )
    names = results.preset.rows
    if all(results.benchmark.row(name).stage is None for name in names):
        notes.append("figure 13 needs the few-shot rows, which this preset leaves out")
    elif not any(taught_methods(study, variant) for variant in study.backbones):
        notes.append(
            "figure 13 shows means over downstream sets: no method was trained on all "
            "of those that few-shot rows name"
        )
    return notes
