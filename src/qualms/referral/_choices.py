"""Answers of a planner page: the outcomes of every budget and every target.

On the page, readers drag a budget or a target. Python computes all answers beforehand
by the rules of `refer`, and the page looks them up. Budgets and targets are a fixed
grid, so that the table stays small for any number of items.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from qualms import __version__
from qualms.arrays import Array, Index
from qualms.evaluate.sources import Source
from qualms.referral._answers import (
    BUDGETS,
    CONFIDENCES,
    TARGETS,
    BudgetAnswers,
    ScoreAnswers,
    answer_budgets,
    answer_targets,
    answered_scores,
)
from qualms.referral._items import ReferralItems, UncertaintySource
from qualms.referral._kept_shares import AscendingItems, Estimates
from qualms.referral._outcome import PerThousand, estimate, score_label
from qualms.referral._request import CONFIDENCE, SHARE_SCORES, ReferralOptions
from qualms.referral._sets import read_files, split_files
from qualms.referral._threshold import rounded_down
from qualms.referral._words import file_notes, file_warnings
from qualms.scores import Better, Estimate

Asked = tuple[str, float | None]
"""The request ("budget" or a score), and the confidence."""
Verdicts = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasureChoices:
    """One score of the kept items at every threshold."""

    score: str
    label: str
    better: Better
    before: Estimate
    """Score of all items, without referral."""
    kept: Estimates
    """Scores of the kept items, (K,) each; nan where undefined."""
    with_expert: Array
    """(K,) scores of all items, with referred items counted as right."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetChoices:
    """Outcomes of every threshold on one set of items."""

    name: str
    """Name of the file."""
    subset: str
    """Part of the file: '' (all), 'in_domain' or 'shifted'."""
    n: int
    clusters: int | None
    kept: Index
    """(K,) numbers of kept items."""
    referred: Estimates
    """Shares referred, (K,) each."""
    measures: tuple[MeasureChoices, ...]
    counted: Mapping[str, Index]
    """(K,) numbers of kept items that count in a score: all, positives, negatives."""
    wrong: Mapping[str, Index]
    """(K,) numbers of those that are decided wrongly."""
    verdicts: Mapping[Asked, Verdicts] = field(default_factory=dict)
    """For each budget or target, verdicts on the shown thresholds: 1 met, -1 missed, 0
    undecided. {} for the set on which thresholds are chosen."""

    @property
    def label(self) -> str:
        """Name of the set in a sentence."""
        parts = (self.name, self.subset.replace("_", "-"))
        return ", ".join(filter(None, parts))

    def measure(self, score: str) -> MeasureChoices:
        """Return the measure called `score`."""
        for measure in self.measures:
            if measure.score == score:
                return measure
        names = ", ".join(measure.score for measure in self.measures)
        raise LookupError(f"no {score!r} in {self.name}; it has {names}")

    def per_thousand(self, place: int) -> PerThousand:
        """Return the numbers of 1,000 such items at the threshold at `place`."""
        each, kept_count = 1000.0 / self.n, int(self.kept[place])
        wrong = {
            name: each * float(counts[place]) for name, counts in self.wrong.items()
        }
        return PerThousand(
            referred=each * (self.n - kept_count),
            kept=each * kept_count,
            wrong=wrong.get("accuracy", math.nan),
            missed=wrong.get("sensitivity", math.nan),
            false_alarms=wrong.get("specificity", math.nan),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanChoices:
    """Every answer of `refer` to a grid of budgets and targets."""

    task: str
    classes: int | None
    uncertainty: UncertaintySource
    budgets: Array
    """(B,) largest shares that may be referred."""
    targets: Array
    """(T,) least scores of the kept items."""
    confidences: tuple[float, ...]
    budget: BudgetAnswers
    scores: Mapping[str, ScoreAnswers]
    """By score: accuracy, and with two classes sensitivity and specificity."""
    thresholds: Array
    """(K,) all thresholds that answer a request, ascending; inf refers none."""
    rounded: Array
    """(K,) the thresholds as `refer` prints them."""
    sets: tuple[SetChoices, ...]
    """Outcomes on the set on which thresholds are chosen, then on the other sets."""
    items: int
    """Independent items that promises are based on: one per cluster."""
    level: float
    """Level of the intervals."""
    version: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def threshold(
        self, asked: str, value: float, confidence: float | None = CONFIDENCE
    ) -> float:
        """Return the threshold that answers a request; nan where there is none.

        Args:
            asked: "budget", "accuracy", "sensitivity" or "specificity".
            value: One of `budgets`, or of `targets`.
            confidence: One of `confidences`; None for the items themselves.
        """
        grid = self.budgets if asked == "budget" else self.targets
        row = int(np.argmin(np.abs(grid - value)))
        if abs(float(grid[row]) - value) > 1e-12:
            raise LookupError(
                f"{asked} {value:g} is not one of those answered; ask qualms.refer"
            )
        answers = self.budget if asked == "budget" else self.scores[asked]
        if confidence is None:
            return float(answers.observed[row])
        if confidence not in answers.promised:
            known = ", ".join(f"{each:g}" for each in self.confidences)
            raise LookupError(f"confidence {confidence:g} is not one of {known}")
        return float(answers.promised[confidence][row])

    def places(self, thresholds: Array) -> Index:
        """Return the indices of `thresholds` in `self.thresholds`; -1 for nan."""
        nearest = np.searchsorted(self.thresholds, thresholds)
        places: Index = np.where(np.isnan(thresholds), -1, nearest)
        return places


def plan_choices(
    source: Source,
    *,
    on: Sequence[Source] = (),
    options: ReferralOptions | None = None,
) -> PlanChoices:
    """Return the answers of `refer` to every budget and target of a grid.

    Args:
        source: Labelled predictions to choose thresholds on, as for `refer`.
        on: Other labelled predictions to apply the thresholds to.
        options: Uncertainty, level of the intervals, seed. Targets and groups in it are
            ignored: every score is answered, and no group.

    >>> choices = plan_choices({"target": [0, 0, 1, 1], "prob": [0.1, 0.2, 0.4, 0.9]})
    >>> round(choices.threshold("budget", 0.25, None), 4)
    0.673
    """
    options = options or ReferralOptions()
    files = read_files(source, on, options)
    names, uncertainty, items, others = split_files(files, options)
    sample = items.independent(options.seed)
    budget = answer_budgets(items, sample)
    scores = {
        name: answer_targets(name, items, sample) for name in answered_scores(items)
    }
    thresholds = _all_thresholds(budget, scores)
    tables = [_SetTable(each, thresholds, options.level) for each in (items, *others)]
    return PlanChoices(
        task=files[0].task,
        classes=files[0].classes,
        uncertainty=uncertainty,
        budgets=BUDGETS,
        targets=TARGETS,
        confidences=CONFIDENCES,
        budget=budget,
        scores=scores,
        thresholds=thresholds,
        rounded=tables[0].rounded(),
        sets=(
            tables[0].columns(),
            *(
                replace(table.columns(), verdicts=table.verdicts(budget, scores))
                for table in tables[1:]
            ),
        ),
        items=sample.n,
        level=options.level,
        version=__version__,
        warnings=tuple(file_warnings(files, names)),
        notes=tuple(file_notes(items, others, files, options)),
    )


def _all_thresholds(budget: BudgetAnswers, scores: Mapping[str, ScoreAnswers]) -> Array:
    """Return all thresholds (K,) that answer a request, ascending."""
    answers = [budget.observed, *budget.promised.values()]
    for score in scores.values():
        most = [threshold for threshold, _ in score.most.values()]
        answers += [score.observed, *score.promised.values(), np.array(most)]
    joined: Array = np.unique(np.concatenate(answers))
    return joined[~np.isnan(joined)]


class _SetTable:
    """Computes the outcomes of thresholds on one set."""

    def __init__(self, items: ReferralItems, thresholds: Array, level: float) -> None:
        self._items, self._thresholds, self._level = items, thresholds, level
        self._ascending = AscendingItems(items)
        self._kept = self._ascending.kept(thresholds)
        self._referred = self._ascending.share_referred()
        self._right = {
            name: self._ascending.share_right(items.correct, items.counted(name))
            for name in _shown_scores(items)
        }

    def rounded(self) -> Array:
        """Return the thresholds, rounded so that they refer the same items."""
        largest = self._ascending.largest_kept(self._kept)
        pairs = zip(self._thresholds.tolist(), largest.tolist(), strict=True)
        return np.array([rounded_down(*pair) for pair in pairs])

    def columns(self) -> SetChoices:
        """Return the outcomes of each threshold, without verdicts."""
        items, kept = self._items, self._kept
        names = self._right if items.is_decided else ["mae"]
        return SetChoices(
            name=items.name,
            subset=items.subset,
            n=items.n,
            clusters=items.clusters,
            kept=kept,
            referred=self._referred.at(kept, self._level),
            measures=tuple(self._measure(name) for name in names),
            counted={name: share.counted[kept] for name, share in self._right.items()},
            wrong={name: share.wrong[kept] for name, share in self._right.items()},
        )

    def verdicts(
        self, budget: BudgetAnswers, scores: Mapping[str, ScoreAnswers]
    ) -> dict[Asked, Verdicts]:
        """Return verdicts whether this set meets each request, by one-sided bounds."""
        verdicts: dict[Asked, Verdicts] = {}
        for confidence, shown in ((None, budget.observed), *budget.promised.items()):
            share = self._referred.at(*self._at(shown, confidence or CONFIDENCE))
            verdicts["budget", confidence] = _verdicts(
                -share.high, -share.low, -BUDGETS
            )
        for name, answers in scores.items():
            for confidence in answers.promised:
                shown = answers.shown(confidence)
                share = self._right[name].at(*self._at(shown, confidence))
                verdicts[name, confidence] = _verdicts(share.low, share.high, TARGETS)
        return verdicts

    def _at(self, thresholds: Array, confidence: float) -> tuple[Index, float]:
        """Return the numbers of kept items, and the level of a two-sided interval."""
        return self._ascending.kept(thresholds), 2.0 * confidence - 1.0

    def _measure(self, name: str) -> MeasureChoices:
        label, better = score_label(self._items, name)
        everything = np.array([self._items.n])
        if name == "mae":
            before, after = self._errors(everything), self._errors(self._kept)
        else:
            share = self._right[name]
            before = share.at(everything, self._level)
            after = share.at(self._kept, self._level)
        return MeasureChoices(
            score=name,
            label=label,
            better=better,
            before=_first(before),
            kept=after,
            with_expert=self._with_expert(name),
        )

    def _errors(self, counts: Index) -> Estimates:
        """Return the mean absolute error of the first `kept` items."""
        rows = []
        for count in counts.tolist():
            chosen = np.zeros(self._items.n, np.bool_)
            chosen[self._ascending.order[:count]] = True
            error = estimate(self._items, "mae", chosen, self._level)
            rows.append((error.value, error.low, error.high))
        return Estimates(*np.array(rows).T)

    def _with_expert(self, name: str) -> Array:
        if name == "mae":
            losses = self._items.loss[self._ascending.order]
            total = np.concatenate([[0.0], np.cumsum(losses)])
            return total[self._kept] / self._items.n
        share = self._right[name]
        counted = int(share.counted[-1])
        if not counted:
            return np.full(len(self._kept), np.nan)
        return 1.0 - share.wrong[self._kept] / counted


def _shown_scores(items: ReferralItems) -> tuple[str, ...]:
    """Return the scores of a set that are shares, including undefined ones."""
    if not items.is_decided:
        return ()
    return tuple(SHARE_SCORES) if items.classes == 2 else ("accuracy",)


def _first(estimates: Estimates) -> Estimate:
    value, low, high = (float(each[0]) for each in estimates)
    return Estimate(value=value, low=low, high=high, undefined=float(math.isnan(value)))


def _verdicts(low: Array, high: Array, least: Array) -> Verdicts:
    met, missed = low >= least, high < least
    return met.astype(np.int8) - missed.astype(np.int8)
