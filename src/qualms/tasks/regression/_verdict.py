"""Rules of the verdict on a regression."""

import math
from collections.abc import Mapping

import numpy as np

from qualms.evaluate import Results
from qualms.evaluate.rows import Question, ScoreRow
from qualms.evaluate.subsets import SIDE_BY_SIDE
from qualms.evaluate.verdict import (
    LEAST_GAIN,
    MARGIN,
    NO_SHIFT,
    Reply,
    Rule,
    against,
    all_of,
    apart,
    better_than,
    cut_words,
    finds_errors,
    gap_from,
    interval_words,
    number_form,
    reduces,
    row_or_none,
)
from qualms.inference import (
    Bounded,
    difference_of_samples,
    mean_influence,
)


def _values_accurate(results: Results, items: str) -> Reply:
    error = row_or_none(results, "mae", items)
    if error is None or error.entry is None or results.items is None:
        return Reply("not asked", "there are intervals, but no point predictions")
    target = results.items.arrays["target"][error.entry.index]
    median = mean_influence(np.abs(target - np.median(target)))
    reply = reduces(results, error, median, "constant")
    gap = gap_from(results, error, median, 1.0)
    worse = gap is not None and gap.low > 0.0
    because = f"mean error {reply.because}"
    return better_than("a constant", reply.answer, because, worse=worse)


def _intervals_cover(results: Results, items: str) -> Reply:
    row = row_or_none(results, "coverage", items)
    if row is None or row.entry is None or row.entry.aim is None:
        return Reply("not asked", "there are no intervals; --val makes some")
    aim = row.entry.aim
    low, high = aim - MARGIN, aim + MARGIN
    enough = against(row, low, above=True)
    answer = all_of(enough, against(row, high, above=False))
    form = number_form(row, low, high, percent=True)
    covered = f"{_interval_kind(row)}intervals cover {interval_words(row, form)}"
    return Reply(answer, f"{covered}; aim {100 * aim:.3g}±{100 * MARGIN:g}%")


def _interval_kind(row: ScoreRow) -> str:
    return "conformal " if row.settings.get("interval") == "conformal" else ""


def _intervals_survive(results: Results, _items: str) -> Reply:
    if not results.has_shift:
        return Reply("not asked", NO_SHIFT)
    row = row_or_none(results, "coverage", "shifted")
    before, after = (row_or_none(results, "mae", subset) for subset in SIDE_BY_SIDE)
    replies: list[Reply] = []
    if row is not None and row.entry is not None and row.entry.aim is not None:
        least = row.entry.aim - MARGIN
        answer = against(row, least, above=True)
        form = number_form(row, least, percent=True)
        coverage = f"{_interval_kind(row)}coverage {interval_words(row, form)}"
        replies.append(Reply(answer, f"{coverage}, {cut_words(least, form)}"))
    if before is not None and after is not None and before.value:
        ratio = _ratio(after, before)
        most = 1.0 + LEAST_GAIN
        answer = against(ratio, most, above=False)
        form = apart((ratio.value, ratio.low, ratio.high), (most,))
        times = f"error {interval_words(ratio, form)} times as large"
        times += f", {cut_words(most, form)}"
        replies.append(Reply(answer, times))
    if not replies:
        return Reply("not asked", "there are neither intervals nor errors to compare")
    answer = all_of(*(reply.answer for reply in replies))
    return Reply(answer, "; ".join(reply.because for reply in replies))


def _ratio(a: ScoreRow, b: ScoreRow) -> Bounded:
    """Return `a` / `b` of two samples, with an interval made on logarithms."""
    if not min(a.value, a.low, b.value, b.low) > 0.0:
        return Bounded(a.value / b.value, math.nan, math.nan)
    log_a, log_b = (
        Bounded(*map(math.log, (row.value, row.low, row.high))) for row in (a, b)
    )
    return Bounded(*map(math.exp, difference_of_samples(log_a, log_b)))


RULES: Mapping[Question, Rule] = {
    "accurate": _values_accurate,
    "calibrated": _intervals_cover,
    "finds_errors": finds_errors({}, "mae"),
    "survives_shift": _intervals_survive,
}
