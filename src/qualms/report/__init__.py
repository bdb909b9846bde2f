"""What people see: tables, figures, pages, JSON and CSV."""

from qualms.report._referral import print_applied, print_plan
from qualms.report._referral_json import applied_to_json, plan_to_json
from qualms.report.index import LinkedPage, write_index
from qualms.report.json_output import to_json, write_curves
from qualms.report.page import check_page, check_room, write_page
from qualms.report.printed import print_results, sparkline
from qualms.report.scored import score_table
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.report.terminal import print_table, printable

__all__ = [
    "Column",
    "LinkedPage",
    "Table",
    "TableCell",
    "TableLine",
    "applied_to_json",
    "check_page",
    "check_room",
    "digits",
    "plan_to_json",
    "print_applied",
    "print_plan",
    "print_results",
    "print_table",
    "printable",
    "score_table",
    "sparkline",
    "to_json",
    "write_curves",
    "write_index",
    "write_page",
]
