"""Do new items look like those a plan was made on? Judged by outputs alone.

Two tests that hold their level for any population (`inference.compare_values`),
one of the uncertainty and one of what is predicted, with Holm's correction. Both rest
on one item of each cluster, as promises do: that is exact even where new clusters are
larger or smaller than those of the plan. Many items make any difference significant, so
the verdict also looks at its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qualms.inference import (
    PERMUTATIONS,
    TwoSamples,
    compare_classes,
    compare_values,
    holm,
)
from qualms.scores import Estimate

Array = NDArray[np.float64]
Index = NDArray[np.int64]

Likeness = Literal["alike", "slightly unlike", "unlike", "too few items"]

MOST = 5000
"""Items of either side that are tested; of more, so many are drawn."""
SMALL = 0.05
"""A difference of shares below this is small."""
UNSEEN = 0.1
"""Where the share referred may have moved by more than this, items are too few."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceSample:
    """What a plan keeps of the items it was made on: no name, target or order.

    Independent ones: one of each cluster where there are clusters.
    """

    uncertainty: Array = field(repr=False)
    """Ascending."""
    predicted: NDArray[Any] = field(repr=False)
    """(C,) how often each class is predicted; for regression the values, ascending."""

    @property
    def n(self) -> int:
        """How many items are kept."""
        return len(self.uncertainty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How the uncertainty, or what is predicted, differs from the items of the plan."""

    what: str
    """uncertainty, predicted classes or predicted values."""
    p: float
    """Corrected for the two tests; small where chance does not explain it."""
    differs: bool
    distance: float
    """By how much a share moved at most: of the items below any value, or of any set
    of classes."""
    by_chance: float
    """What the distance is on average where nothing has changed."""
    size: float
    """The distance less its noise."""
    example: str
    """What moved: the median, or a class."""
    planned: float
    """Of the items of the plan: the median, or the share of that class."""
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessCheck:
    """Whether new items look like those a plan was made on."""

    verdict: Likeness
    sentence: str
    """The verdict in words."""
    departures: tuple[Departure, Departure]
    items: int
    """New items that were tested: independent ones, one of each cluster."""
    reference: int
    """Items of the plan that they were compared with."""
    level: float
    """Items like those of the plan are called unlike with probability 1 - level."""


def reference_of(
    uncertainty: Array, predicted: NDArray[Any], classes: int | None, seed: int
) -> ReferenceSample:
    """What is kept of independent items; at most 5,000 of them, drawn by `seed`."""
    kept = _at_most(uncertainty, predicted, seed)
    return ReferenceSample(
        uncertainty=np.sort(uncertainty[kept]),
        predicted=_summed(predicted[kept], classes),
    )


def check_likeness(
    reference: ReferenceSample,
    new: ReferenceSample,
    *,
    moved: Estimate,
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> LikenessCheck:
    """Compare independent new items with those of a plan.

    Args:
        reference: What the plan kept.
        new: The same of new items, by `reference_of`.
        moved: By how much the share referred moved, with its interval.
        level: The chance that items like those of the plan are found alike.
        permutations: How many the tests draw.
        seed: Draws them.
    """
    classes = reference.predicted.dtype.kind == "i"
    drawn = {"permutations": permutations, "seed": seed}
    spread = compare_values(reference.uncertainty, new.uncertainty, **drawn)
    compare = compare_classes if classes else compare_values
    outputs = compare(reference.predicted, new.predicted, **drawn)
    p = holm([spread.p, outputs.p])
    about = _moved_class if classes else _medians
    departures = (
        _departure(
            "uncertainty",
            (spread, p[0] <= 1.0 - level, p[0]),
            _medians(reference.uncertainty, new.uncertainty),
        ),
        _departure(
            "predicted classes" if classes else "predicted values",
            (outputs, p[1] <= 1.0 - level, p[1]),
            about(reference.predicted, new.predicted),
        ),
    )
    verdict = _verdict(departures, moved)
    return LikenessCheck(
        verdict=verdict,
        sentence=_sentence(verdict, departures, moved, new.n),
        departures=departures,
        items=new.n,
        reference=reference.n,
        level=level,
    )


def _at_most(uncertainty: Array, predicted: NDArray[Any], seed: int) -> Index:
    n = len(uncertainty)
    if n <= MOST:
        return np.arange(n)
    # Sorted first, so that the order in the file has no influence.
    order = np.lexsort((predicted, uncertainty))
    chosen: Index = order[np.random.default_rng(seed).choice(n, MOST, replace=False)]
    return chosen


def _summed(predicted: NDArray[Any], classes: int | None) -> NDArray[Any]:
    if classes is None:
        return np.sort(predicted)
    return np.bincount(predicted.astype(np.int64), minlength=classes)


def _departure(
    what: str, found: tuple[TwoSamples, bool, float], moved: tuple[str, float, float]
) -> Departure:
    test, differs, p = found
    example, planned, now = moved
    return Departure(
        what=what,
        p=float(p),
        differs=bool(differs),
        distance=test.distance,
        by_chance=test.by_chance,
        size=test.beyond_chance,
        example=example,
        planned=planned,
        now=now,
    )


def _medians(before: NDArray[Any], now: NDArray[Any]) -> tuple[str, float, float]:
    return "median", float(np.median(before)), float(np.median(now))


def _moved_class(before: NDArray[Any], now: NDArray[Any]) -> tuple[str, float, float]:
    """The class whose share moved furthest; of two, class 1."""
    shares = before / before.sum(), now / now.sum()
    most = int(np.argmax(np.abs(shares[1] - shares[0]))) if len(now) != 2 else 1
    return f"class {most}", float(shares[0][most]), float(shares[1][most])


def _verdict(departures: Sequence[Departure], moved: Estimate) -> Likeness:
    real = [each.size for each in departures if each.differs]
    if real:
        if moved.low > 0.0 or moved.high < 0.0:
            real.append(abs(moved.value))
        return "unlike" if max(real) >= SMALL else "slightly unlike"
    hidden = max(-moved.low, moved.high) > UNSEEN
    return "too few items" if hidden else "alike"


def _sentence(
    verdict: Likeness, departures: Sequence[Departure], moved: Estimate, items: int
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
            f"referred may have moved by {points(moved.low)} to {points(moved.high)}."
        )
    if verdict == "slightly unlike":
        return (
            "The new items are not quite like those the plan was made on: their "
            f"{what} {verb} by more than chance explains, but by little. Expect small "
            "differences from what was promised."
        )
    return (
        "The new items do not look like those the plan was made on: their "
        f"{what} {verb}. What was promised was not promised for them: label some, and "
        "judge the plan on them or make a new one."
    )


def points(share: float) -> str:
    """A difference of shares in percentage points.

    >>> points(0.123), points(-0.02)
    ('+12.3 points', '-2.0 points')
    """
    return f"{100 * share:+.1f} points"
