"""The verdict on a file: four questions, each answered by a fixed rule.

Is it accurate, is it calibrated, does its uncertainty find errors, does it survive the
shift? Every answer compares an interval with a cut: yes where the whole interval lies
on the good side, no where all of it lies on the other, else it cannot be told
(`docs/verdict.md`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qualms.evaluate._estimates import Designs, influences_of
from qualms.evaluate._results import Results
from qualms.evaluate.rows import Answer, Question, ScoreRow, YesNo
from qualms.evaluate.subsets import SIDE_BY_SIDE
from qualms.inference import (
    Bounded,
    Influence,
    WithInterval,
    difference_of_samples,
    influence_difference,
    mean_influence,
)
from qualms.wording import plural

MARGIN = 0.05
"""Probabilities, coverages and shares this close to each other are good enough."""
LEAST_MCC = 0.1
"""Predictions with a lower correlation are hardly better than guesses."""
LEAST_DICE = 2 / 3
"""Two regions with this Dice share half of their union."""
LEAST_GAIN = 0.1
"""An ordering or a prediction must reduce the error by more than this share."""
LEAST_R_AUROC = 0.55
"""A lower R-AUROC is hardly better than a coin."""
FEWEST = 10
"""With fewer items nothing is decided."""
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
"""Takes the results and the subset that the first three questions are about."""


def verdict_of(results: Results) -> tuple[Answer, ...]:
    """Return the answers for one file.

    The first three are about `results.subset`.
    """
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
    """Return the first row that fits, as `Results.row`; None if there is none."""
    try:
        return results.row(score, subset=items, **settings)
    except LookupError:
        return None


def _compare(number: WithInterval, cut: float, *, above: bool) -> YesNo:
    """Return whether the whole interval is above the cut, or below it."""
    if math.isnan(number.low) or math.isnan(number.high):
        return "cannot be told"
    if number.low <= cut <= number.high:
        return "cannot be told"
    return "yes" if (number.low > cut) == above else "no"


def _all_of(*answers: YesNo) -> YesNo:
    """Return no if one answer is no, yes if all are yes."""
    if "no" in answers:
        return "no"
    return "yes" if set(answers) == {"yes"} else "cannot be told"


def _reduces(results: Results, row: ScoreRow, baseline: Influence) -> YesNo:
    """Return whether `row` is below `baseline` by more than `LEAST_GAIN` of that."""
    influences = () if row.entry is None else influences_of([row.entry])
    if not influences or results.design is None or row.entry is None:
        return "cannot be told"
    if math.isnan(row.low) or baseline.values is None:
        return "cannot be told"
    share = 1.0 - LEAST_GAIN
    cut = replace(
        baseline, value=share * baseline.value, values=share * baseline.values
    )
    design = Designs(results.design).of(row.entry.index)
    gap = influence_difference(influences, cut, design=design, level=results.level)
    return _compare(gap, 0.0, above=False)


def _classes_accurate(results: Results, items: str) -> _Reply:
    accuracy, mcc = (results.row(name, subset=items) for name in ("accuracy", "mcc"))
    right = f"{_percent(accuracy)} are right"
    if math.isnan(mcc.value):
        return _Reply(
            "cannot be told", f"{right}; only one class occurs or is predicted"
        )
    answer = _compare(mcc, LEAST_MCC, above=True)
    return _better_than("guessing", answer, f"{right}, MCC {_digits(mcc.value)}")


def _better_than(baseline: str, answer: YesNo, because: str) -> _Reply:
    """Say what was shown of accuracy: how much of it is enough depends on the use."""
    words = {"yes": f"better than {baseline}", "no": f"hardly better than {baseline}"}
    return _Reply(answer, because, words.get(answer, ""))


def _values_accurate(results: Results, items: str) -> _Reply:
    error = _row(results, "mae", items)
    if error is None or error.entry is None or results.items is None:
        return _Reply("not asked", "there are intervals, but no point predictions")
    target = results.items.arrays["target"][error.entry.index]
    median = mean_influence(np.abs(target - np.median(target)))
    answer = _reduces(results, error, median)
    because = f"mean error {_number(error)} against {_digits(median.value)}"
    return _better_than("a constant", answer, because)


def _maps_accurate(results: Results, items: str) -> _Reply:
    row = results.row(_overlap_score(results), subset=items)
    answer = _compare(row, LEAST_DICE, above=True)
    return _Reply(answer, f"{row.label} {_beside_cut(row, LEAST_DICE)}")


def _maps_survive(results: Results, items: str) -> _Reply:
    score = _overlap_score(results)
    rule = _survives(score, results.row(score).label, ("stated_ace", "ACE"))
    return rule(results, items)


def _overlap_score(results: Results) -> str:
    """Return the Dice to judge by; pooled Dice is dominated by the background."""
    return (
        "macro_dice" if any(r.score == "macro_dice" for r in results.rows) else "dice"
    )


def _neighbours_accurate(results: Results, items: str) -> _Reply:
    hits = results.row("recall_at_1", subset=items)
    if hits.entry is None or results.items is None:
        return _Reply("cannot be told", "the targets are not known")
    target = results.items.arrays["target"][hits.entry.index]
    largest = float(np.unique(target, return_counts=True)[1].max() / len(target))
    answer = _compare(hits, largest, above=True)
    because = f"R@1 {_percent(hits)}, largest class {largest:.0%}"
    return _better_than("guessing", answer, because)


def _small_error(score: str, label: str) -> _Rule:
    """Return the rule whether a calibration error is within the margin."""

    def rule(results: Results, items: str) -> _Reply:
        row = _row(results, score, items)
        if row is None:
            return _Reply("not asked", f"there is no {label}")
        answer = _compare(row, MARGIN, above=False)
        side = {"yes": "within", "no": "above"}.get(answer, "against")
        return _Reply(answer, f"{label} {_number(row)}, {side} {MARGIN}")

    return rule


def _intervals_cover(results: Results, items: str) -> _Reply:
    row = _row(results, "coverage", items)
    if row is None or row.entry is None or row.entry.aim is None:
        return _Reply("not asked", "there are no intervals; --val makes some")
    aim = row.entry.aim
    enough = _compare(row, aim - MARGIN, above=True)
    answer = _all_of(enough, _compare(row, aim + MARGIN, above=False))
    kind = _interval_kind(row)
    return _Reply(
        answer, f"{kind}intervals cover {_percent(row)}; they aim at {aim:.0%}"
    )


def _interval_kind(row: ScoreRow) -> str:
    return "conformal " if row.settings.get("interval") == "conformal" else ""


def _finds_errors(settings: Mapping[str, str], risk: str) -> _Rule:
    """Return the rule whether keeping the certain items reduces the mean of `risk`."""

    def rule(results: Results, items: str) -> _Reply:
        row = _row(results, "aurc", items, **settings)
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
        random = f"{_digits(baseline.value)} in random order"
        answer = _reduces(results, row, baseline)
        return _Reply(answer, f"AURC {_number(row)} by {row.detail}, {random}")

    return rule


def _neighbour_errors_found(results: Results, items: str) -> _Reply:
    row = _row(results, "r_auroc", items)
    if row is None:
        return _Reply("not asked", NO_UNCERTAINTY)
    if math.isnan(row.value):
        return _Reply("cannot be told", row.why)
    answer = _compare(row, LEAST_R_AUROC, above=True)
    return _Reply(answer, f"R-AUROC {_number(row)} by {row.detail}; 0.50 is a coin")


def _survives(score: str, label: str, error: tuple[str, str] | None = None) -> _Rule:
    """Return the rule whether a score falls by no more than the margin.

    `error` is the name and label of an error that must not rise by more than it either.
    """

    def rule(results: Results, _items: str) -> _Reply:
        if not results.has_shift:
            return _Reply("not asked", NO_SHIFT)
        before, after = (results.row(score, subset=s) for s in SIDE_BY_SIDE)
        fall = difference_of_samples(before, after)
        answer = _compare(fall, MARGIN, above=False)
        change = f"{label} {before.value:.2f} → {after.value:.2f}"
        reply = _Reply(answer, f"{change} ({_fall(fall)})")
        return reply if error is None else _with_error(reply, results, *error)

    return rule


def _with_error(reply: _Reply, results: Results, score: str, label: str) -> _Reply:
    """Return `reply`, unless an error rises by more than the margin."""
    before, after = (_row(results, score, s) for s in SIDE_BY_SIDE)
    if before is None or after is None:
        return reply
    rise = difference_of_samples(after, before)
    answer = _all_of(reply.answer, _compare(rise, MARGIN, above=False))
    change = f"{label} {before.value:.2f} → {after.value:.2f}"
    return _Reply(answer, f"{reply.because}, {change}")


def _intervals_survive(results: Results, _items: str) -> _Reply:
    if not results.has_shift:
        return _Reply("not asked", NO_SHIFT)
    row = _row(results, "coverage", "shifted")
    before, after = (_row(results, "mae", subset) for subset in SIDE_BY_SIDE)
    replies: list[_Reply] = []
    if row is not None and row.entry is not None and row.entry.aim is not None:
        answer = _compare(row, row.entry.aim - MARGIN, above=True)
        coverage = f"{_interval_kind(row)}coverage {_percent(row)}"
        replies.append(_Reply(answer, f"{coverage}, aim {row.entry.aim:.0%}"))
    if before is not None and after is not None and before.value:
        ratio = _ratio(after, before)
        answer = _compare(ratio, 1.0 + LEAST_GAIN, above=False)
        replies.append(_Reply(answer, f"error {ratio.value:.2f} times as large"))
    if not replies:
        return _Reply("not asked", "there are neither intervals nor errors to compare")
    answer = _all_of(*(reply.answer for reply in replies))
    return _Reply(answer, "; ".join(reply.because for reply in replies))


def _ratio(a: ScoreRow, b: ScoreRow) -> Bounded:
    """Return `a` over `b`, of two samples; its interval is made on logarithms."""
    if not min(a.value, a.low, b.value, b.low) > 0.0:
        return Bounded(a.value / b.value, math.nan, math.nan)
    log_a, log_b = (
        Bounded(*map(math.log, (row.value, row.low, row.high))) for row in (a, b)
    )
    return Bounded(*map(math.exp, difference_of_samples(log_a, log_b)))


def _percent(row: ScoreRow) -> str:
    if math.isnan(row.value):
        return "undefined"
    if math.isnan(row.low):
        return f"{row.value:.0%}"
    return f"{row.value:.0%} ({100 * row.low:.0f}{DASH}{row.high:.0%})"


def _number(row: ScoreRow) -> str:
    form = _format(row.value)
    if math.isnan(row.low):
        return f"{_digits(row.value)} (no interval)"
    return f"{row.value:{form}} ({row.low:{form}}{DASH}{row.high:{form}})"


def _beside_cut(row: ScoreRow, cut: float) -> str:
    """Return a number and a cut, with decimals that tell them apart; at most four."""
    ends = [value for value in (row.value, row.low, row.high) if math.isfinite(value)]
    decimals = (
        n for n in (2, 3, 4) if all(f"{e:.{n}f}" != f"{cut:.{n}f}" for e in ends)
    )
    form = f".{next(decimals, 4)}f"
    interval = f"{row.low:{form}}{DASH}{row.high:{form}}"
    if math.isnan(row.low):
        interval = "no interval"
    return f"{row.value:{form}} ({interval}) against {cut:{form}}"


def _digits(value: float) -> str:
    """Return two significant digits, and no more decimals than that takes."""
    return f"{value:{_format(value)}}" if math.isfinite(value) else "undefined"


def _format(value: float) -> str:
    """Return how a number, and the ends of its interval, are written."""
    if not value or not math.isfinite(value):
        return ".2f"
    decimals = 1 - math.floor(math.log10(abs(value)))
    return f".{max(decimals, 0)}f" if -6 < decimals < 6 else ".2g"


def _fall(fall: Bounded) -> str:
    if math.isnan(fall.low):
        return "no interval"
    return f"{-fall.high:+.2f} to {-fall.low:+.2f}"


_RULES: Mapping[str, Mapping[Question, _Rule]] = {
    "classification": {
        "accurate": _classes_accurate,
        "calibrated": _small_error("ece", "ECE"),
        "finds_errors": _finds_errors({}, "accuracy"),
        "survives_shift": _survives("accuracy", "accuracy", ("ece", "ECE")),
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
        "finds_errors": _finds_errors({"aggregation": "patch"}, "dice"),
        "survives_shift": _maps_survive,
    },
    "embedding": {
        "accurate": _neighbours_accurate,
        "finds_errors": _neighbour_errors_found,
        "survives_shift": _survives("recall_at_1", "R@1"),
    },
}
