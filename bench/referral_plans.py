"""Count how often referral plans break their promise, and how much they refer.

`python bench/referral_plans.py` draws items from populations whose truth is known, lets
the rule of `qualms refer --accuracy` choose a threshold, and looks up whether the new
items that it keeps reach what was promised. The former rule (50 thresholds, each at a
fiftieth of the risk) answers the same request on the same items. It writes
`results/referral_plans.csv` and prints the tables of `docs/promise.md`. `--times` sets
how many plans are drawn in each cell, `--only` the beginning of populations' names,
and `--targets` counts the plans of one set of items where many targets are tried.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtr

from qualms.inference import wilson_ends
from qualms.referral._items import ReferralItems
from qualms.referral._request import Request
from qualms.referral._walks import CountsBelow, count_below, promised_cut
from qualms.scores import ranked_items

CONFIDENCE = 0.9
SIZES = (20, 50, 200, 1000, 10_000)
CELLS = 20_000
"""Values of a population that stands for continuous scores."""
TARGETS = np.arange(0.70, 0.995, 0.01)
FILE = Path(__file__).parents[1] / "results" / "referral_plans.csv"


class Population(NamedTuple):
    """Independent items or patients; arrays are (V,), one place for each uncertainty.

    Uncertainties are 0, 1, ..., V - 1.
    """

    weight: np.ndarray
    """Share of the items that have each uncertainty."""
    positive: np.ndarray
    """Share of positives among them."""
    right: tuple[np.ndarray, np.ndarray]
    """Share of right decisions among their negatives, and among their positives."""
    at_least: Mapping[str, float]
    """What is asked for."""
    photographs: int = 1
    """Photographs of a patient of the more uncertain half; the others have one."""

    def truth(self, score: str) -> np.ndarray:
        """Return the score (V + 1,) of the items below each uncertainty, and of all."""
        sides = {"accuracy": (0, 1), "specificity": (0,), "sensitivity": (1,)}[score]
        share = (1.0 - self.positive, self.positive)
        counted = sum(self.weight * share[side] for side in sides)
        hit = sum(self.weight * share[side] * self.right[side] for side in sides)
        below = np.concatenate([[0.0], np.cumsum(counted)])
        hits = np.concatenate([[0.0], np.cumsum(hit)])
        return np.divide(hits, below, where=below > 0, out=np.ones(len(below)))

    def draw(self, rng: np.random.Generator, n: int) -> ReferralItems:
        """Return `n` independent items, or one photograph of each of `n` patients."""
        uncertain = rng.random(n) < 0.5
        patient = np.repeat(np.arange(n), np.where(uncertain, self.photographs, 1))
        # Each photograph is drawn anew from the half of its patient.
        spot = (rng.random(len(patient)) + uncertain[patient]) / 2.0
        value = np.searchsorted(np.cumsum(self.weight), spot, side="right")
        value = np.minimum(value, len(self.weight) - 1)
        cluster = patient if self.photographs > 1 else None
        target = (rng.random(len(value)) < self.positive[value]).astype(np.int64)
        share = np.where(target == 1, self.right[1][value], self.right[0][value])
        # All photographs of a patient are right or wrong together, as far as can be.
        luck = rng.random(n)[patient]
        return referral_items(target, luck < share, value.astype(np.float64), cluster)


def referral_items(target, correct, uncertainty, cluster=None) -> ReferralItems:
    """Return items of which only these matter to the choice of a threshold."""
    unused = np.zeros(len(target))
    return ReferralItems(
        name="simulated",
        subset="",
        task="classification",
        classes=2,
        target=target,
        predicted=np.where(correct, target, 1 - target),
        correct=correct,
        loss=unused,
        positive=unused,
        uncertainty=uncertainty,
        rank=ranked_items(uncertainty),
        cluster=cluster,
        group=None,
    )


def plain(accuracy: np.ndarray, target: float, weight=None, **more) -> Population:
    """Return a population with this accuracy at each uncertainty."""
    even = np.full(len(accuracy), 1.0 / len(accuracy))
    half = np.full(len(accuracy), 0.5)
    weight = even if weight is None else weight / weight.sum()
    return Population(weight, half, (accuracy, accuracy), {"accuracy": target}, **more)


def network(
    *, rate: float, cells: int, at_least: Mapping[str, float], mean: float = 1.2
) -> Population:
    """Return a network for two classes that knows how sure it may be.

    Evidence is normal around `mean` for positives and -`mean` for negatives. The
    uncertainty is how near the evidence is to the place where both classes are equally
    likely, cut into `cells`: few of them make ties.
    """
    middle = np.log((1.0 - rate) / rate) / (2.0 * mean)
    near = np.linspace(4.0, 0.0, cells + 1)
    near[0] = 40.0
    share = {}
    for target, center in ((0, -mean), (1, mean)):
        above = np.diff(ndtr(center - middle - near))
        below = np.diff(ndtr(middle - center - near))
        share[target] = (below, above) if target == 0 else (above, below)
    negative, positive = (
        chance * sum(share[target]) for target, chance in ((0, 1.0 - rate), (1, rate))
    )
    weight = negative + positive
    some = weight > 1e-15
    right = tuple(
        (share[target][0] / sum(share[target]).clip(1e-300))[some] for target in (0, 1)
    )
    return Population(weight[some], (positive / weight)[some], right, at_least)


def wave(target: float) -> np.ndarray:
    """Return accuracies that put the kept items above `target` and below in turn."""
    place = np.arange(CELLS + 1) / CELLS
    kept = target + 0.02 * np.sin(10.0 * place)
    return np.diff(kept * place) * CELLS


def rare(cells: int) -> Population:
    """Return a network of which 5 % of the items are positives."""
    return network(rate=0.05, cells=cells, at_least={"sensitivity": 0.93}, mean=2.0)


FINE = (np.arange(CELLS) + 0.5) / CELLS
HAIR = 1e-9
POPULATIONS: Mapping[str, Population] = {
    "accuracy falls steadily": plain(1.0 - 0.3 * FINE, 0.92),
    "the same, 0.75 asked for": plain(1.0 - 0.6 * FINE, 0.75),
    "few errors, at the end": plain(np.where(FINE > 0.7, 0.6, 0.985), 0.95),
    "network, 30 % positives": network(
        rate=0.3, cells=CELLS, at_least={"accuracy": 0.95}
    ),
    "ties: five uncertainties": plain(
        np.array([0.99, 0.97, 0.9, 0.8, 0.6]), 0.93, np.array([4.0, 2, 2, 1, 1])
    ),
    "ties: network, 12 uncertainties": network(
        rate=0.3, cells=12, at_least={"accuracy": 0.95}
    ),
    "trap: all just below the target": plain(np.full(CELLS, 0.9 - HAIR), 0.9),
    "trap with ties, 7 uncertainties": plain(np.full(7, 0.9 - HAIR), 0.9),
    "wave: above and below in turn": plain(wave(0.8), 0.8),
    "rare class: sensitivity, 5 % positives": rare(CELLS),
    "rare class with ties": rare(12),
    "sensitivity and specificity": network(
        rate=0.3, cells=CELLS, at_least={"sensitivity": 0.85, "specificity": 0.9}
    ),
    "patients, 1 or 5 photographs": plain(1.0 - 0.3 * FINE, 0.92, photographs=5),
    "patients with ties": plain(
        np.array([0.99, 0.97, 0.9, 0.8, 0.6]),
        0.93,
        np.array([4.0, 2, 2, 1, 1]),
        photographs=5,
    ),
}

Rule = Callable[[CountsBelow, Request], int | None]


def by_fifty_ranks(counts: CountsBelow, request: Request) -> int | None:
    """Return the cut of the former rule: up to 50 ranks, each at a part of the risk."""
    items = int(counts.kept[-1])
    ranks = np.unique(np.round(np.arange(1, 51) * items / 50).astype(np.int64))
    ranks = ranks[ranks > 0]
    cuts = np.searchsorted(counts.kept, ranks, side="right") - 1
    largest = np.zeros(len(cuts))
    for name, bound in request.at_least.items():
        count = counts.items[name][cuts]
        wrong = count - counts.right[name][cuts]
        tail = bdtr(wrong, np.maximum(count, 1), 1.0 - bound)
        largest = np.maximum(largest, np.where(count > 0, tail, 1.0))
    risk = (1.0 - request.effective_confidence) / len(ranks)
    passing = np.flatnonzero(largest <= risk)
    return int(cuts[passing[-1]]) if passing.size else None


RULES: Mapping[str, Rule] = {"fifty ranks": by_fifty_ranks, "walks": promised_cut}


class Cell(NamedTuple):
    """Counts of one population, size and rule."""

    population: str
    items: int
    rule: str
    plans: int
    """Plans asked for."""
    found: int
    broken: int
    """Plans found whose kept new items miss what was promised."""
    referred: float
    """Share of new items referred, on average; all where no plan is found."""
    half_width: float
    """Of its 95 % interval."""


def cells(name: str, population: Population, n: int, times: int) -> Iterator[Cell]:
    """Yield the counts of both rules on the same items."""
    request = Request(at_least=population.at_least, confidence=CONFIDENCE)
    truths = {score: population.truth(score) for score in request.at_least}
    below = np.concatenate([[0.0], np.cumsum(population.weight)])
    results = {rule: np.empty((times, 3)) for rule in RULES}
    for seed in range(times):
        items = population.draw(np.random.default_rng([seed, n]), n)
        counts = count_below(items.independent(seed), request.at_least)
        for rule, choose in RULES.items():
            place = _place(counts, choose(counts, request))
            broken = place is not None and any(
                truths[score][place] < least
                for score, least in request.at_least.items()
            )
            referred = 1.0 if place is None else 1.0 - below[place]
            results[rule][seed] = place is not None, broken, referred
    for rule, columns in results.items():
        found, broken, referred = columns.T
        yield Cell(
            population=name,
            items=n,
            rule=rule,
            plans=times,
            found=int(found.sum()),
            broken=int(broken.sum()),
            referred=float(referred.mean()),
            half_width=float(1.96 * referred.std() / np.sqrt(times)),
        )


def _place(counts: CountsBelow, cut: int | None) -> int | None:
    """Return how many values of the population a cut keeps; -1 means all of them."""
    if cut is None:
        return None
    threshold = counts.threshold[cut]
    return -1 if np.isinf(threshold) else int(threshold)


def write_cells(rows: list[Cell]) -> None:
    with FILE.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow((*Cell._fields, "broken_low", "broken_high"))
        for cell in rows:
            share = np.array([cell.broken / cell.plans])
            low, high = wilson_ends(share, np.array([float(cell.plans)]), 1.96)
            numbers = cell.referred, cell.half_width, float(low[0]), float(high[0])
            lines.writerow((*cell[:6], *(f"{number:.5f}" for number in numbers)))


def print_cells(rows: list[Cell]) -> None:
    """Print, for every cell, referred by both rules and broken by both, in percent."""
    sizes = sorted({cell.items for cell in rows})
    by = {(cell.population, cell.items, cell.rule): cell for cell in rows}
    names = list(dict.fromkeys(cell.population for cell in rows))
    for title, value in (
        ("referred", lambda cell: 100 * cell.referred),
        ("broken", lambda cell: 100 * cell.broken / cell.plans),
    ):
        print(f"\n| {title}, % | {' | '.join(f'{n:,}' for n in sizes)} |")
        print(f"|---|{'---:|' * len(sizes)}")
        for name in names:
            pairs = (tuple(value(by[name, n, rule]) for rule in RULES) for n in sizes)
            print(f"| {name} | {' | '.join(f'{a:.1f}, {b:.1f}' for a, b in pairs)} |")


def print_many_targets(times: int) -> None:
    """Print how often any of many targets on the same items gets a broken plan."""
    print(f"\n| any of {len(TARGETS)} targets broken, % | 50 | 200 | 1,000 | 5,000 |")
    print("|---|---:|---:|---:|---:|")
    for name, population in POPULATIONS.items():
        if set(population.at_least) != {"accuracy"} or not name.startswith(ONLY):
            continue
        truth = population.truth("accuracy")
        shares = []
        for n in (50, 200, 1000, 5000):
            pairs = np.zeros((times, len(RULES)), bool)
            for seed in range(times):
                items = population.draw(np.random.default_rng([seed, n]), n)
                counts = count_below(items.independent(seed), {"accuracy": 0.0})
                for place, choose in enumerate(RULES.values()):
                    pairs[seed, place] = any(
                        _is_broken(counts, truth, choose, target) for target in TARGETS
                    )
            shares.append(", ".join(f"{100 * x:.1f}" for x in pairs.mean(0)))
        print(f"| {name} | {' | '.join(shares)} |", flush=True)


def _is_broken(counts: CountsBelow, truth, choose: Rule, target: float) -> bool:
    request = Request(at_least={"accuracy": float(target)}, confidence=CONFIDENCE)
    place = _place(counts, choose(counts, request))
    return place is not None and truth[place] < target


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--targets", action="store_true")
    arguments = parser.parse_args()
    ONLY = arguments.only
    if arguments.targets:
        print_many_targets(arguments.times)
    else:
        table = []
        for name, population in POPULATIONS.items():
            if name.startswith(ONLY):
                for size in SIZES:
                    table += cells(name, population, size, arguments.times)
        print_cells(table)
        if not ONLY:
            write_cells(table)
