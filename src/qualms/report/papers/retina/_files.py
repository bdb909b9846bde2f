"""Tables of the RETINA benchmark as CSV and LaTeX.

Every cell has our number twice, in the unit of the paper. "ours" is the right score, or
the right referral curve; "by their rule" is what the released code computes, and only
that one is compared with the paper: the difference is in units of the published
standard error.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._csv import write_csv
from qualms.report.papers.retina._latex import latex
from qualms.report.papers.retina._numbers import numbers
from qualms.report.papers.retina._own_tables import area_tables, truth_tables
from qualms.report.papers.retina._settings import blur_of, data_text, onset_of
from qualms.report.papers.retina._table import Table
from qualms.report.papers.retina._tables import paper_tables


def write_tables(results: BenchmarkResults, folder: Path) -> list[Path]:
    """Write the paper's tables and ours as CSV and LaTeX; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in all_tables(results):
        written.append(write_csv(_lines(table), folder / f"{table.file}.csv"))
        path = folder / f"{table.file}.tex"
        with replacing(path) as temporary:
            temporary.write_text(latex(table), encoding="utf-8")
        written.append(path)
    return written


def all_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """The paper's tables, then ours."""
    return paper_tables(results) + area_tables(results) + truth_tables(results)


def _lines(table: Table) -> Iterator[dict[str, Any]]:
    for part in table.parts:
        for line in part.lines:
            for column, compared in zip(part.columns, line.compared, strict=True):
                if column.theirs:
                    continue  # the same cell, whose other rule has a line already
                variant = line.variants[column.task]
                blur = blur_of(variant)
                yield {
                    "table": table.name,
                    "preset": table.preset.told,
                    "data": data_text(variant),
                    "regime": variant.regime,
                    "variant": variant.name,
                    "task": column.task,
                    "onset": onset_of(variant),
                    "blur_constant": "" if blur is None else blur,
                    "subset": column.subset,
                    "score": column.score.name,
                    "unit": column.score.unit.text,
                    "row": line.row.name,
                    "method": line.row.label,
                    **numbers(compared),
                }
