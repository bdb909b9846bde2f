"""Useless uncertainties: constant, mostly at their minimum, or below chance.

A note names an uncertainty that orders no items, or orders them the wrong way round,
and no score that judges it is marked as the best or as tied with the best.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from qualms.evaluate.entry import Entry, parameters
from qualms.evaluate.estimates import Designs, Estimated, influences_of
from qualms.evaluate.subsets import is_group, shown_subsets, subset_label
from qualms.inference import Design, influence_difference, mean_influence
from qualms.labels import values_text
from qualms.scores import Difference

MOST_ON_FLOOR = 0.5
"""Largest share of items that may have the smallest value."""
FEWEST = 10
"""Fewest items that show whether an uncertainty orders them."""
AREAS = ("aurc", "r_auroc")
"""Scores that show whether wrong items are less certain than right ones."""
CHANCE = 0.5


class _Ordering(NamedTuple):
    """An uncertainty and the items on which it is judged."""

    subset: str
    settings: Hashable


class NamedDead(NamedTuple):
    """The numbers of a file or line, some of them unranked, and notes on these."""

    numbers: list[Estimated]
    notes: tuple[str, ...]


def name_dead(
    numbers: Sequence[Estimated],
    design: Design,
    *,
    level: float = 0.95,
    wanted: str = "",
) -> NamedDead:
    """Mark the numbers that judge a dead uncertainty as unranked, and write notes.

    Args:
        numbers: The scores of one file or line.
        design: The sampling design of its items.
        level: Level of the intervals.
        wanted: The set of items that the user chose; '' for no choice.
    """
    designs = Designs(design)
    judging: dict[_Ordering, list[Estimated]] = {}
    for number in numbers:
        if _judges_uncertainty(number.entry.score):
            judging.setdefault(_place(number.entry), []).append(number)
    dead = {
        place: reason
        for place, own in judging.items()
        if not is_group(place.subset) and (reason := _why_dead(own, designs, level))
    }
    unranked = [
        _unranked(n, dead[_place(n.entry)])
        if _judges_uncertainty(n.entry.score) and _place(n.entry) in dead
        else n
        for n in numbers
    ]
    shown = shown_subsets({place.subset for place in judging}, wanted=wanted)
    return NamedDead(unranked, tuple(dict.fromkeys(_notes(dead, judging, shown))))


@cache
def _judges_uncertainty(score: Any) -> bool:
    return "uncertainty" in parameters(score)


def _place(entry: Entry) -> _Ordering:
    return _Ordering(entry.subset, tuple(map(str, entry.settings.items())))


def _unranked(number: Estimated, reason: str) -> Estimated:
    entries = tuple(replace(e, ranked=False, dead=reason) for e in number.entries)
    return number._replace(entries=entries)


def _notes(
    dead: dict[_Ordering, str],
    judging: dict[_Ordering, list[Estimated]],
    shown: Sequence[str],
) -> Iterator[str]:
    """Yield a note for each uncertainty, about the first shown set where it is dead."""
    known = set()
    places = [place for place in dead if place.subset in shown]
    first = sorted(places, key=lambda place: shown.index(place.subset))
    for place, reason in ((place, dead[place]) for place in first):
        if place.settings in known:
            continue
        known.add(place.settings)
        name = values_text(judging[place][0].entry.settings)
        items = {"all": ""}.get(place.subset, f" ({subset_label(place.subset)})")
        subject = f"uncertainty {name!r}" if name else "the uncertainty"
        yield f"{subject}{items} {reason}; it is not ranked"


def _why_dead(numbers: Sequence[Estimated], designs: Designs, level: float) -> str:
    """Return why the uncertainty that `numbers` judge is dead; empty if it is not."""
    ordered = next((n for n in numbers if n.entry.uncertainty is not None), None)
    if ordered is not None and all(_constant(e) for e in ordered.entries):
        return "is constant: it orders nothing"
    areas = [n for n in numbers if n.entry.score_name in AREAS and n.values]
    below = next(filter(None, (_below_chance(n, designs, level) for n in areas)), "")
    if below or ordered is None:
        return below
    on_floor = min(_share_on_floor(entry) for entry in ordered.entries)
    if on_floor <= MOST_ON_FLOOR:
        return ""
    if any(_above_chance(n, designs, level) for n in areas):
        return ""
    return (
        f"has its smallest value on {on_floor:.0%} of the items: it does not order them"
    )


def _constant(entry: Entry) -> bool:
    values = entry.uncertainty
    if values is None or len(values) < FEWEST:
        return False
    # A constant that was computed item by item varies by rounding errors.
    return float(np.ptp(values)) <= 1e-12 * float(np.abs(values).max())


def _share_on_floor(entry: Entry) -> float:
    values = entry.uncertainty
    if values is None or len(values) < FEWEST:
        return 0.0
    return float(np.mean(values == values.min()))


def _below_chance(number: Estimated, designs: Designs, level: float) -> str:
    """Return a clause if wrong items are more certain than right ones, else ''."""
    value = float(np.nanmean(number.values))
    if number.entry.score_name == "r_auroc":
        low, high = number.interval.low, number.interval.high
        if not high < CHANCE:
            return ""
        return f"is below chance: R-AUROC {value:.3f} ({low:.3f} to {high:.3f})"
    risk = _mean_risk(number.entries)
    if not value > risk or not _gap(number, designs, level).low > 0.0:
        return ""
    return (
        "is below chance: keeping what it calls certain raises the risk from "
        f"{risk:.3g} to {value:.3g} (AURC). If it is a confidence, store its negative"
    )


def _above_chance(number: Estimated, designs: Designs, level: float) -> bool:
    if number.entry.score_name == "r_auroc":
        return number.interval.low > CHANCE
    return _gap(number, designs, level).high < 0.0


def _mean_risk(entries: Sequence[Entry]) -> float:
    risks = [float(e.risk.mean()) for e in entries if e.risk is not None]
    return float(np.mean(risks)) if risks else float("inf")


def _gap(number: Estimated, designs: Designs, level: float) -> Difference:
    """Return the AURC less the mean risk, which is that of a random order."""
    area = influences_of(number.entries)
    risk = [mean_influence(e.risk) for e in number.entries if e.risk is not None]
    if not area or len(risk) < len(area):
        nan = float("nan")
        return Difference(value=nan, low=nan, high=nan, p=nan)
    design = designs.of(number.entry.index)
    return influence_difference(area, risk, design=design, level=level)
