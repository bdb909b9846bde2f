"""Comparison of new items with those a plan was made on, by outputs alone.

Two tests that hold their level for any population (`qualms.inference.compare_values`)
compare the uncertainty and the predictions, with Holm's correction. Both use one item
of each cluster, as promises do: this is exact even if new clusters are larger or
smaller than those of the plan. With many items any difference is significant, so the
verdict also depends on its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Index
from qualms.inference import (
    PERMUTATIONS,
    TwoSamples,
    compare_classes,
    compare_values,
    holm,
)
from qualms.referral.shares import points
from qualms.scores import Estimate

Likeness = Literal["alike", "slightly unlike", "unlike", "too few items"]

MAX_ITEMS = 5000
"""Largest sample of either side; from more items, a sample of this size is drawn."""
SMALL = 0.05
"""Largest difference of shares that counts as small."""
MAX_HIDDEN = 0.1
"""Items are too few if the share referred may have changed by more than this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceSample:
    """Sample of the independent items of a plan, for comparisons with new items.

    Names, targets and the order of items are left out.
    """

    uncertainty: Array = field(repr=False)
    """Sorted, least first."""
    predicted: NDArray[Any] = field(repr=False)
    """Counts (C,) of predicted classes; for regression the sorted values."""

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.uncertainty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Difference of the new items in uncertainty or in predictions."""

    what: str
    """Quantity: uncertainty, predicted classes, predicted values or lengths."""
    p: float
    """p value, corrected for the two tests; small if chance does not explain it."""
    differs: bool
    """True if the difference is beyond chance."""
    distance: float
    """Largest change of a share: of the items below any value, or in any set of
    classes."""
    by_chance: float
    """Average distance if nothing has changed."""
    size: float
    """The distance less its noise."""
    example: str
    """Name of the number that changed: the median, or the share of a class."""
    planned: float
    """Median of the plan's items, or the share of that class among them."""
    now: float
    """The same for the new items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessCheck:
    """Verdict on whether new items look like those a plan was made on."""

    verdict: Likeness
    sentence: str
    """The verdict in words."""
    departures: tuple[Departure, Departure]
    items: int
    """Number of independent new items that were tested, one of each cluster."""
    reference: int
    """Number of items of the plan that they were compared with."""
    level: float
    """Probability that items like those of the plan are not called unlike."""


def reference_sample(
    uncertainty: Array, predicted: NDArray[Any], classes: int | None, seed: int
) -> ReferenceSample:
    """Return a sample of independent items; at most 5,000, drawn by `seed`."""
    index = _at_most(uncertainty, predicted, seed)
    return ReferenceSample(
        uncertainty=np.sort(uncertainty[index]),
        predicted=_class_counts(predicted[index], classes),
    )


def check_likeness(  # noqa: PLR0913 - two samples, and how they are compared
    reference: ReferenceSample,
    new: ReferenceSample,
    *,
    change: Estimate,
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    classes: Sequence[str] = (),
    values: str = "predicted values",
) -> LikenessCheck:
    """Compare independent new items with those of a plan.

    Args:
        reference: The sample of the plan.
        new: The sample of new items, by `reference_sample`.
        change: Change of the share referred, with its interval.
        level: Probability that items like those of the plan are called alike.
        permutations: Number of permutations of the tests.
        seed: Seed of the permutations.
        classes: Names of the classes; () if unknown.
        values: Name of the predicted quantity, for tasks without classes.
    """
    are_classes = reference.predicted.dtype.kind == "i"
    options = {"permutations": permutations, "seed": seed}
    spread = compare_values(reference.uncertainty, new.uncertainty, **options)
    compare = compare_classes if are_classes else compare_values
    outputs = compare(reference.predicted, new.predicted, **options)
    what = "predicted classes" if are_classes else values
    example = partial(_moved_class, classes) if are_classes else _medians
    p = holm([spread.p, outputs.p])
    departures = (
        _departure(
            "uncertainty",
            spread,
            p[0],
            level,
            _medians(reference.uncertainty, new.uncertainty),
        ),
        _departure(
            what, outputs, p[1], level, example(reference.predicted, new.predicted)
        ),
    )
    verdict = _verdict(departures, change)
    return LikenessCheck(
        verdict=verdict,
        sentence=_sentence(verdict, departures, change, new.n),
        departures=departures,
        items=new.n,
        reference=reference.n,
        level=level,
    )


def _at_most(uncertainty: Array, predicted: NDArray[Any], seed: int) -> Index:
    n = len(uncertainty)
    if n <= MAX_ITEMS:
        return np.arange(n)
    # Sorted first, so that the order in the file has no influence.
    order = np.lexsort((predicted, uncertainty))
    rng = np.random.default_rng(seed)
    chosen: Index = order[rng.choice(n, MAX_ITEMS, replace=False)]
    return chosen


def _class_counts(predicted: NDArray[Any], classes: int | None) -> NDArray[Any]:
    """Return the count of each predicted class; for regression the sorted values."""
    if classes is None:
        return np.sort(predicted)
    return np.bincount(predicted.astype(np.int64), minlength=classes)


def _departure(
    what: str, test: TwoSamples, p: float, level: float, moved: tuple[str, float, float]
) -> Departure:
    example, planned, now = moved
    return Departure(
        what=what,
        p=float(p),
        differs=bool(p <= 1.0 - level),
        distance=test.distance,
        by_chance=test.by_chance,
        size=test.beyond_chance,
        example=example,
        planned=planned,
        now=now,
    )


def _medians(before: NDArray[Any], now: NDArray[Any]) -> tuple[str, float, float]:
    return "median", float(np.median(before)), float(np.median(now))


def _moved_class(
    names: Sequence[str], before: NDArray[Any], now: NDArray[Any]
) -> tuple[str, float, float]:
    """Return the class whose share changed most; of two classes, class 1."""
    shares = before / before.sum(), now / now.sum()
    most = int(np.argmax(np.abs(shares[1] - shares[0]))) if len(now) != 2 else 1
    name = names[most] if names else str(most)
    return f"class {name}", float(shares[0][most]), float(shares[1][most])


def _verdict(departures: Sequence[Departure], change: Estimate) -> Likeness:
    sizes = [departure.size for departure in departures if departure.differs]
    if sizes:
        if change.low > 0.0 or change.high < 0.0:
            sizes.append(abs(change.value))
        return "unlike" if max(sizes) >= SMALL else "slightly unlike"
    hidden = max(-change.low, change.high) > MAX_HIDDEN
    return "too few items" if hidden else "alike"


def _sentence(
    verdict: Likeness, departures: Sequence[Departure], change: Estimate, items: int
) -> str:
    what = " and ".join(each.what for each in departures if each.differs)
    verb = "differs" if what == "uncertainty" else "differ"
    if verdict == "alike":
        outputs = departures[1].what
        return (
            "The new items look like those the plan was made on: uncertainty and "
            f"{outputs} differ no more than chance explains."
        )
    if verdict == "too few items":
        units = "item tells" if items == 1 else "independent items tell"
        return (
            f"No difference was found, but {items:,} {units} little: the share "
            f"referred may have moved by {points(change.low)} to {points(change.high)}."
        )
    if verdict == "slightly unlike":
        return (
            "The new items are not quite like those the plan was made on: their "
            f"{what} {verb} by more than chance explains, but by little. Expect small "
            "differences from what was promised."
        )
    return (
        "The new items do not look like those the plan was made on: their "
        f"{what} {verb}. The plan was not made for such items: label some and judge "
        "the plan on them, or make a new one."
    )
