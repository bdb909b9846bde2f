"""The cells of one row of a referral benchmark: its repeats, scored and resampled."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.benchmarks._benchmark import Place
from qualms.evaluate._aleatoric import ENDINGS, truth_plans, truth_scores, truth_why
from qualms.evaluate._benchmark_results import Array, Cell, Key, Sides
from qualms.evaluate._entry import Settings
from qualms.evaluate._judge import Direction
from qualms.evaluate._referral_drawings import Drawn, Line, lines_of, sides_of
from qualms.evaluate._referral_items import Index, Items, Sets, sets_of
from qualms.evaluate._referral_scores import Values, scored
from qualms.evaluate._replicates import mean_of_repeats
from qualms.scores import Plan, Resampling, bootstrap, percentile_interval, plans

RESAMPLED: Mapping[str, Direction] = {
    "accuracy": "higher",
    "nll": "lower",
    "auroc": "higher",
    "ece": "lower",
    "accuracy@0.5": "higher",
    "accuracy@0.7": "higher",
    "referral_accuracy_area": "higher",
}
"""Scores of a set that are cheap enough to resample, and which value is best."""
RESAMPLED_SETS = ("in_domain", "shifted", "joint")
"""The others hold the same items once more."""
_UNDEFINED = {
    "auroc": "only one class among these items",
    "auprc": "no positive among these items",
}
_NO_SET = "some grades of the in-domain items have no shifted item"


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
        ours=found.ours | dict(truth_scores(items)),
        theirs=found.theirs,
        lines=dict(lines_of(items, sets, found.curves)),
        sides=dict(sides_of(items, sets)),
    )


def cells_of(
    place: Place, names: Iterable[str], repeats: Sequence[Repeat], settings: Settings
) -> Iterator[Cell]:
    """One cell for each of the scores `names`, over all repeats of a row."""
    samples = _samples(repeats, settings) if settings.resamples else {}
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


def _samples(repeats: Sequence[Repeat], settings: Settings) -> dict[str, Array]:
    """(draws,) replicates of every score that is resampled, mean over repeats drawn."""
    items = repeats[0].items
    resampling = Resampling(
        len(items.target),
        strata=2 * items.target + items.shifted,
        cluster=items.cluster,
        seed=settings.seed,
    )
    each = [dict(_plans(repeat)) for repeat in repeats]
    found = bootstrap(
        {
            f"{i} {name}": plan
            for i, own in enumerate(each)
            for name, plan in own.items()
        },
        resampling,
        draws=settings.resamples,
        workers=settings.workers,
    )
    names = [name for name in each[0] if all(name in own for own in each)]
    stacked = np.stack(
        [[found[f"{i} {name}"] for name in names] for i in range(len(repeats))]
    )
    means = mean_of_repeats(stacked.transpose(0, 2, 1), settings.seed)
    return dict(zip(names, means.T, strict=True))


def _plans(repeat: Repeat) -> Iterator[tuple[str, Plan]]:
    """By score, plans over the whole joint set."""
    items = repeat.items
    for where in RESAMPLED_SETS:
        rows = repeat.sets.ours[where]
        for name, plan in _set_plans(items, rows):
            yield f"{where}/{name}", _on_all(plan, rows, len(items.target))
    yield "joint/ood_auroc", plans.auroc_plan(items.uncertainty.total, items.shifted)
    yield from truth_plans(items)


def _set_plans(items: Items, rows: Index) -> Iterator[tuple[str, Plan]]:
    probs, target = items.probs[rows], items.target[rows]
    doubt = items.uncertainty.total[rows]
    right = scores.correct(probs, target)
    for score in (scores.accuracy, scores.nll, scores.ece):
        yield score.__name__, scores.plan_of(score, probs, target)
    yield "auroc", plans.auroc_plan(probs[:, 1], target == 1)
    for tau in (0.5, 0.7):
        kept = plans.risk_at_coverage_plan(right, doubt, coverage=1 - tau)
        yield f"accuracy@{tau:g}", kept
    yield "referral_accuracy_area", plans.aurc_plan(right, doubt)


def _on_all(plan: Plan, rows: Index, n: int) -> Plan:
    """A plan of consecutive `rows` as one of all `n` items."""
    first, last = int(rows[0]), int(rows[-1]) + 1

    def value(weights: NDArray[np.int32]) -> float:
        chosen = weights[first:last]
        # Drawing whole clusters may miss a small set altogether.
        return plan.value(chosen) if chosen.any() else math.nan

    return Plan(n, value)


def _interval(samples: Array | None, level: float) -> tuple[float, float]:
    if samples is None:
        return math.nan, math.nan
    interval = percentile_interval(samples, level=level)
    return interval.low, interval.high


def _why(name: str, repeat: Repeat) -> str:
    where, _, score = name.partition("/")
    if where not in repeat.sets.ours:
        return _NO_SET
    if score.endswith(ENDINGS):
        return truth_why(name, repeat.items)
    return next(why for part, why in _UNDEFINED.items() if part in score)
