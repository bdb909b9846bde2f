"""The RETINA benchmark: tables 1 to 13, figures 2, 3, 5, 8 to 20, and ours.

Band, Rudner, Feng, Filos, Nado, Dusenberry, Jerfel, Tran and Gal (2021). Tables and
figures are numbered as in its supplement.
"""

from qualms.evaluate.results import BenchmarkResults
from qualms.report.papers import Paper
from qualms.report.papers.retina.figures import retina_figures
from qualms.report.papers.retina.own_tables import own_tables, summaries
from qualms.report.papers.retina.tables import paper_tables, unjudged_tables
from qualms.report.table import Table


def retina() -> Paper:
    """All of its tables and figures, with ours beside the published numbers."""
    return Paper(tables=_tables, figures=retina_figures, notes=unjudged_tables)


def _tables(results: BenchmarkResults) -> tuple[Table, ...]:
    return (*summaries(results), *paper_tables(results), *own_tables(results))
