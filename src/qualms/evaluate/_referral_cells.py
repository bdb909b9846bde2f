"""The cells of one row of a referral benchmark: its repeats, scored and resampled."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from qualms.benchmarks._benchmark import Place
from qualms.evaluate._aleatoric import ENDINGS, truth_scores, truth_why
from qualms.evaluate._benchmark_results import Array, Cell, Key, Sides
from qualms.evaluate._entry import Settings
from qualms.evaluate._referral_drawings import Drawn, Line, lines_of, sides_of
from qualms.evaluate._referral_items import Items, Sets, sets_of
from qualms.evaluate._referral_replicates import replicates
from qualms.evaluate._referral_scores import Values, scored
from qualms.scores import percentile_interval

_UNDEFINED = {
    "auroc": "only one class among these items",
    "auprc": "no positive among these items",
}
_NO_SET = "some grades of the in-domain items have no shifted item"
_NO_GRADES = "the grades of the items are not known"


class Repeat(NamedTuple):
    """One repeat of a row, with all that is known about it."""

    items: Items
    sets: Sets
    ours: Values
    theirs: Values
    lines: Mapping[Drawn, Line]
    sides: Mapping[Drawn, Sides]


def repeat_of(items: Items, seed: int) -> Repeat:
    """Everything about one repeat but its replicates."""
    sets = sets_of(items, seed)
    found = scored(items, sets)
    return Repeat(
        items=items,
        sets=sets,
        ours=found.ours | truth_scores(items),
        theirs=found.theirs,
        lines=dict(lines_of(items, sets, found.curves)),
        sides=dict(sides_of(items, sets)),
    )


def cells_of(
    place: Place, names: Iterable[str], repeats: Sequence[Repeat], settings: Settings
) -> Iterator[Cell]:
    """One cell for each of the scores `names`, over all repeats of a row."""
    samples: Mapping[str, Array] = {}
    if settings.resamples:
        samples = replicates([repeat.items for repeat in repeats], settings)
    for name in names:
        values = _known(repeat.ours.get(name, math.nan) for repeat in repeats)
        theirs = _known(repeat.theirs.get(name, math.nan) for repeat in repeats)
        undefined = not values or any(map(math.isnan, values))
        found = samples.get(name)
        low, high = _interval(found, settings.level)
        yield Cell(
            key=Key(place.variant.name, place.alpha, place.row.name, name),
            values=values,
            as_published=() if place.row.beyond else theirs,
            low=low,
            high=high,
            samples=found,
            why=_why(name, repeats[0]) if undefined else "",
        )


def empty_cells(place: Place, names: Iterable[str], why: str) -> Iterator[Cell]:
    """Cells without values that say why."""
    for name in names:
        key = Key(place.variant.name, place.alpha, place.row.name, name)
        yield Cell(key=key, why=why)


def _known(values: Iterable[float]) -> tuple[float, ...]:
    """All of `values`, or none where all are undefined."""
    found = tuple(values)
    return () if all(map(math.isnan, found)) else found


def _interval(samples: Array | None, level: float) -> tuple[float, float]:
    if samples is None:
        return math.nan, math.nan
    interval = percentile_interval(samples, level=level)
    return interval.low, interval.high


def _why(name: str, repeat: Repeat) -> str:
    where, _, score = name.partition("/")
    if where not in repeat.sets.ours:
        return _NO_SET if repeat.items.group is not None else _NO_GRADES
    if score.endswith(ENDINGS):
        return truth_why(name, repeat.items)
    reasons = (why for part, why in _UNDEFINED.items() if part in score)
    return next(reasons, "undefined for these items")
