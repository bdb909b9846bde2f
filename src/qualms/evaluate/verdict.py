"""The verdict on a file: four questions, each answered by a fixed rule.

Is it accurate, is it calibrated, does its uncertainty find errors, does it survive the
shift? Every answer compares an interval with a cut: yes where the whole interval lies
on the good side, no where all of it lies on the other, else it cannot be told
(`docs/verdict.md`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qualms.evaluate._results import Results
from qualms.evaluate.chosen_uncertainty import NAMED, uncertainty_of
from qualms.evaluate.estimates import Designs, influences_of
from qualms.evaluate.judging import judging_of
from qualms.evaluate.operating_points import YesNo
from qualms.evaluate.rows import Answer, ScoreRow
from qualms.evaluate.subsets import SIDE_BY_SIDE
from qualms.inference import (
    Influence,
    WithInterval,
    difference_of_samples,
    influence_difference,
)
from qualms.scores import Difference
from qualms.wording import plural

MARGIN = 0.05
"""Largest acceptable difference of probabilities, coverages and shares."""
LEAST_GAIN = 0.1
"""An ordering or a prediction must reduce the error by more than this share."""
FEWEST = 10
"""Fewest items for which a question is answered."""
OTHERS = 3
"""Most other uncertainties whose score is listed."""
DASH = "\N{EN DASH}"
NO_UNCERTAINTY = "the file holds no uncertainty"
NO_SHIFT = "no item is marked as shifted, or all are"


class Reply(NamedTuple):
    """The fields of an `Answer` that a rule gives."""

    answer: YesNo
    because: str
    words: str = ""


Rule = Callable[[Results, str], Reply]
"""Function of the results and of the subset of the first three questions."""


def verdict_of(results: Results) -> tuple[Answer, ...]:
    """Answer the questions for one file; the first three are about `results.subset`."""
    judging = judging_of(results.task)
    if reason := judging.unasked(results):
        unasked = Reply("not asked", reason)._asdict()
        return tuple(Answer(question=q, **unasked) for q in judging.rules)
    sizes: dict[str, int] = {}
    for row in results.rows:
        sizes[row.subset] = max(row.n, sizes.get(row.subset, 0))
    items = results.subset
    answers = []
    for question, rule in judging.rules.items():
        reply = rule(results, items)
        subsets = SIDE_BY_SIDE if question == "survives_shift" else (items,)
        fewest = min(sizes.get(subset, results.n) for subset in subsets)
        if fewest < FEWEST and reply.answer in ("yes", "no"):
            only = f"only {fewest} {plural(fewest, 'item')}"
            reply = Reply("cannot be told", f"{reply.because}; {only}")
        answers.append(Answer(question=question, **reply._asdict()))
    return tuple(answers)


def row_or_none(
    results: Results, score: str, items: str, **settings: str
) -> ScoreRow | None:
    """Return the row of `Results.row`; None if there is none."""
    try:
        return results.row(score, subset=items, **settings)
    except LookupError:
        return None


def against(number: WithInterval, cut: float, *, above: bool) -> YesNo:
    """Return whether the whole interval is on the good side of the cut."""
    if math.isnan(number.low) or math.isnan(number.high):
        return "cannot be told"
    if number.low <= cut <= number.high:
        return "cannot be told"
    return "yes" if (number.low > cut) == above else "no"


def all_of(*answers: YesNo) -> YesNo:
    """Return no if one answer is no, yes if all are yes, else that it is open."""
    if "no" in answers:
        return "no"
    return "yes" if set(answers) == {"yes"} else "cannot be told"


def gap_from(
    results: Results, row: ScoreRow, baseline: Influence, share: float
) -> Difference | None:
    """Return `row` minus a share of `baseline` on the same items; None if unknown."""
    influences = () if row.entry is None else influences_of([row.entry])
    if not influences or results.design is None or row.entry is None:
        return None
    if math.isnan(row.low) or baseline.values is None:
        return None
    cut = replace(
        baseline, value=share * baseline.value, values=share * baseline.values
    )
    design = Designs(results.design).of(row.entry.index)
    return influence_difference(influences, cut, design=design, level=results.level)


def reduces(results: Results, row: ScoreRow, baseline: Influence, named: str) -> Reply:
    """Answer whether `row` is below `baseline` by more than `LEAST_GAIN` of it.

    `named` is a word for the baseline.
    """
    share = 1.0 - LEAST_GAIN
    gap = gap_from(results, row, baseline, share)
    answer = "cannot be told" if gap is None else against(gap, 0.0, above=False)
    cut = share * baseline.value
    form = number_form(row, cut)
    because = f"{interval_words(row, form)}{by_words(row)}; {cut_words(cut, form)}"
    if gap is not None and answer == "cannot be told" and math.isfinite(gap.low):
        # Both are about the same items: this interval decides, not that of the score.
        because += f" ({change_words(gap.low, gap.high, form)} from it)"
    because += f", {named} {two_digits(baseline.value)}"
    return Reply(answer, because)


def by_words(row: ScoreRow) -> str:
    """Return which uncertainty a score is about, in words; '' for none."""
    return f" by {row.detail}" if uncertainty_of(row.settings) else ""


def better_than(
    baseline: str, answer: YesNo, because: str, *, worse: bool = False
) -> Reply:
    """Compare the accuracy with a baseline; how much is enough depends on the use.

    `worse` is true if it is shown to be worse than the baseline.
    """
    hardly = "worse" if worse else "hardly better"
    words = {"yes": f"better than {baseline}", "no": f"{hardly} than {baseline}"}
    return Reply(answer, because, words.get(answer, ""))


def small_error(score: str, label: str) -> Rule:
    """Return the rule that asks whether a calibration error is within the margin."""

    def rule(results: Results, items: str) -> Reply:
        row = row_or_none(results, score, items)
        if row is None:
            return Reply("not asked", f"there is no {label}")
        answer = against(row, MARGIN, above=False)
        return Reply(answer, f"{label} {beside_cut(row, MARGIN)}")

    return rule


def finds_errors(settings: Mapping[str, str], risk: str) -> Rule:
    """Return the rule that asks whether keeping certain items reduces the `risk`."""

    def rule(results: Results, items: str) -> Reply:
        row = _judged_by(results, "aurc", items, settings)
        mean = row_or_none(results, risk, items)
        influences = (
            () if mean is None or mean.entry is None else influences_of([mean.entry])
        )
        if row is None or mean is None or not influences:
            return Reply("not asked", NO_UNCERTAINTY)
        baseline = influences[0]
        if mean.better == "higher":
            baseline = baseline.complement()
        if math.isnan(row.value) or not baseline.value:
            return Reply("cannot be told", row.why or "there are no errors to find")
        if baseline.values is not None and not np.ptp(baseline.values):
            return Reply("cannot be told", "all items are equally wrong")
        reply = reduces(results, row, baseline, "random order")
        because = f"AURC {reply.because}{other_values(results, row)}"
        return Reply(reply.answer, because)

    return rule


def _judged_by(
    results: Results, score: str, items: str, settings: Mapping[str, str]
) -> ScoreRow | None:
    """Return the row of a score by the chosen uncertainty, preferably at `settings`."""
    rows = [row for row in results.rows if (row.score, row.subset) == (score, items)]
    if results.uncertainty:
        rows = [r for r in rows if uncertainty_of(r.settings) == results.uncertainty]
    at = [row for row in rows if settings.items() <= row.settings.items()]
    return next(iter(at if at or not results.uncertainty else rows), None)


def other_values(results: Results, row: ScoreRow) -> str:
    """List the values of the score by other uncertainties than that of `row`."""
    if not results.uncertainty:
        return ""
    rest = {k: v for k, v in row.settings.items() if k not in NAMED}
    others = [
        other
        for other in results.rows
        if (other.score, other.subset) == (row.score, row.subset)
        and uncertainty_of(other.settings) != uncertainty_of(row.settings)
        and rest.items() <= other.settings.items()
    ]
    listed = [
        f"{two_digits(other.value)} by {uncertainty_of(other.settings)}"
        for other in others[:OTHERS]
    ]
    more = [f"{len(others) - OTHERS} more: --all"] if len(others) > OTHERS else []
    return f"; {', '.join([*listed, *more])}" if listed else ""


def survives(score: str, label: str, error: tuple[str, str] | None = None) -> Rule:
    """Return the rule that asks whether a score falls by no more than the margin.

    `error` is the name and label of an error that must not rise by more than that.
    """

    def rule(results: Results, _items: str) -> Reply:
        if not results.has_shift:
            return Reply("not asked", NO_SHIFT)
        before, after = (results.row(score, subset=s) for s in SIDE_BY_SIDE)
        fall = difference_of_samples(before, after)
        answer = against(fall, MARGIN, above=False)
        change = f"{label} {before.value:.2f} → {after.value:.2f}"
        form = apart((fall.low, fall.high), (MARGIN, -MARGIN))
        reply = Reply(answer, f"{change} ({change_words(-fall.high, -fall.low, form)})")
        if error is not None:
            reply = with_error(reply, results, *error)
        return reply._replace(because=f"{reply.because}; cut {MARGIN:g}")

    return rule


def with_error(
    reply: Reply, results: Results, score: str, label: str, cut: float = MARGIN
) -> Reply:
    """Return `reply`, changed if an error rises by more than the cut."""
    before, after = (row_or_none(results, score, s) for s in SIDE_BY_SIDE)
    if before is None or after is None:
        return reply
    rise = difference_of_samples(after, before)
    answer = all_of(reply.answer, against(rise, cut, above=False))
    form = apart((rise.low, rise.high), (cut,))
    change = f"{label} {before.value:.2f} → {after.value:.2f}"
    change += f" ({change_words(rise.low, rise.high, form)})"
    return Reply(answer, f"{reply.because}, {change}")


def percent_words(row: ScoreRow) -> str:
    """Return a share with its interval as per cents."""
    return "undefined" if math.isnan(row.value) else interval_words(row, ".0%")


def beside_cut(row: ScoreRow, cut: float) -> str:
    """Return a number with its interval and the cut, in words."""
    form = number_form(row, cut)
    return f"{interval_words(row, form)}; {cut_words(cut, form)}"


def interval_words(number: WithInterval, form: str) -> str:
    """Return a number with its interval."""
    if math.isnan(number.low):
        return f"{number.value:{form}} (no interval)"
    low, high = f"{number.low:{form}}", f"{number.high:{form}}"
    if form.endswith("%"):
        low = low.removesuffix("%")
    between = " to " if number.low < 0.0 else DASH
    return f"{number.value:{form}} ({low}{between}{high})"


def cut_words(value: float, form: str) -> str:
    """Return the limit that a number is compared with, in words."""
    return f"cut {_plain(value, form)}"


def _plain(value: float, form: str) -> str:
    """Return a number without zeros at its end."""
    text = f"{value:{form}}"
    if "." not in text or "e" in text:
        return text
    end = "%" if text.endswith("%") else ""
    return text.removesuffix(end).rstrip("0").rstrip(".") + end


def number_form(row: ScoreRow, *cuts: float, percent: bool = False) -> str:
    """Return the format of a number, its interval and the cuts.

    It has up to two further digits if an end would otherwise look equal to a cut.
    """
    ends = (row.value, row.low, row.high)
    if percent:
        hundred = tuple(100 * end for end in ends), tuple(100 * cut for cut in cuts)
        return apart(*hundred, start=0).replace("f", "%")
    start = _decimals(row.value)
    return ".2g" if start is None else apart(ends, cuts, start=start)


def apart(ends: Sequence[float], cuts: Sequence[float], *, start: int = 2) -> str:
    """Return a format that distinguishes the ends from the cuts, if it can."""
    shown = [value for value in ends if math.isfinite(value)]
    for decimals in range(start, start + 3):
        written = {f"{cut:.{decimals}f}" for cut in cuts}
        if all(f"{value:.{decimals}f}" not in written for value in shown):
            return f".{decimals}f"
    return f".{start + 2}f"


def two_digits(value: float) -> str:
    """Return a number with two significant digits."""
    if not math.isfinite(value):
        return "undefined"
    decimals = _decimals(value)
    return f"{value:.2g}" if decimals is None else f"{value:.{decimals}f}"


def _decimals(value: float) -> int | None:
    """Return the decimals of two significant digits; None for tiny or huge numbers."""
    if not value or not math.isfinite(value):
        return 2
    decimals = 1 - math.floor(math.log10(abs(value)))
    return max(decimals, 0) if -6 < decimals < 6 else None


def change_words(low: float, high: float, form: str) -> str:
    """Return the interval of a change, with its signs."""
    return "no interval" if math.isnan(low) else f"{low:+{form}} to {high:+{form}}"
