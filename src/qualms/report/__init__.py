"""What people see: the terminal table, JSON, CSV, and the offline page."""

from qualms.report._json import to_json, write_curves
from qualms.report._page import write_page
from qualms.report._refer import print_plan
from qualms.report._refer_json import plan_to_json
from qualms.report._terminal import (
    number,
    print_results,
    printable,
    sparkline,
)

__all__ = [
    "number",
    "plan_to_json",
    "print_plan",
    "print_results",
    "printable",
    "sparkline",
    "to_json",
    "write_curves",
    "write_page",
]
