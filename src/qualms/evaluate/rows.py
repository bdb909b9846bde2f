"""Parts of the results of a file: rows of scores, and answers in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from qualms.evaluate.entry import Entry
from qualms.evaluate.operating_points import YesNo
from qualms.labels import values_text
from qualms.scores import Better

RowSettings = tuple[tuple[str, Any], ...]
RowKey = tuple[str, str, RowSettings]
"""Score, subset and settings."""
Question = Literal["accurate", "calibrated", "finds_errors", "survives_shift"]
QUESTIONS: Mapping[Question, str] = {
    "accurate": "Accurate?",
    "calibrated": "Calibrated?",
    "finds_errors": "Finds errors?",
    "survives_shift": "Survives shift?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One score of a file on one subset, with its interval."""

    score: str
    """The function in `qualms.scores` that gave the value."""
    label: str
    subset: str
    """Set of items: all, in_domain, shifted, balanced, or group=<name>."""
    settings: Mapping[str, Any]
    """Uncertainty, interval rule or recalibration; {} if there is only one."""
    better: Better
    value: float
    low: float
    high: float
    n: int
    why: str = ""
    """Reason why the value is undefined, or a remark on it."""
    method: str = ""
    """Description of the construction of the interval."""
    no_interval: str = ""
    """Reason for having no interval, if the value is defined."""
    entry: Entry | None = field(default=None, repr=False, compare=False)
    """The entry, for comparisons with other files."""

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    @property
    def detail(self) -> str:
        """Values of the settings, as tables show them."""
        return values_text(self.settings)

    @property
    def key(self) -> RowKey:
        """Score, subset and settings: rows of files with equal keys are compared."""
        return (self.score, self.subset, tuple(self.settings.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question about a file, and the numbers behind it."""

    question: Question
    answer: YesNo
    because: str
    """The numbers, in a clause."""
    words: str = ""
    """Words that replace yes or no where these would claim too much."""
