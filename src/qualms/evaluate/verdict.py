"""What the scores of a file say in words: four questions, answered by a fixed rule.

Is it accurate, is it calibrated, does its uncertainty find errors, does it survive the
shift? Every answer compares an interval with a cut: yes where all of the interval lies
on the good side, no where all of it lies on the other, else it cannot be told
(`docs/verdict.md`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from qualms.evaluate.estimates import Designs, influences_of
from qualms.evaluate.results import Results, ScoreRow
from qualms.inference import (
    Bounded,
    Influence,
    WithInterval,
    difference_of_samples,
    influence_difference,
    mean_influence,
)
from qualms.wording import plural

Question = Literal["accurate", "calibrated", "finds_errors", "survives_shift"]
Said = Literal["yes", "no", "cannot be told", "not asked"]
QUESTIONS: Mapping[Question, str] = {
    "accurate": "Accurate?",
    "calibrated": "Calibrated?",
    "finds_errors": "Finds errors?",
    "survives_shift": "Survives shift?",
}

MARGIN = 0.05
"""Probabilities, coverages and shares this close to each other are good enough."""
LEAST_MCC = 0.1
"""Predictions with a lower correlation are hardly better than guesses."""
LEAST_DICE = 2 / 3
"""Two regions with this Dice share half of their union."""
LEAST_GAIN = 0.1
"""A smaller share of the error, saved by an ordering or a prediction, is hardly any."""
LEAST_R_AUROC = 0.55
DASH = "\N{EN DASH}"
FEWEST = 10
"""Intervals of fewer items decide nothing."""
_ACE = ("stated_ace", "ACE")
NO_UNCERTAINTY = "the file holds no uncertainty"
NO_SHIFT = "no item is marked as shifted, or all are"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question about a file, what the rule says, and the numbers behind it."""

    question: Question
    said: Said
    because: str
    words: str = ""
    """`said` in the words of the question, where yes and no would say too much."""


class _Ruling(NamedTuple):
    """An answer before it is known to which question."""

    said: Said
    because: str
    words: str = ""


_Rule = Callable[[Results, str], _Ruling]


def verdict_of(results: Results) -> tuple[Answer, ...]:
    """The four answers; the first three are about in-domain items where some are so."""
    sizes: dict[str, int] = {}
    for row in results.rows:
        sizes[row.subset] = max(row.n, sizes.get(row.subset, 0))
    items = "in_domain" if {"in_domain", "shifted"} <= sizes.keys() else "all"
    answers = []
    for question, rule in _RULES[results.task].items():
        found = rule(results, items)
        asked = ("shifted", items) if question == "survives_shift" else (items,)
        fewest = min(sizes.get(subset, results.n) for subset in asked)
        if fewest < FEWEST and found.said in ("yes", "no"):
            only = f"only {fewest} {plural(fewest, 'item')}"
            found = _Ruling("cannot be told", f"{found.because}; {only}")
        answers.append(Answer(question=question, **found._asdict()))
    return tuple(answers)


def _row(results: Results, score: str, items: str, **settings: str) -> ScoreRow | None:
    """The first row that fits, as `Results.row` gives it; None if there is none."""
    try:
        return results.row(score, subset=items, **settings)
    except LookupError:
        return None


def _beside(found: WithInterval, cut: float, *, above: bool) -> Said:
    """Whether the number is above the cut, or below it, by its whole interval."""
    if math.isnan(found.low) or math.isnan(found.high):
        return "cannot be told"
    if found.low <= cut <= found.high:
        return "cannot be told"
    return "yes" if (found.low > cut) == above else "no"


def _all_of(*said: Said) -> Said:
    """No if one is no, yes if all are."""
    if "no" in said:
        return "no"
    return "yes" if set(said) == {"yes"} else "cannot be told"


def _saved(results: Results, row: ScoreRow, without: Influence) -> Said:
    """Whether `row` is lower than `without` by more than `LEAST_GAIN` of that."""
    own = () if row.entry is None else influences_of([row.entry])
    if not own or results.design is None or row.entry is None or math.isnan(row.low):
        return "cannot be told"
    if without.values is None:
        return "cannot be told"
    share = 1.0 - LEAST_GAIN
    cut = replace(without, value=share * without.value, values=share * without.values)
    design = Designs(results.design).of(row.entry.index)
    gap = influence_difference(own, cut, design=design, level=results.level)
    return _beside(gap, 0.0, above=False)


def _classes_found(results: Results, items: str) -> _Ruling:
    right, mcc = (results.row(name, subset=items) for name in ("accuracy", "mcc"))
    what = f"{_shares(right)} are right"
    if math.isnan(mcc.value):
        return _Ruling(
            "cannot be told", f"{what}; one class alone is seen or predicted"
        )
    said = _beside(mcc, LEAST_MCC, above=True)
    return _than_guessing(said, f"{what}, MCC {_digits(mcc.value)}")


def _than_guessing(said: Said, because: str, guess: str = "guessing") -> _Ruling:
    """What can be said of accuracy: how much of it is enough depends on the use."""
    words = {"yes": f"better than {guess}", "no": f"hardly better than {guess}"}
    return _Ruling(said, because, words.get(said, ""))


def _numbers_found(results: Results, items: str) -> _Ruling:
    error = _row(results, "mae", items)
    if error is None or error.entry is None or results.items is None:
        return _Ruling("not asked", "there are intervals, but no point predictions")
    target = results.items.arrays["target"][error.entry.index]
    guess = mean_influence(np.abs(target - np.median(target)))
    said = _saved(results, error, guess)
    what = f"mean error {_plain(error)} against {_digits(guess.value)}"
    return _than_guessing(said, what, "a constant")


def _regions_found(results: Results, items: str) -> _Ruling:
    score = _overlap_score(results)
    found = results.row(score, subset=items)
    said = _beside(found, LEAST_DICE, above=True)
    return _Ruling(said, f"{found.label} {_beside_cut(found, LEAST_DICE)}")


def _regions_hold(results: Results, items: str) -> _Ruling:
    score = _overlap_score(results)
    return _holds(score, results.row(score).label, _ACE)(results, items)


def _overlap_score(results: Results) -> str:
    """Pooled over many classes, Dice is the share of right pixels: a background's."""
    return "dice" if _row(results, "macro_dice", "all") is None else "macro_dice"


def _neighbours_found(results: Results, items: str) -> _Ruling:
    hits = results.row("recall_at_1", subset=items)
    if hits.entry is None or results.items is None:
        return _Ruling("cannot be told", "the targets are not known")
    target = results.items.arrays["target"][hits.entry.index]
    most = float(np.unique(target, return_counts=True)[1].max() / len(target))
    said = _beside(hits, most, above=True)
    what = f"R@1 {_shares(hits)}, largest class {most:.0%}"
    return _than_guessing(said, what)


def _small_error(score: str, label: str) -> _Rule:
    """Whether a calibration error is within the margin."""

    def rule(results: Results, items: str) -> _Ruling:
        row = _row(results, score, items)
        if row is None:
            return _Ruling("not asked", f"there is no {label}")
        said = _beside(row, MARGIN, above=False)
        side = {"yes": "within", "no": "above"}.get(said, "against")
        return _Ruling(said, f"{label} {_plain(row)}, {side} {MARGIN}")

    return rule


def _covers(results: Results, items: str) -> _Ruling:
    row = _row(results, "coverage", items)
    if row is None or row.entry is None or row.entry.aim is None:
        return _Ruling("not asked", "there are no intervals; --val makes some")
    aim = row.entry.aim
    enough = _beside(row, aim - MARGIN, above=True)
    said = _all_of(enough, _beside(row, aim + MARGIN, above=False))
    made = _made(row)
    return _Ruling(said, f"{made}intervals cover {_shares(row)}; they aim at {aim:.0%}")


def _made(row: ScoreRow) -> str:
    return "conformal " if row.settings.get("interval") == "conformal" else ""


def _errors_last(wanted: Mapping[str, str], risk: str) -> _Rule:
    """Whether keeping what is certain saves more of `risk` than keeping any items."""

    def rule(results: Results, items: str) -> _Ruling:
        row = _row(results, "aurc", items, **wanted)
        mean = _row(results, risk, items)
        known = (
            () if mean is None or mean.entry is None else influences_of([mean.entry])
        )
        if row is None or mean is None or not known:
            return _Ruling("not asked", NO_UNCERTAINTY)
        without = known[0].complement() if mean.better == "higher" else known[0]
        said = _saved(results, row, without)
        if math.isnan(row.value) or not without.value:
            return _Ruling("cannot be told", row.why or "there are no errors to find")
        if without.values is not None and not np.ptp(without.values):
            return _Ruling("cannot be told", "all items are equally wrong")
        against = f"{_digits(without.value)} in random order"
        return _Ruling(said, f"AURC {_plain(row)} by {row.detail}, {against}")

    return rule


def _wrong_neighbours(results: Results, items: str) -> _Ruling:
    row = _row(results, "r_auroc", items)
    if row is None:
        return _Ruling("not asked", NO_UNCERTAINTY)
    if math.isnan(row.value):
        return _Ruling("cannot be told", row.why)
    said = _beside(row, LEAST_R_AUROC, above=True)
    return _Ruling(said, f"R-AUROC {_plain(row)} by {row.detail}; 0.50 is a coin")


def _holds(score: str, label: str, worse: tuple[str, str] | None = None) -> _Rule:
    """Whether a score falls by no more than the margin, and an error rises so.

    `worse` is that error, and what it is called.
    """

    def rule(results: Results, items: str) -> _Ruling:
        if items == "all":
            return _Ruling("not asked", NO_SHIFT)
        before, after = (results.row(score, subset=s) for s in (items, "shifted"))
        fall = difference_of_samples(before, after)
        said = _beside(fall, MARGIN, above=False)
        moved = f"{label} {before.value:.2f} → {after.value:.2f}"
        found = _Ruling(said, f"{moved} ({_change(fall)})")
        return found if worse is None else _also(found, results, *worse)

    return rule


def _also(found: _Ruling, results: Results, score: str, label: str) -> _Ruling:
    """`found`, and whether an error rises by no more than the margin."""
    before, after = (_row(results, score, s) for s in ("in_domain", "shifted"))
    if before is None or after is None:
        return found
    rise = difference_of_samples(after, before)
    said = _all_of(found.said, _beside(rise, MARGIN, above=False))
    moved = f"{label} {before.value:.2f} → {after.value:.2f}"
    return _Ruling(said, f"{found.because}, {moved}")


def _still_covers(results: Results, items: str) -> _Ruling:
    if items == "all":
        return _Ruling("not asked", NO_SHIFT)
    row, errors = (
        _row(results, "coverage", "shifted"),
        [_row(results, "mae", subset) for subset in (items, "shifted")],
    )
    told: list[_Ruling] = []
    if row is not None and row.entry is not None and row.entry.aim is not None:
        said = _beside(row, row.entry.aim - MARGIN, above=True)
        what = f"{_made(row)}coverage {_shares(row)}, aim {row.entry.aim:.0%}"
        told.append(_Ruling(said, what))
    if errors[0] is not None and errors[1] is not None and errors[0].value:
        grown = _ratio(errors[1], errors[0])
        said = _beside(grown, 1.0 + LEAST_GAIN, above=False)
        told.append(_Ruling(said, f"error {grown.value:.2f} times as large"))
    if not told:
        return _Ruling("not asked", "there are neither intervals nor errors to compare")
    said = _all_of(*(one.said for one in told))
    return _Ruling(said, "; ".join(one.because for one in told))


def _ratio(a: ScoreRow, b: ScoreRow) -> Bounded:
    """`a` over `b`, two samples, on the scale of logarithms."""
    if not min(a.value, a.low, b.value, b.low) > 0.0:
        return Bounded(a.value / b.value, math.nan, math.nan)
    one, other = (
        Bounded(*map(math.log, (row.value, row.low, row.high))) for row in (a, b)
    )
    return Bounded(*map(math.exp, difference_of_samples(one, other)))


def _shares(row: ScoreRow) -> str:
    if math.isnan(row.value):
        return "undefined"
    if math.isnan(row.low):
        return f"{row.value:.0%}"
    return f"{row.value:.0%} ({100 * row.low:.0f}{DASH}{row.high:.0%})"


def _plain(row: ScoreRow) -> str:
    form = _form(row.value)
    if math.isnan(row.low):
        return f"{_digits(row.value)} (no interval)"
    return f"{row.value:{form}} ({row.low:{form}}{DASH}{row.high:{form}})"


def _beside_cut(row: ScoreRow, cut: float) -> str:
    """A number and a cut, with as many decimals as tell them apart; at most four."""
    ends = [value for value in (row.value, row.low, row.high) if math.isfinite(value)]
    places = (n for n in (2, 3, 4) if all(f"{e:.{n}f}" != f"{cut:.{n}f}" for e in ends))
    form = f".{next(places, 4)}f"
    between = f"{row.low:{form}}{DASH}{row.high:{form}}"
    around = "no interval" if math.isnan(row.low) else between
    return f"{row.value:{form}} ({around}) against {cut:{form}}"


def _digits(value: float) -> str:
    """Two significant digits, and no more decimals than that takes."""
    return f"{value:{_form(value)}}" if math.isfinite(value) else "undefined"


def _form(value: float) -> str:
    """How a number, and the ends of its interval, are written."""
    if not value or not math.isfinite(value):
        return ".2f"
    places = 1 - math.floor(math.log10(abs(value)))
    return f".{max(places, 0)}f" if -6 < places < 6 else ".2g"


def _change(fall: Bounded) -> str:
    if math.isnan(fall.low):
        return "no interval"
    return f"{-fall.high:+.2f} to {-fall.low:+.2f}"


_RULES: Mapping[str, Mapping[Question, _Rule]] = {
    "classification": {
        "accurate": _classes_found,
        "calibrated": _small_error("ece", "ECE"),
        "finds_errors": _errors_last({}, "accuracy"),
        "survives_shift": _holds("accuracy", "accuracy", ("ece", "ECE")),
    },
    "regression": {
        "accurate": _numbers_found,
        "calibrated": _covers,
        "finds_errors": _errors_last({}, "mae"),
        "survives_shift": _still_covers,
    },
    "segmentation": {
        "accurate": _regions_found,
        "calibrated": _small_error("stated_ace", "ACE of its probabilities"),
        "finds_errors": _errors_last({"aggregation": "patch"}, "dice"),
        "survives_shift": _regions_hold,
    },
    "embedding": {
        "accurate": _neighbours_found,
        "finds_errors": _wrong_neighbours,
        "survives_shift": _holds("recall_at_1", "R@1"),
    },
}
