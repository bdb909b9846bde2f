"""Rules of the verdict on embeddings."""

import math
from collections.abc import Mapping

import numpy as np

from qualms.evaluate import Results
from qualms.evaluate.rows import Question
from qualms.evaluate.verdict import (
    NO_UNCERTAINTY,
    Reply,
    Rule,
    against,
    better_than,
    by_words,
    cut_words,
    interval_words,
    number_form,
    other_values,
    row_or_none,
    survives,
)
from qualms.predictions import LENGTH_TAKEN

LEAST_R_AUROC = 0.55
"""Least R-AUROC of an uncertainty that is better than a coin."""


def _neighbours_accurate(results: Results, items: str) -> Reply:
    hits = results.row("recall_at_1", subset=items)
    if hits.entry is None or results.items is None:
        return Reply("cannot be told", "the targets are not known")
    target = results.items.arrays["target"][hits.entry.index]
    largest = float(np.unique(target, return_counts=True)[1].max() / len(target))
    answer = against(hits, largest, above=True)
    form = number_form(hits, largest, percent=True)
    cut = f"{cut_words(largest, form)}, the largest class"
    return better_than("guessing", answer, f"R@1 {interval_words(hits, form)}; {cut}")


def _neighbour_errors_found(results: Results, items: str) -> Reply:
    row = row_or_none(results, "r_auroc", items)
    if row is None:
        return Reply("not asked", NO_UNCERTAINTY)
    if math.isnan(row.value):
        return Reply("cannot be told", row.why)
    answer = against(row, LEAST_R_AUROC, above=True)
    length_taken = LENGTH_TAKEN in results.notes
    form = number_form(row, LEAST_R_AUROC)
    cut = f"{cut_words(LEAST_R_AUROC, form)}, coin 0.5"
    by = " by 1/norm, as the file has no uncertainty" if length_taken else by_words(row)
    because = f"R-AUROC {interval_words(row, form)}{by}; {cut}"
    return Reply(answer, f"{because}{other_values(results, row)}")


RULES: Mapping[Question, Rule] = {
    "accurate": _neighbours_accurate,
    "finds_errors": _neighbour_errors_found,
    "survives_shift": survives("recall_at_1", "R@1"),
}
