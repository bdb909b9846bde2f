"""What is asked of a plan, the thresholds that answer it, and what they promise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a threshold: a budget, or the least the kept items must reach.

    Either `budget`, the largest share of items that may be referred, or one or more of
    `accuracy`, `sensitivity` and `specificity` of the items that are kept.
    """

    budget: float | None = None
    accuracy: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    confidence: float | None = None
    """Confidence of the promise for new items; None: for the given items only."""

    @property
    def targets(self) -> Mapping[str, float]:
        """What the kept items must reach, by score; empty where a budget is given."""
        stated = {
            "accuracy": self.accuracy,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
        }
        return {name: level for name, level in stated.items() if level is not None}

    @property
    def sure(self) -> float:
        """The confidence asked for, else the usual one."""
        return CONFIDENCE if self.confidence is None else self.confidence

    def __post_init__(self) -> None:
        if (self.budget is None) == (not self.targets):
            got = "neither" if self.budget is None else "both"
            raise ValueError(
                "a plan needs either a budget or what the kept items must reach "
                f"(accuracy, sensitivity, specificity), got {got}; give for example "
                "--budget 0.2, or --accuracy 0.95"
            )
        if self.budget is not None and not 0.0 <= self.budget <= 1.0:
            raise ValueError(
                f"budget must lie in [0, 1], the share of items that may be referred, "
                f"got {self.budget}"
            )
        for name, level in self.targets.items():
            if not 0.0 < level < 1.0:
                raise ValueError(
                    f"{name} must lie between 0 and 1, got {level}; no number of items "
                    "can promise more"
                )
        if self.confidence is not None and not 0.5 < self.confidence < 1.0:
            raise ValueError(
                f"confidence must lie between 0.5 and 1, got {self.confidence}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralOptions:
    """Further options of a plan."""

    sensitivity: float | None = None
    """Least share of the kept positives (class 1) that must be found."""
    specificity: float | None = None
    """Least share of the kept negatives (class 0) that must be found."""
    uncertainty: str | None = None
    """entropy (the default), aleatoric, epistemic, or the <name> of an array
    `uncertainty/<name>`; for regression std, width or that of a `select/<name>`."""
    logits: bool = False
    """The class scores are logits; never guessed."""
    by_group: bool = False
    level: float = 0.95
    """Level of the intervals."""
    seed: int = 0
    """Draws one item of each cluster where items must be independent."""

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """A threshold, and what it does on the items it was chosen on."""

    threshold: float
    """Refer where uncertainty >= threshold; inf refers none."""
    rounded: float
    """The threshold with four digits, or with as many as refer the same items."""
    referred: float
    """Share of the items referred."""
    accuracy: float
    """Accuracy of the kept items; nan where none is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What holds for new items of the same population, and with what confidence.

    Where items come in clusters it is about one random item per cluster: a large
    cluster counts no more than a small one.
    """

    threshold: float
    at_least: Mapping[str, float]
    """Score of the kept items and its lower bound; empty for a budget."""
    budget: float | None
    """Upper bound of the share referred, where that is what is promised."""
    confidence: float
    """Probability, over the draw of the items, that the statement is true."""
    items: int
    """Independent items that were tested: one per cluster where there are clusters."""
    tested: int
    """Thresholds tested at once, for which the confidence is corrected."""


PROMISED = {
    "accuracy": "of the kept items are decided rightly",
    "sensitivity": "of the kept positives are found",
    "specificity": "of the kept negatives are cleared",
}


def as_asked(share: float) -> str:
    """A share as it was asked for.

    >>> as_asked(0.955)
    '95.5%'
    """
    return f"{100 * share:g}%"


def promised(promise: Promise, shown: Callable[[float], str] = as_asked) -> str:
    """What is promised, in words; `shown` writes the shares."""
    if promise.budget is not None:
        return f"at most {as_asked(promise.budget)} of them are referred"
    return " and ".join(
        f"at least {shown(bound)} {PROMISED[name]}"
        for name, bound in promise.at_least.items()
    )
