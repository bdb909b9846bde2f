"""The records of a referral plan: the request, the threshold and its outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from qualms.evaluate.entry import Curve
from qualms.scores import Better, Estimate

CONFIDENCE = 0.9

Verdict = Literal["met", "missed", "undecided"]


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
    uncertainty: str = "entropy"
    """entropy, aleatoric, epistemic, or the <name> of an `uncertainty/<name>`."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One line of the overview: another threshold and its accuracy."""

    choice: Cutoff
    promised: float
    """Lower bound of the accuracy of kept new items; all offers hold at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One score without referral, of the kept items, and with an expert's help."""

    score: str
    label: str
    better: Better
    before: Estimate
    """Of all items: nothing is referred."""
    kept: Estimate
    """Of the items the network decides."""
    with_expert: float
    """Of all items, those referred counted as right; nan where that has no meaning."""
    why: str = ""
    """Why a value is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerThousand:
    """How many of 1,000 such items are referred, kept and decided wrongly."""

    referred: float
    kept: float
    wrong: float
    """Kept and decided wrongly."""
    missed: float
    """Kept positives taken for negatives; nan unless there are two classes."""
    false_alarms: float
    """Kept negatives taken for positives; nan unless there are two classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The largest fall of the referral curve that noise does not explain."""

    from_referred: float
    to_referred: float
    from_accuracy: float
    to_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the threshold does on one set of items."""

    name: str
    """The file, and which of its items: '', 'in_domain', 'shifted' or 'group=...'."""
    subset: str
    n: int
    clusters: int | None
    kept: int
    referred: Estimate
    measures: tuple[Measure, ...]
    per_thousand: PerThousand
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """For sets that the threshold was not chosen on: whether the request is met."""
    fall: Fall | None = None
    curve: Curve | None = field(default=None, repr=False, compare=False)
    """Accuracy of the kept items for every share referred."""
    groups: "tuple[Outcome, ...]" = ()

    def measure(self, score: str) -> Measure:
        """The measure called `score`."""
        for found in self.measures:
            if found.score == score:
                return found
        known = ", ".join(found.score for found in self.measures)
        raise LookupError(f"no {score!r} in {self.name}; it has {known}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralPlan:
    """Everything `qualms refer` says: the threshold, its promise, its consequences."""

    request: Request
    uncertainty: str
    threshold: float
    """Refer where uncertainty >= threshold; inf refers none; nan: none was found."""
    shown: Cutoff
    """The threshold of `outcomes`; where no plan was found, the nearest to one."""
    observed: Cutoff | None
    """The threshold that does what was asked on the given items alone."""
    promised: Cutoff | None
    """The threshold that does what was asked for new items."""
    promise: Promise | None
    """What `shown` promises; None for a budget of the given items."""
    needed: int | None
    """About how many such items would be enough, where these are too few; else None.

    All items of a cluster are counted.
    """
    offers: tuple[Offer, ...]
    outcomes: tuple[Outcome, ...]
    """The items the threshold was chosen on come first."""
    level: float
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether a threshold was found that does what was asked."""
        return self.threshold == self.threshold
