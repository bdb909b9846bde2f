"""What a cell of a table shows, in the unit of its column."""

import math
from typing import Any

from qualms.evaluate.benchmark import Summary
from qualms.report._compared import Compared, with_error
from qualms.report._csv import plain
from qualms.report.papers.retina._layouts import Column


def shown(compared: Compared, column: Column) -> Summary:
    """Mean and standard error over repeats, by the rule of the column.

    Ours divides by n - 1; the released code, and so the column by its rule, by n.
    """
    cell = compared.cell
    if column.theirs:
        return with_error(cell.as_published, ddof=0, scale=compared.scale)
    return with_error(cell.values, ddof=1, scale=compared.scale)


def numbers(compared: Compared) -> dict[str, Any]:
    """Everything known about a cell, as a CSV holds it."""
    cell, scale, number = compared.cell, compared.scale, compared.number
    ours = with_error(cell.values, ddof=1, scale=scale)
    theirs = with_error(cell.as_published, ddof=0, scale=scale)
    return {
        "ours_mean": plain(ours.mean),
        "ours_stderr": plain(ours.std),
        "ours_low": plain(scale * cell.low),
        "ours_high": plain(scale * cell.high),
        "repeats": len(cell.values),
        "by_their_rule_mean": plain(theirs.mean),
        "by_their_rule_stderr": plain(theirs.std),
        "published_mean": plain(number.mean if number else None),
        "published_stderr": plain(number.spread if number else None),
        "difference": plain(compared.gap),
        "difference_in_published_stderr": plain(compared.difference),
        "tied_with_best": compared.tied,
        "remark": remark(compared),
    }


def remark(compared: Compared) -> str:
    """Why a number is missing, and how many repeats are undefined."""
    values = compared.cell.values
    undefined = sum(not math.isfinite(value) for value in values)
    told = f"{undefined} of {len(values)} repeats are undefined" if undefined else ""
    return "; ".join(part for part in (compared.why, told) if part)
