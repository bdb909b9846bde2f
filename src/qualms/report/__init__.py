"""What people see: the terminal table, JSON, CSV, and the offline page."""

from qualms.report._json import to_json, write_curves
from qualms.report._page import write_page
from qualms.report._terminal import (
    number,
    print_results,
    printable,
    sparkline,
)

__all__ = [
    "number",
    "print_results",
    "printable",
    "sparkline",
    "to_json",
    "write_curves",
    "write_page",
]
