"""Rules of the verdict on a classification."""

import math
from collections.abc import Mapping

from qualms.evaluate import Results
from qualms.evaluate.rows import Question, ScoreRow
from qualms.evaluate.subsets import SIDE_BY_SIDE
from qualms.evaluate.verdict import (
    MARGIN,
    Reply,
    Rule,
    against,
    all_of,
    beside_cut,
    better_than,
    finds_errors,
    interval_words,
    percent_words,
    row_or_none,
    small_error,
    survives,
    two_digits,
    with_error,
)

FACTOR = 1.5
"""Largest acceptable factor by which odds are wrong, and slopes of log-odds differ."""
LINE = (
    ("calibration_intercept", 0.0, -math.log(FACTOR), math.log(FACTOR)),
    ("calibration_slope", 1.0, 1.0 / FACTOR, FACTOR),
)
"""Scores of the calibration line, their ideal, and the cuts around it."""
LEAST_MCC = 0.1
"""Least correlation of predictions that are better than guesses."""


def _classes_accurate(results: Results, items: str) -> Reply:
    accuracy, mcc = (results.row(name, subset=items) for name in ("accuracy", "mcc"))
    right = f"{percent_words(accuracy)} are right"
    if math.isnan(mcc.value):
        return Reply(
            "cannot be told", f"{right}; only one class occurs or is predicted"
        )
    answer = against(mcc, LEAST_MCC, above=True)
    decided = f"{two_digits(mcc.value)}; cut {LEAST_MCC:g}"
    if answer == "cannot be told":
        decided = beside_cut(mcc, LEAST_MCC)
    because = f"{right}, MCC {decided}"
    return better_than("guessing", answer, because, worse=mcc.high < 0.0)


def probabilities_calibrated(results: Results, items: str) -> Reply:
    """Answer by the errors of class 1 of two, or of all classes and the predicted one.

    The sum over classes of their errors counts each error twice, as for two classes.
    """
    by_class = results.row("classwise_ece", subset=items)
    classes = _classes(results)
    if classes == 2:
        return _binary_calibrated(results, items, by_class)
    top = small_error("ece", "ECE")(results, items)
    if classes is None or math.isnan(by_class.low):
        words = "its predicted class is" if top.answer == "yes" else ""
        why = by_class.no_interval or "class-wise errors are not known"
        return top._replace(because=f"{top.because}; {why}", words=words)
    cut = 2.0 * MARGIN / classes
    answer = all_of(top.answer, against(by_class, cut, above=False))
    return Reply(answer, f"{top.because}; class-wise ECE {beside_cut(by_class, cut)}")


def _classes(results: Results) -> int | None:
    return None if results.items is None else results.items.classes


def _binary_calibrated(results: Results, items: str, error: ScoreRow) -> Reply:
    """Answer by the error of P(y=1) and the line of its calibration.

    Never naming a rare class has an error of its share, which is no calibration.
    """
    if error.entry is None:
        return Reply("cannot be told", "the probabilities are not known")
    prob = error.entry.inputs()["prob"]
    prevalence = float(error.entry.inputs()["positive"].mean())
    cut = min(MARGIN, min(prevalence, 1.0 - prevalence) / 2.0) or MARGIN
    answer = against(error, cut, above=False)
    because = f"{error.label} {beside_cut(error, cut)}"
    for score, ideal, low, high in LINE:
        row = results.row(score, subset=items)
        text = f"{score.partition('_')[2]} {_line_number(row)}, ideal {ideal:g}"
        if row.low > high or row.high < low:
            answer = "no"
            text += f", cut {high if row.low > high else low:.2g}"
        because += f"; {text}"
    means = f"mean P(y=1) {two_digits(float(prob.mean()))}, prevalence"
    return Reply(answer, f"{because}; {means} {two_digits(prevalence)}")


def _line_number(row: ScoreRow) -> str:
    return "undefined" if math.isnan(row.value) else interval_words(row, ".2f")


def _classes_survive(results: Results, items: str) -> Reply:
    """Answer by the accuracy and by the errors that decide whether it is calibrated.

    The class-wise error of more than two classes is named only where it decides.
    """
    classes = _classes(results)
    error = ("classwise_ece", "ECE of P(y=1)") if classes == 2 else ("ece", "ECE")
    reply = survives("accuracy", "accuracy", error)(results, items)
    rows = [row_or_none(results, "classwise_ece", subset) for subset in SIDE_BY_SIDE]
    if classes in (None, 2) or any(row is None or math.isnan(row.low) for row in rows):
        return reply
    cut = 2.0 * MARGIN / classes
    joined = with_error(reply, results, "classwise_ece", "class-wise ECE", cut)
    joined = joined._replace(because=f"{joined.because}; cut {two_digits(cut)}")
    return reply if joined.answer == reply.answer else joined


RULES: Mapping[Question, Rule] = {
    "accurate": _classes_accurate,
    "calibrated": probabilities_calibrated,
    "finds_errors": finds_errors({}, "accuracy"),
    "survives_shift": _classes_survive,
}
