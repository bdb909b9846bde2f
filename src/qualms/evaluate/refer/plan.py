"""The records of a referral plan: the threshold and its outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal

from qualms.evaluate.entry import Curve
from qualms.evaluate.notebook import (
    notebook_lines,
    notebook_number,
    notebook_table,
)
from qualms.evaluate.refer.applied import AppliedPlan, interval_words
from qualms.evaluate.refer.referred import ReferredItems
from qualms.evaluate.refer.request import Cutoff, Promise, Request
from qualms.evaluate.refer.saved import SavedPlan
from qualms.evaluate.scoring import Source
from qualms.scores import Better, Estimate
from qualms.wording import plural

Verdict = Literal["met", "missed", "undecided"]


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
    items: ReferredItems | None = field(default=None, repr=False, compare=False)
    """The items of the given file to refer; None where no threshold was found."""
    saved: SavedPlan | None = field(default=None, repr=False, compare=False)
    """What `save` writes; None where no threshold was found."""

    @property
    def found(self) -> bool:
        """Whether a threshold was found that does what was asked."""
        return self.threshold == self.threshold

    def apply(
        self, source: Source, *, logits: bool = False, seed: int = 0
    ) -> AppliedPlan:
        """Which of new items to refer, as `SavedPlan.apply` says."""
        return self._usable().apply(source, logits=logits, seed=seed)

    def to_json(self) -> str:
        """The text of the plan's file (docs/refer.md)."""
        return self._usable().to_json()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the plan's file, for `read_plan` and `qualms refer --apply`."""
        return self._usable().save(path)

    def _usable(self) -> SavedPlan:
        if self.saved is None:
            raise ValueError(
                "no threshold can promise what was asked, so there is no plan to save "
                "or to apply; ask for less, or give more items"
            )
        return self.saved

    def __repr__(self) -> str:
        own = self.outcomes[0]
        if self.saved is None:
            return (
                f"<ReferralPlan from {own.name} ({own.n} items): no threshold on the "
                f"{self.uncertainty} can promise what was asked; see .shown, .needed>"
            )
        said = self.saved.promise_words or "Nothing is promised for new items."
        return (
            f"<ReferralPlan from {own.name} ({own.n} items): {self.saved.rule} "
            f"That refers {own.referred.value:.1%}. {said} "
            "See .outcomes, .apply(predictions), .save(path)>"
        )

    def _repr_html_(self) -> str:
        said = ["No threshold can promise what was asked."]
        if self.saved is not None:
            promise = self.saved.promise_words
            said = [self.saved.rule, promise or "Nothing is promised for new items."]
        tables = (_html_outcome(outcome) for outcome in self.outcomes)
        return notebook_lines([*said, *self.warnings]) + "".join(tables)


def _html_outcome(outcome: Outcome) -> str:
    rows = [
        (each.label, notebook_number(each.before), notebook_number(each.kept))
        for each in outcome.measures
    ]
    title = ", ".join(filter(None, (outcome.name, outcome.subset)))
    referred = interval_words(outcome.referred)
    return notebook_table(
        f"{title}: {outcome.n:,} {plural(outcome.n, 'item')}, {referred} referred",
        ("score", "referring none", "kept by the plan"),
        rows,
    )
