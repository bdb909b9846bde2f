"""The paper's figures from results: 2 to 6 and A1 to A17, as PDF and PNG.

Bars and points are ours; what the paper prints stands beside them, hollow. Figures of
simulated data are kept apart by name and say so in their title. Matplotlib is loaded
when a figure is drawn.
"""

from pathlib import Path

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.regression import _bars, _distance, _scatter
from qualms.report.papers.regression._bars import bar_figure
from qualms.report.papers.regression._distance import distance_figure
from qualms.report.papers.regression._graded import graded_figure
from qualms.report.papers.regression._points import Source
from qualms.report.papers.regression._scatter import scatter_figure

__all__ = ["write_figures"]


def write_figures(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Draw every figure that there are numbers for; gives the paths."""
    written: list[Path] = []
    for simulated in (False, True):
        source = Source(results, simulated)
        for bars in _bars.FIGURES:
            written += bar_figure(source, bars, folder)
        written += graded_figure(source, folder)
        for scatter in _scatter.FIGURES:
            written += scatter_figure(source, scatter, folder)
        for name, labels in _distance.FIGURES.items():
            written += distance_figure(source, name, labels, folder)
    return written
