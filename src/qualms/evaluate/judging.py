"""The record `TaskJudging`: what a task states for judging its predictions.

`tasks/<name>/judging.py` holds one as `JUDGING`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qualms.evaluate.entry import Judgement, ScoreOptions
from qualms.evaluate.rows import Question, ScoreRow
from qualms.predictions import Predictions
from qualms.shelf import task_part

if TYPE_CHECKING:
    from qualms.evaluate._results import Results
    from qualms.evaluate.main_scores import MainScore
    from qualms.evaluate.verdict import Rule


class ShownScores(NamedTuple):
    """The scores of a file that are shown first."""

    main: Sequence["MainScore"]
    grouped: Sequence[str]
    """Scores shown for every group."""


def _all_asked(_: "Results") -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskJudging:
    """Scores, main scores and rules of the verdict of a task."""

    judge: Callable[[Predictions, Predictions | None, ScoreOptions], Judgement]
    """From (predictions, validation predictions or None, options) to all scores."""
    rules: Mapping[Question, "Rule"]
    """The questions of the verdict, and how they are answered."""
    shown: Callable[[Sequence[ScoreRow]], ShownScores]
    """From the rows of a file to the scores that are shown first."""
    baseline: str = "guessing"
    """What accurate predictions are better than, in words; '' for nothing."""
    unasked: Callable[["Results"], str] = _all_asked
    """Why no question is asked about a file; '' where they are."""


def judging_of(task: str) -> TaskJudging:
    """Return what a task states for judging."""
    judging: TaskJudging = task_part(task, "judging")
    return judging
