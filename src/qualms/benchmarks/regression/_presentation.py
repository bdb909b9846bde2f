"""The regression benchmark: tables A1 to A42, figures 1 to 6 and A1 to A17.

Gustafsson, Danelljan and Schön (2023), arXiv:2302.03679.
"""

from qualms.benchmarks.regression._figures import regression_figures
from qualms.benchmarks.regression._tables import (
    regression_tables,
    tables_without_data,
)
from qualms.report.presentation import Presentation

PRESENTATION = Presentation(
    tables=regression_tables, figures=regression_figures, notes=tables_without_data
)
