"""Tables of the regression benchmark beside the published ones, as CSV and LaTeX.

Every cell has our number twice. "ours" takes the finite-sample rank and has the
interval; "by their rule" takes the rank of the released code, and only that one is
compared with the paper: the difference is in units of the published standard deviation.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._csv import plain, write_csv
from qualms.report._results_file import numbers
from qualms.report.papers.regression._latex import latex
from qualms.report.papers.regression._tables import PaperTable, paper_tables


def write_tables(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Write each of the paper's tables as CSV and LaTeX; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in paper_tables(results):
        written.append(write_csv(_table_lines(table), folder / f"{table.file}.csv"))
        path = folder / f"{table.file}.tex"
        with replacing(path) as temporary:
            temporary.write_text(latex(table), encoding="utf-8")
        written.append(path)
    return written


def _table_lines(table: PaperTable) -> Iterator[dict[str, Any]]:
    for line in table.lines:
        for metric, compared in line.compared.items():
            number = compared.number
            yield {
                "table": table.name,
                "preset": table.preset,
                "dataset": table.variant.label,
                "variant": table.variant.name,
                "data": table.data,
                "alpha": table.alpha,
                "method": line.label,
                "score": metric,
                **numbers(compared.cell),
                "published_mean": number.mean if number else "",
                "published_std": plain(number.spread if number else None),
                "difference_in_published_std": plain(compared.difference),
                "tied_with_best": compared.tied,
                "remark": compared.why,
            }
