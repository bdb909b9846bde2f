"""The regression benchmark: tables A1 to A42, figures 2 to 6 and A1 to A17.

Gustafsson, Danelljan and Schön (2023), arXiv:2302.03679.
"""

from qualms.report.papers._paper import Paper
from qualms.report.papers.regression._figures import write_figures
from qualms.report.papers.regression._files import write_tables
from qualms.report.papers.regression._terminal import print_tables


def regression() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(
        write_tables=write_tables,
        write_figures=write_figures,
        print_tables=print_tables,
    )
