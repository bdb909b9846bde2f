"""Thousands of runs: listed, filtered, compared, exported, and cleared away."""

from qualms.catalogue._filters import parse_filters, refuse_unknown
from qualms.catalogue._index import INDEX
from qualms.catalogue._listing import RunListing, list_runs
from qualms.catalogue._record import STATUSES, RunRecord, Value
from qualms.catalogue._removable import KINDS, Removable, find_removable, remove_all
from qualms.catalogue._scores import SCORES, write_scores

__all__ = [
    "INDEX",
    "KINDS",
    "SCORES",
    "STATUSES",
    "Removable",
    "RunListing",
    "RunRecord",
    "Value",
    "find_removable",
    "list_runs",
    "parse_filters",
    "refuse_unknown",
    "remove_all",
    "write_scores",
]
