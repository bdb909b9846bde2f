"""Rules of the verdict on a segmentation."""

from collections.abc import Mapping

from qualms.evaluate import Results
from qualms.evaluate.chosen_uncertainty import PATCH
from qualms.evaluate.rows import Question
from qualms.evaluate.verdict import (
    Reply,
    Rule,
    against,
    beside_cut,
    finds_errors,
    row_or_none,
    small_error,
    survives,
)

LEAST_DICE = 2 / 3
"""Least acceptable Dice: two regions with this Dice share half of their union."""
NO_LABELS = "no item has labels"


def _maps_accurate(results: Results, items: str) -> Reply:
    score, label = _overlap(results)
    row = results.row(score, subset=items)
    answer = against(row, LEAST_DICE, above=True)
    return Reply(answer, f"{label} {beside_cut(row, LEAST_DICE)}")


def _map_errors_found(results: Results, items: str) -> Reply:
    rule = finds_errors({"aggregation": PATCH}, _overlap(results)[0])
    return rule(results, items)


def _maps_survive(results: Results, items: str) -> Reply:
    rule = survives(*_overlap(results), ("stated_ace", "ACE"))
    return rule(results, items)


def _overlap(results: Results) -> tuple[str, str]:
    """Return the Dice to judge by, and its name in words.

    Pooled Dice is dominated by the background.
    """
    row = next((row for row in results.rows if row.score == "macro_dice"), None)
    if row is None:
        return "dice", results.row("dice").label
    return "macro_dice", f"{row.label} of {row.detail} classes"


def unasked(results: Results) -> str:
    """Return why nothing is asked of a file: '' unless no item has labels."""
    return NO_LABELS if row_or_none(results, "dice", "all") is None else ""


RULES: Mapping[Question, Rule] = {
    "accurate": _maps_accurate,
    "calibrated": small_error("stated_ace", "ACE of its probabilities"),
    "finds_errors": _map_errors_found,
    "survives_shift": _maps_survive,
}
