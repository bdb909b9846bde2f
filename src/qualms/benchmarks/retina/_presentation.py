"""The RETINA benchmark: tables 1 to 13, figures 2, 3, 5, 8 to 20, and ours.

Band, Rudner, Feng, Filos, Nado, Dusenberry, Jerfel, Tran and Gal (2021). Tables and
figures are numbered as in its supplement.
"""

from qualms.benchmarks.retina._figures import retina_figures
from qualms.benchmarks.retina._tables import retina_tables, unjudged_tables
from qualms.report.presentation import Presentation

PRESENTATION = Presentation(
    tables=retina_tables, figures=retina_figures, notes=unjudged_tables
)
