"""Output for people: tables, figures, pages, JSON and CSV."""

from qualms.report._json_output import to_json, write_curves
from qualms.report._plot import plot
from qualms.report._printed import print_results, sparkline
from qualms.report._referral import print_applied, print_plan
from qualms.report._referral_json import applied_to_json, plan_to_json
from qualms.report._room import check_room
from qualms.report._scored import score_table
from qualms.report._terminal import print_table, printable
from qualms.report.table import Column, Table, TableCell, TableLine, digits

__all__ = [
    "Column",
    "Table",
    "TableCell",
    "TableLine",
    "applied_to_json",
    "check_room",
    "digits",
    "plan_to_json",
    "plot",
    "print_applied",
    "print_plan",
    "print_results",
    "print_table",
    "printable",
    "score_table",
    "sparkline",
    "to_json",
    "write_curves",
]
