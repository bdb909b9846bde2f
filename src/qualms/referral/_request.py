"""The request for a referral plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qualms.evaluate.sources import Source

CONFIDENCE = 0.9
"""Default confidence of a promise."""


class ShareScore(NamedTuple):
    """A score that is the share of right decisions among some of the items."""

    promise: str
    """Words after "at least 95%" in a promise."""
    target: int | None = None
    """Class whose items count; None if all items count."""
    side: str = ""
    """Name of items of that class."""


SHARE_SCORES: Mapping[str, ShareScore] = {
    "accuracy": ShareScore(promise="of the kept items are decided rightly"),
    "sensitivity": ShareScore(
        promise="of the kept positives are found", target=1, side="positive"
    ),
    "specificity": ShareScore(
        promise="of the kept negatives are cleared", target=0, side="negative"
    ),
}
"""Scores that can be targets of a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request for a threshold: a budget, or scores that the kept items must reach.

    It has either a `budget`, or one or more scores in `at_least`.
    """

    budget: float | None = None
    """Largest share of items that may be referred."""
    at_least: Mapping[str, float]
    """Least values of scores of the kept items, by name (`SHARE_SCORES`)."""
    confidence: float | None = None
    """Confidence of the promise for new items; None for the given items only."""

    @property
    def effective_confidence(self) -> float:
        """The requested confidence, else the default."""
        return CONFIDENCE if self.confidence is None else self.confidence

    def as_data(self) -> dict[str, float | None]:
        """Return the request as JSON values, with a key for every possible score."""
        return {
            "budget": self.budget,
            **{name: self.at_least.get(name) for name in SHARE_SCORES},
            "confidence": self.confidence,
        }

    def __post_init__(self) -> None:
        if (self.budget is None) == (not self.at_least):
            number = "neither" if self.budget is None else "both"
            raise ValueError(
                "a plan needs either a budget or what the kept items must reach "
                f"({', '.join(SHARE_SCORES)}), got {number}; give for example "
                "--budget 0.2, or --accuracy 0.95"
            )
        for name, share in {"budget": self.budget, **self.at_least}.items():
            if isinstance(share, str):
                raise ValueError(f"{name} must be a number such as 0.2, got {share!r}")
        if self.budget is not None and not 0.0 <= self.budget <= 1.0:
            raise ValueError(
                f"budget must lie in [0, 1], the share of items that may be referred, "
                f"got {self.budget}"
            )
        for name, bound in self.at_least.items():
            if not 0.0 < bound < 1.0:
                raise ValueError(
                    f"{name} must lie between 0 and 1, got {bound}; no number of items "
                    "can promise more"
                )
        if self.confidence is not None and not 0.5 < self.confidence < 1.0:
            raise ValueError(
                f"confidence must lie between 0.5 and 1, got {self.confidence}"
            )


def make_request(
    *, budget: float | None, confidence: float | None, **scores: float | None
) -> Request:
    """Return the request for a budget, or for those of the scores that are not None.

    A budget without a confidence is for the given items; scores are always promised.
    """
    if budget is None and confidence is None:
        confidence = CONFIDENCE
    at_least = {name: bound for name, bound in scores.items() if bound is not None}
    return Request(budget=budget, at_least=at_least, confidence=confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralOptions:
    """Further options of a plan."""

    sensitivity: float | None = None
    """Least share of the kept positives (class 1) that must be found."""
    specificity: float | None = None
    """Least share of the kept negatives (class 0) that must be found."""
    uncertainty: str | None = None
    """entropy, aleatoric, epistemic, expected_entropy, mutual_information, or the
    <name> of an array `uncertainty/<name>`; for regression std, width, or the name of
    such an array or of a `select/<name>`. None for the one that scores judge: that of
    the header, else the first of the file's own."""
    logits: bool = False
    """The class scores are logits; never guessed."""
    draws: str | None = None
    """What several draws vary, models or labels, where the header does not say;
    aleatoric and epistemic depend on it."""
    gallery: Source | None = None
    """Embeddings: file whose items are searched for neighbours."""
    by_group: bool = False
    """True to describe each group of the array 'group', too."""
    level: float = 0.95
    """Level of the intervals."""
    seed: int = 0
    """Seed of the choice of one item per cluster, where items must be independent."""

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")
