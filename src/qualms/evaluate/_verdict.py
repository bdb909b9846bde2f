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

from qualms.evaluate._estimates import Designs, influences_of
from qualms.evaluate._results import Results
from qualms.evaluate.chosen_uncertainty import NAMED, PATCH, uncertainty_of
from qualms.evaluate.operating_points import YesNo
from qualms.evaluate.rows import Answer, Question, ScoreRow
from qualms.evaluate.subsets import SIDE_BY_SIDE
from qualms.inference import (
    Bounded,
    Influence,
    WithInterval,
    difference_of_samples,
    influence_difference,
    mean_influence,
)
from qualms.predictions import LENGTH_TAKEN
from qualms.scores import Difference
from qualms.wording import plural

MARGIN = 0.05
"""Largest acceptable difference of probabilities, coverages and shares."""
FACTOR = 1.5
"""Largest acceptable factor by which odds are wrong, and slopes of log-odds differ."""
LINE = (
    ("calibration_intercept", 0.0, -math.log(FACTOR), math.log(FACTOR)),
    ("calibration_slope", 1.0, 1.0 / FACTOR, FACTOR),
)
"""Scores of the calibration line, their ideal, and the cuts around it."""
LEAST_MCC = 0.1
"""Least correlation of predictions that are better than guesses."""
LEAST_DICE = 2 / 3
"""Least acceptable Dice: two regions with this Dice share half of their union."""
LEAST_GAIN = 0.1
"""An ordering or a prediction must reduce the error by more than this share."""
LEAST_R_AUROC = 0.55
"""Least R-AUROC of an uncertainty that is better than a coin."""
FEWEST = 10
"""Fewest items for which a question is answered."""
OTHERS = 3
"""Most other uncertainties whose score is listed."""
DASH = "\N{EN DASH}"
NO_UNCERTAINTY = "the file holds no uncertainty"
NO_LABELS = "no item has labels"
NO_SHIFT = "no item is marked as shifted, or all are"


class _Reply(NamedTuple):
    """The fields of an `Answer` that a rule gives."""

    answer: YesNo
    because: str
    words: str = ""


_Rule = Callable[[Results, str], _Reply]
"""Function of the results and of the subset of the first three questions."""


def verdict_of(results: Results) -> tuple[Answer, ...]:
    """Answer the questions for one file; the first three are about `results.subset`."""
    if results.task == "segmentation" and _row(results, "dice", "all") is None:
        unasked = _Reply("not asked", NO_LABELS)._asdict()
        return tuple(Answer(question=q, **unasked) for q in _RULES[results.task])
    sizes: dict[str, int] = {}
    for row in results.rows:
        sizes[row.subset] = max(row.n, sizes.get(row.subset, 0))
    items = results.subset
    answers = []
    for question, rule in _RULES[results.task].items():
        reply = rule(results, items)
        subsets = SIDE_BY_SIDE if question == "survives_shift" else (items,)
        fewest = min(sizes.get(subset, results.n) for subset in subsets)
        if fewest < FEWEST and reply.answer in ("yes", "no"):
            only = f"only {fewest} {plural(fewest, 'item')}"
            reply = _Reply("cannot be told", f"{reply.because}; {only}")
        answers.append(Answer(question=question, **reply._asdict()))
    return tuple(answers)


def _row(results: Results, score: str, items: str, **settings: str) -> ScoreRow | None:
    """Return the row of `Results.row`; None if there is none."""
    try:
        return results.row(score, subset=items, **settings)
    except LookupError:
        return None


def _compare(number: WithInterval, cut: float, *, above: bool) -> YesNo:
    """Return whether the whole interval is on the good side of the cut."""
    if math.isnan(number.low) or math.isnan(number.high):
        return "cannot be told"
    if number.low <= cut <= number.high:
        return "cannot be told"
    return "yes" if (number.low > cut) == above else "no"


def _all_of(*answers: YesNo) -> YesNo:
    """Return no if one answer is no, yes if all are yes, else that it is open."""
    if "no" in answers:
        return "no"
    return "yes" if set(answers) == {"yes"} else "cannot be told"


def _gap(
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


def _reduces(
    results: Results, row: ScoreRow, baseline: Influence, named: str
) -> _Reply:
    """Answer whether `row` is below `baseline` by more than `LEAST_GAIN` of it.

    `named` is a word for the baseline.
    """
    share = 1.0 - LEAST_GAIN
    gap = _gap(results, row, baseline, share)
    answer = "cannot be told" if gap is None else _compare(gap, 0.0, above=False)
    cut = share * baseline.value
    form = _form(row, cut)
    because = f"{_interval(row, form)}{_by(row)}; {_cut(cut, form)}"
    if gap is not None and answer == "cannot be told" and math.isfinite(gap.low):
        # Both are about the same items: this interval decides, not that of the score.
        because += f" ({_change(gap.low, gap.high, form)} from it)"
    because += f", {named} {_digits(baseline.value)}"
    return _Reply(answer, because)


def _by(row: ScoreRow) -> str:
    return f" by {row.detail}" if uncertainty_of(row.settings) else ""


def _classes_accurate(results: Results, items: str) -> _Reply:
    accuracy, mcc = (results.row(name, subset=items) for name in ("accuracy", "mcc"))
    right = f"{_percent(accuracy)} are right"
    if math.isnan(mcc.value):
        return _Reply(
            "cannot be told", f"{right}; only one class occurs or is predicted"
        )
    answer = _compare(mcc, LEAST_MCC, above=True)
    decided = f"{_digits(mcc.value)}; cut {LEAST_MCC:g}"
    if answer == "cannot be told":
        decided = _beside_cut(mcc, LEAST_MCC)
    because = f"{right}, MCC {decided}"
    return _better_than("guessing", answer, because, worse=mcc.high < 0.0)


def _better_than(
    baseline: str, answer: YesNo, because: str, *, worse: bool = False
) -> _Reply:
    """Compare the accuracy with a baseline; how much is enough depends on the use.

    `worse` is true if it is shown to be worse than the baseline.
    """
    hardly = "worse" if worse else "hardly better"
    words = {"yes": f"better than {baseline}", "no": f"{hardly} than {baseline}"}
    return _Reply(answer, because, words.get(answer, ""))


def _values_accurate(results: Results, items: str) -> _Reply:
    error = _row(results, "mae", items)
    if error is None or error.entry is None or results.items is None:
        return _Reply("not asked", "there are intervals, but no point predictions")
    target = results.items.arrays["target"][error.entry.index]
    median = mean_influence(np.abs(target - np.median(target)))
    reply = _reduces(results, error, median, "constant")
    gap = _gap(results, error, median, 1.0)
    worse = gap is not None and gap.low > 0.0
    because = f"mean error {reply.because}"
    return _better_than("a constant", reply.answer, because, worse=worse)


def _maps_accurate(results: Results, items: str) -> _Reply:
    score, label = _overlap(results)
    row = results.row(score, subset=items)
    answer = _compare(row, LEAST_DICE, above=True)
    return _Reply(answer, f"{label} {_beside_cut(row, LEAST_DICE)}")


def _map_errors_found(results: Results, items: str) -> _Reply:
    rule = _finds_errors({"aggregation": PATCH}, _overlap(results)[0])
    return rule(results, items)


def _maps_survive(results: Results, items: str) -> _Reply:
    rule = _survives(*_overlap(results), ("stated_ace", "ACE"))
    return rule(results, items)


def _overlap(results: Results) -> tuple[str, str]:
    """Return the Dice to judge by, and its name in words.

    Pooled Dice is dominated by the background.
    """
    row = next((row for row in results.rows if row.score == "macro_dice"), None)
    if row is None:
        return "dice", results.row("dice").label
    return "macro_dice", f"{row.label} of {row.detail} classes"


def _neighbours_accurate(results: Results, items: str) -> _Reply:
    hits = results.row("recall_at_1", subset=items)
    if hits.entry is None or results.items is None:
        return _Reply("cannot be told", "the targets are not known")
    target = results.items.arrays["target"][hits.entry.index]
    largest = float(np.unique(target, return_counts=True)[1].max() / len(target))
    answer = _compare(hits, largest, above=True)
    form = _form(hits, largest, percent=True)
    cut = f"{_cut(largest, form)}, the largest class"
    return _better_than("guessing", answer, f"R@1 {_interval(hits, form)}; {cut}")


def _small_error(score: str, label: str) -> _Rule:
    """Return the rule that asks whether a calibration error is within the margin."""

    def rule(results: Results, items: str) -> _Reply:
        row = _row(results, score, items)
        if row is None:
            return _Reply("not asked", f"there is no {label}")
        answer = _compare(row, MARGIN, above=False)
        return _Reply(answer, f"{label} {_beside_cut(row, MARGIN)}")

    return rule


def _probabilities_calibrated(results: Results, items: str) -> _Reply:
    """Answer by the errors of class 1 of two, or of all classes and the predicted one.

    The sum over classes of their errors counts each error twice, as for two classes.
    """
    by_class = results.row("classwise_ece", subset=items)
    classes = _classes(results)
    if classes == 2:
        return _binary_calibrated(results, items, by_class)
    top = _small_error("ece", "ECE")(results, items)
    if classes is None or math.isnan(by_class.low):
        words = "its predicted class is" if top.answer == "yes" else ""
        why = by_class.no_interval or "class-wise errors are not known"
        return top._replace(because=f"{top.because}; {why}", words=words)
    cut = 2.0 * MARGIN / classes
    answer = _all_of(top.answer, _compare(by_class, cut, above=False))
    return _Reply(answer, f"{top.because}; class-wise ECE {_beside_cut(by_class, cut)}")


def _classes(results: Results) -> int | None:
    return None if results.items is None else results.items.classes


def _binary_calibrated(results: Results, items: str, error: ScoreRow) -> _Reply:
    """Answer by the error of P(y=1) and the line of its calibration.

    Never naming a rare class has an error of its share, which is no calibration.
    """
    if error.entry is None:
        return _Reply("cannot be told", "the probabilities are not known")
    prob = error.entry.inputs()["prob"]
    prevalence = float(error.entry.inputs()["positive"].mean())
    cut = min(MARGIN, min(prevalence, 1.0 - prevalence) / 2.0) or MARGIN
    answer = _compare(error, cut, above=False)
    because = f"{error.label} {_beside_cut(error, cut)}"
    for score, ideal, low, high in LINE:
        row = results.row(score, subset=items)
        text = f"{score.partition('_')[2]} {_line_number(row)}, ideal {ideal:g}"
        if row.low > high or row.high < low:
            answer = "no"
            text += f", cut {high if row.low > high else low:.2g}"
        because += f"; {text}"
    means = f"mean P(y=1) {_digits(float(prob.mean()))}, prevalence"
    return _Reply(answer, f"{because}; {means} {_digits(prevalence)}")


def _line_number(row: ScoreRow) -> str:
    return "undefined" if math.isnan(row.value) else _interval(row, ".2f")


def _intervals_cover(results: Results, items: str) -> _Reply:
    row = _row(results, "coverage", items)
    if row is None or row.entry is None or row.entry.aim is None:
        return _Reply("not asked", "there are no intervals; --val makes some")
    aim = row.entry.aim
    low, high = aim - MARGIN, aim + MARGIN
    enough = _compare(row, low, above=True)
    answer = _all_of(enough, _compare(row, high, above=False))
    form = _form(row, low, high, percent=True)
    covered = f"{_interval_kind(row)}intervals cover {_interval(row, form)}"
    return _Reply(answer, f"{covered}; aim {100 * aim:.3g}±{100 * MARGIN:g}%")


def _interval_kind(row: ScoreRow) -> str:
    return "conformal " if row.settings.get("interval") == "conformal" else ""


def _finds_errors(settings: Mapping[str, str], risk: str) -> _Rule:
    """Return the rule that asks whether keeping certain items reduces the `risk`."""

    def rule(results: Results, items: str) -> _Reply:
        row = _judged_by(results, "aurc", items, settings)
        mean = _row(results, risk, items)
        influences = (
            () if mean is None or mean.entry is None else influences_of([mean.entry])
        )
        if row is None or mean is None or not influences:
            return _Reply("not asked", NO_UNCERTAINTY)
        baseline = influences[0]
        if mean.better == "higher":
            baseline = baseline.complement()
        if math.isnan(row.value) or not baseline.value:
            return _Reply("cannot be told", row.why or "there are no errors to find")
        if baseline.values is not None and not np.ptp(baseline.values):
            return _Reply("cannot be told", "all items are equally wrong")
        reply = _reduces(results, row, baseline, "random order")
        because = f"AURC {reply.because}{_others(results, row)}"
        return _Reply(reply.answer, because)

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


def _others(results: Results, row: ScoreRow) -> str:
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
        f"{_digits(other.value)} by {uncertainty_of(other.settings)}"
        for other in others[:OTHERS]
    ]
    more = [f"{len(others) - OTHERS} more: --all"] if len(others) > OTHERS else []
    return f"; {', '.join([*listed, *more])}" if listed else ""


def _neighbour_errors_found(results: Results, items: str) -> _Reply:
    row = _row(results, "r_auroc", items)
    if row is None:
        return _Reply("not asked", NO_UNCERTAINTY)
    if math.isnan(row.value):
        return _Reply("cannot be told", row.why)
    answer = _compare(row, LEAST_R_AUROC, above=True)
    length_taken = LENGTH_TAKEN in results.notes
    form = _form(row, LEAST_R_AUROC)
    cut = f"{_cut(LEAST_R_AUROC, form)}, coin 0.5"
    by = " by 1/norm, as the file has no uncertainty" if length_taken else _by(row)
    because = f"R-AUROC {_interval(row, form)}{by}; {cut}"
    return _Reply(answer, f"{because}{_others(results, row)}")


def _classes_survive(results: Results, items: str) -> _Reply:
    """Answer by the accuracy and by the errors that decide whether it is calibrated.

    The class-wise error of more than two classes is named only where it decides.
    """
    classes = _classes(results)
    error = ("classwise_ece", "ECE of P(y=1)") if classes == 2 else ("ece", "ECE")
    reply = _survives("accuracy", "accuracy", error)(results, items)
    rows = [_row(results, "classwise_ece", subset) for subset in SIDE_BY_SIDE]
    if classes in (None, 2) or any(row is None or math.isnan(row.low) for row in rows):
        return reply
    cut = 2.0 * MARGIN / classes
    joined = _with_error(reply, results, "classwise_ece", "class-wise ECE", cut)
    joined = joined._replace(because=f"{joined.because}; cut {_digits(cut)}")
    return reply if joined.answer == reply.answer else joined


def _survives(score: str, label: str, error: tuple[str, str] | None = None) -> _Rule:
    """Return the rule that asks whether a score falls by no more than the margin.

    `error` is the name and label of an error that must not rise by more than that.
    """

    def rule(results: Results, _items: str) -> _Reply:
        if not results.has_shift:
            return _Reply("not asked", NO_SHIFT)
        before, after = (results.row(score, subset=s) for s in SIDE_BY_SIDE)
        fall = difference_of_samples(before, after)
        answer = _compare(fall, MARGIN, above=False)
        change = f"{label} {before.value:.2f} → {after.value:.2f}"
        form = _apart((fall.low, fall.high), (MARGIN, -MARGIN))
        reply = _Reply(answer, f"{change} ({_change(-fall.high, -fall.low, form)})")
        if error is not None:
            reply = _with_error(reply, results, *error)
        return reply._replace(because=f"{reply.because}; cut {MARGIN:g}")

    return rule


def _with_error(
    reply: _Reply, results: Results, score: str, label: str, cut: float = MARGIN
) -> _Reply:
    """Return `reply`, changed if an error rises by more than the cut."""
    before, after = (_row(results, score, s) for s in SIDE_BY_SIDE)
    if before is None or after is None:
        return reply
    rise = difference_of_samples(after, before)
    answer = _all_of(reply.answer, _compare(rise, cut, above=False))
    form = _apart((rise.low, rise.high), (cut,))
    change = f"{label} {before.value:.2f} → {after.value:.2f}"
    change += f" ({_change(rise.low, rise.high, form)})"
    return _Reply(answer, f"{reply.because}, {change}")


def _intervals_survive(results: Results, _items: str) -> _Reply:
    if not results.has_shift:
        return _Reply("not asked", NO_SHIFT)
    row = _row(results, "coverage", "shifted")
    before, after = (_row(results, "mae", subset) for subset in SIDE_BY_SIDE)
    replies: list[_Reply] = []
    if row is not None and row.entry is not None and row.entry.aim is not None:
        least = row.entry.aim - MARGIN
        answer = _compare(row, least, above=True)
        form = _form(row, least, percent=True)
        coverage = f"{_interval_kind(row)}coverage {_interval(row, form)}"
        replies.append(_Reply(answer, f"{coverage}, {_cut(least, form)}"))
    if before is not None and after is not None and before.value:
        ratio = _ratio(after, before)
        most = 1.0 + LEAST_GAIN
        answer = _compare(ratio, most, above=False)
        form = _apart((ratio.value, ratio.low, ratio.high), (most,))
        times = f"error {_interval(ratio, form)} times as large, {_cut(most, form)}"
        replies.append(_Reply(answer, times))
    if not replies:
        return _Reply("not asked", "there are neither intervals nor errors to compare")
    answer = _all_of(*(reply.answer for reply in replies))
    return _Reply(answer, "; ".join(reply.because for reply in replies))


def _ratio(a: ScoreRow, b: ScoreRow) -> Bounded:
    """Return `a` / `b` of two samples, with an interval made on logarithms."""
    if not min(a.value, a.low, b.value, b.low) > 0.0:
        return Bounded(a.value / b.value, math.nan, math.nan)
    log_a, log_b = (
        Bounded(*map(math.log, (row.value, row.low, row.high))) for row in (a, b)
    )
    return Bounded(*map(math.exp, difference_of_samples(log_a, log_b)))


def _percent(row: ScoreRow) -> str:
    return "undefined" if math.isnan(row.value) else _interval(row, ".0%")


def _beside_cut(row: ScoreRow, cut: float) -> str:
    """Return a number with its interval and the cut, in words."""
    form = _form(row, cut)
    return f"{_interval(row, form)}; {_cut(cut, form)}"


def _interval(number: WithInterval, form: str) -> str:
    """Return a number with its interval."""
    if math.isnan(number.low):
        return f"{number.value:{form}} (no interval)"
    low, high = f"{number.low:{form}}", f"{number.high:{form}}"
    if form.endswith("%"):
        low = low.removesuffix("%")
    between = " to " if number.low < 0.0 else DASH
    return f"{number.value:{form}} ({low}{between}{high})"


def _cut(value: float, form: str) -> str:
    return f"cut {_plain(value, form)}"


def _plain(value: float, form: str) -> str:
    """Return a number without zeros at its end."""
    text = f"{value:{form}}"
    if "." not in text or "e" in text:
        return text
    end = "%" if text.endswith("%") else ""
    return text.removesuffix(end).rstrip("0").rstrip(".") + end


def _form(row: ScoreRow, *cuts: float, percent: bool = False) -> str:
    """Return the format of a number, its interval and the cuts.

    It has up to two further digits if an end would otherwise look equal to a cut.
    """
    ends = (row.value, row.low, row.high)
    if percent:
        hundred = tuple(100 * end for end in ends), tuple(100 * cut for cut in cuts)
        return _apart(*hundred, start=0).replace("f", "%")
    start = _decimals(row.value)
    return ".2g" if start is None else _apart(ends, cuts, start=start)


def _apart(ends: Sequence[float], cuts: Sequence[float], *, start: int = 2) -> str:
    """Return a format that distinguishes the ends from the cuts, if it can."""
    shown = [value for value in ends if math.isfinite(value)]
    for decimals in range(start, start + 3):
        written = {f"{cut:.{decimals}f}" for cut in cuts}
        if all(f"{value:.{decimals}f}" not in written for value in shown):
            return f".{decimals}f"
    return f".{start + 2}f"


def _digits(value: float) -> str:
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


def _change(low: float, high: float, form: str) -> str:
    """Return the interval of a change, with its signs."""
    return "no interval" if math.isnan(low) else f"{low:+{form}} to {high:+{form}}"


_RULES: Mapping[str, Mapping[Question, _Rule]] = {
    "classification": {
        "accurate": _classes_accurate,
        "calibrated": _probabilities_calibrated,
        "finds_errors": _finds_errors({}, "accuracy"),
        "survives_shift": _classes_survive,
    },
    "regression": {
        "accurate": _values_accurate,
        "calibrated": _intervals_cover,
        "finds_errors": _finds_errors({}, "mae"),
        "survives_shift": _intervals_survive,
    },
    "segmentation": {
        "accurate": _maps_accurate,
        "calibrated": _small_error("stated_ace", "ACE of its probabilities"),
        "finds_errors": _map_errors_found,
        "survives_shift": _maps_survive,
    },
    "embedding": {
        "accurate": _neighbours_accurate,
        "finds_errors": _neighbour_errors_found,
        "survives_shift": _survives("recall_at_1", "R@1"),
    },
}
