"""The paper's figures from results: 2, 3, 8 to 17, 19 and 20, and ours.

Curves are means over repeats with one standard error; what the paper's tables print
stands beside referral curves of its own data, hollow. Every figure says its regime and
whether the data are simulated. Figures 1, 4 to 7 and 18 are drawings and photographs.
"""

from pathlib import Path

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report.papers.retina._blur import blur_sheets
from qualms.report.papers.retina._curves import curve_sheets
from qualms.report.papers.retina._histograms import histogram_figures
from qualms.report.papers.retina._own_curves import own_sheets
from qualms.report.papers.retina._sheets import write_sheet


def write_figures(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Draw every figure that there are curves or histograms for; gives the paths."""
    written: list[Path] = []
    for sheets in (curve_sheets, blur_sheets, own_sheets):
        for sheet in sheets(results):
            written += write_sheet(results, sheet, folder)
    return written + histogram_figures(results, folder)
