"""The regression benchmark: tables A1 to A42, figures 1 to 6 and A1 to A17.

Gustafsson, Danelljan and Schön (2023), arXiv:2302.03679.
"""

from qualms.report.papers import Paper
from qualms.report.papers.regression.figures import regression_figures
from qualms.report.papers.regression.tables import (
    regression_tables,
    tables_without_data,
)


def regression() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(
        tables=regression_tables,
        figures=regression_figures,
        notes=tables_without_data,
    )
