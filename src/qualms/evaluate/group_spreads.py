"""Differences between groups: the worst group, and each group minus the best.

The worst of many groups looks worse than it is, and the largest of many differences
larger: chance makes some group the worst. So the intervals hold for all groups, or for
all pairs of them, at once (Bonferroni).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qualms.evaluate.estimates import Designs, influences_of
from qualms.evaluate.rows import ScoreRow
from qualms.evaluate.subsets import group_array, group_name, is_group, subset_kind
from qualms.inference import (
    Bounded,
    Design,
    Influence,
    difference_of_samples,
    interval_of,
)
from qualms.labels import values_text
from qualms.scores import Better

COMPARED = frozenset(
    {
        *("accuracy", "balanced_accuracy", "auroc", "nll", "brier", "ece", "aurc"),
        "classwise_ece",
        *("called_share", "sensitivity", "specificity", "ppv", "npv"),
        *("set_coverage", "set_size", "coverage", "interval_length", "mae"),
        *("crps_gaussian", "dice", "macro_dice", "recall_at_1", "r_auroc"),
    }
)
"""Scores whose groups are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpread:
    """The groups of one array by one score."""

    score: str
    label: str
    settings: Mapping[str, Any]
    better: Better
    subset: str
    """Items that are grouped: all, in_domain or shifted."""
    array: str
    """The array that groups them: `group`, or `group/<name>`."""
    groups: tuple[str, ...]
    """Groups that have an interval, in order of their names."""
    left_out: tuple[str, ...]
    """Groups without an interval: too few items, or an undefined score."""
    worst: str
    """The worst group; for a score without a direction, that of the least value."""
    least: Bounded
    """The score of the worst group, with an interval valid for any choice of it."""
    best: str
    gap: Bounded
    """The difference of the best and the worst group, with an interval valid for any
    choice of them."""
    differences: Mapping[str, Bounded]
    """Score of each other group minus that of the best; the intervals hold
    simultaneously."""

    @property
    def detail(self) -> str:
        """The values of the settings, as tables show them."""
        return values_text(self.settings)


def group_spreads(
    rows: Sequence[ScoreRow], design: Design, level: float
) -> tuple[GroupSpread, ...]:
    """Return the differences between groups by each score in `COMPARED`."""
    designs = Designs(design)
    return tuple(
        spread
        for members in _families(rows)
        if (spread := _spread(members, designs, level)) is not None
    )


def _families(rows: Sequence[ScoreRow]) -> Iterator[list[ScoreRow]]:
    """Yield lists of rows that differ only in their group."""
    families: dict[Any, list[ScoreRow]] = {}
    for row in rows:
        if row.score in COMPARED and is_group(row.subset):
            place = subset_kind(row.subset), group_array(row.subset)
            families.setdefault((row.key[::2], place), []).append(row)
    yield from families.values()


def _spread(
    members: Sequence[ScoreRow], designs: Designs, level: float
) -> GroupSpread | None:
    influences = {row.subset: _influence(row) for row in members}
    shown = [row for row in members if not math.isnan(row.low)]
    shown = [row for row in shown if influences[row.subset] is not None]
    if len(shown) < 2:
        return None

    def bounded(level: float) -> dict[str, Bounded]:
        return {
            group_name(row.subset): _bounded(
                row, influences[row.subset], designs, level
            )
            for row in shown
        }

    names = [group_name(row.subset) for row in shown]
    pairs = len(names) * (len(names) - 1) // 2
    singly = bounded(1.0 - (1.0 - level) / len(names))
    paired = bounded(1.0 - (1.0 - level) / pairs)
    # Larger is worse if lower is better; coverage below its aim is worse.
    sign = -1.0 if shown[0].better == "lower" else 1.0
    worst = min(names, key=lambda name: sign * singly[name].value)
    best = max(names, key=lambda name: sign * singly[name].value)
    first = shown[0]
    return GroupSpread(
        score=first.score,
        label=first.label,
        settings=first.settings,
        better=first.better,
        subset=subset_kind(first.subset),
        array=group_array(first.subset),
        groups=tuple(names),
        left_out=tuple(group_name(row.subset) for row in members if row not in shown),
        worst=worst,
        least=_of_worst(worst, singly, sign),
        best=best,
        gap=_largest_gap(paired, abs(singly[best].value - singly[worst].value)),
        differences={
            name: difference_of_samples(paired[name], paired[best])
            for name in names
            if name != best
        },
    )


def _influence(row: ScoreRow) -> Influence | None:
    influences = [] if row.entry is None else influences_of([row.entry])
    return influences[0] if influences else None


def _bounded(
    row: ScoreRow, influence: Influence | None, designs: Designs, level: float
) -> Bounded:
    assert row.entry is not None
    assert influence is not None
    ends = interval_of(influence, design=designs.of(row.entry.index), level=level)
    return Bounded(row.value, ends.low, ends.high)


def _of_worst(worst: str, singly: Mapping[str, Bounded], sign: float) -> Bounded:
    """Return the value of the worst group, between the worst ends of all groups."""
    choose = min if sign > 0 else max
    low = choose(each.low for each in singly.values())
    high = choose(each.high for each in singly.values())
    return Bounded(singly[worst].value, low, high)


def _largest_gap(paired: Mapping[str, Bounded], value: float) -> Bounded:
    """Return the largest difference of two groups, by the intervals of all of them."""
    gaps = [
        difference_of_samples(first, second)
        for first in paired.values()
        for second in paired.values()
        if first is not second
    ]
    low = max(gap.low for gap in gaps)
    high = max(gap.high for gap in gaps)
    return Bounded(value, max(low, 0.0), high)
