"""One long table of labelled numbers: ours, and those that papers print.

A row is one number: its labels say what it is of, its other columns how sure it is.
Choosing is a filter, a printed table is a pivot, and comparing with a paper is a join
on labels. Columns are arrays, and labels and texts are stored once and numbered, so
that a million rows are filtered and pivoted in a fraction of a second. Only `to_frame`
and `to_parquet` need pandas and pyarrow.
"""

from qualms.results._files import csv_text, harmless, unquoted, write_columns
from qualms.results._result import NUMBERS as NUMBERS
from qualms.results._result import PROVENANCE as PROVENANCE
from qualms.results._result import SERIES as SERIES
from qualms.results._result import TEXTS as TEXTS
from qualms.results._result import TIED as TIED
from qualms.results._result import Result, Summary, label_order, result, summary
from qualms.results._table import (
    Joined,
    Pivot,
    ResultsTable,
    concatenated,
    read_results,
)

__all__ = [
    "Joined",
    "Pivot",
    "Result",
    "ResultsTable",
    "Summary",
    "concatenated",
    "csv_text",
    "harmless",
    "label_order",
    "read_results",
    "result",
    "summary",
    "unquoted",
    "write_columns",
]
