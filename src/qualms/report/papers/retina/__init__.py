"""The RETINA benchmark: tables 1 to 13, figures 2, 3, 8 to 17, 19 and 20, and ours.

Band, Rudner, Feng, Filos, Nado, Dusenberry, Jerfel, Tran and Gal (2021). Tables and
figures are numbered as in its supplement.
"""

from qualms.report.papers._paper import Paper
from qualms.report.papers.retina._figures import write_figures
from qualms.report.papers.retina._files import write_tables
from qualms.report.papers.retina._terminal import print_tables


def retina() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(
        write_tables=write_tables,
        write_figures=write_figures,
        print_tables=print_tables,
    )
