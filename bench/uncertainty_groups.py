"""Do tie groups of uncertainties keep their promise, and intervals of detection?

`python bench/uncertainty_groups.py` draws OOD AUROCs of uncertainties that are truly
equal: several of each method, made by the same runs on the same items. It counts how
often one of them is excluded from the best, which the group promises for 5 %, how often
the interval of one holds the truth, and how many are excluded where one uncertainty is
better by 0.05. Shifted items are other items, or corrupted copies of the same ones. It
prints the table of `docs/ood.md`.
"""

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from qualms import scores
from qualms.evaluate.entry import Entry, ScoreOptions
from qualms.evaluate.estimates import Estimated
from qualms.evaluate.uncertainty_ranking import uncertainty_rankings
from qualms.inference import (
    influence_of,
    interval_of,
    sampling_design,
    seed_spread,
)
from qualms.inference._seeds import ONE_RUN
from qualms.spec import Part
from qualms.study import Line, TableRow, Variant

AUROC, BETTER = 0.75, 0.05
ITEM, ROW = 0.3, 0.3
"""Shares of the variance of an item that all uncertainties have in common, and those of
a method."""
SEEDS_SHARE = 0.5
"""Share of the variance by seeds that the uncertainties of a run have in common."""
SEED_ERROR = 0.15
"""Standard deviation of a seed, in deviations of the uncertainty."""


class Cell(NamedTuple):
    """A line of the table."""

    rows: int
    uncertainties: int
    seeds: int
    items: int
    copies: bool


CELLS = [
    Cell(rows, uncertainties, seeds, items, copies)
    for items, seeds in ((200, 1), (200, 3), (200, 5), (1000, 3))
    for rows, uncertainties in ((1, 8), (3, 6))
    for copies in (False, True)
]


def distance(auroc):
    """How far shifted items lie so that detection has this expectation over seeds."""
    wide = np.sqrt(2.0 + SEED_ERROR**2)
    return brentq(lambda m: ndtr(m / wide) - auroc, 0.0, 9.0)


def uncertainties_of(cell, better, rng):
    """Draw uncertainties (rows, uncertainties, seeds, 2 items)."""
    shape = (cell.rows, cell.uncertainties, cell.seeds)
    sides = 1 if cell.copies else 2
    item = rng.standard_normal((1, 1, 1, sides * cell.items))
    own = rng.standard_normal((cell.rows, 1, 1, sides * cell.items))
    if cell.copies:
        item, own = (np.tile(each, 2) for each in (item, own))
    rest = rng.standard_normal((*shape, 2 * cell.items))
    values = np.sqrt(ITEM) * item + np.sqrt(ROW) * own
    values = values + np.sqrt(1.0 - ITEM - ROW) * rest
    away = np.full(shape, distance(AUROC))
    away[0, 0] = distance(AUROC + better)
    run = rng.standard_normal((cell.rows, 1, cell.seeds))
    alone = rng.standard_normal(shape)
    noise = np.sqrt(SEEDS_SHARE) * run + np.sqrt(1.0 - SEEDS_SHARE) * alone
    away += SEED_ERROR * (cell.seeds > 1) * noise
    values[..., cell.items :] += away[..., None]
    return values


def entry_of(values, shifted, name):
    return Entry(
        score=scores.ood_auroc,
        value=scores.ood_auroc(uncertainty=values, shifted=shifted),
        index=np.arange(len(values)),
        influence=partial(
            influence_of, scores.ood_auroc, uncertainty=values, shifted=shifted
        ),
        settings={"uncertainty": name},
    )


def line_of(row):
    variant = Variant(name="v", label="v", dataset=Part(name="none"))
    method = TableRow(name=f"m{row}", label="", method=Part(name="none"))
    return Line(variant, method, {}, {}, ())


def judge(cell, better, seed):
    """Return whether an equal one is excluded, how many are, and what is covered."""
    rng = np.random.default_rng([*cell, round(100 * better), seed])
    values = uncertainties_of(cell, better, rng)
    shifted = np.repeat([False, True], cell.items)
    cluster = np.tile(np.arange(cell.items), 2) if cell.copies else None
    design = sampling_design(2 * cell.items, cluster=cluster)
    numbers, covered = [], []
    for row, of_row in enumerate(values):
        each = []
        for place, of_seeds in enumerate(of_row):
            entries = tuple(entry_of(v, shifted, f"u{place}") for v in of_seeds)
            found = tuple(entry.value for entry in entries)
            spread = seed_spread(found) if cell.seeds > 1 else ONE_RUN
            influences = [entry.influence() for entry in entries]
            interval = interval_of(influences, design=design, seeds=spread)
            covered.append(interval.low <= AUROC <= interval.high)
            each.append(Estimated(entries, found, (), interval, None, "", spread))
        numbers.append((line_of(row), each))
    (ranking,) = uncertainty_rankings(numbers, design, ScoreOptions(seed=seed))
    excluded = len(ranking.compared) - len(ranking.members)
    return excluded, len(ranking.compared), float(np.mean(covered))


def line(cell, samples, pool):
    seeds = range(samples)
    null = list(pool.map(partial(judge, cell, 0.0), seeds, chunksize=4))
    fewer = seeds[: max(1, samples // 5)]
    power = list(pool.map(partial(judge, cell, BETTER), fewer, chunksize=4))
    wrong = 100 * np.mean([excluded > 0 for excluded, *_ in null])
    covered = 100 * np.mean([each[-1] for each in null])
    found = 100 * np.mean([excluded / (n - 1) for excluded, n, _ in power])
    kind = "copies" if cell.copies else "other items"
    runs = f"{cell.rows} x {cell.uncertainties}"
    shares = f"{wrong:.1f} | {covered:.1f} | {found:.0f}"
    return f"| {cell.items} | {kind} | {cell.seeds} | {runs} | {shares} |"


def main(arguments: Sequence[str] | None = None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked = parser.parse_args(arguments)
    print(
        "| items of each kind | shifted are | seeds | methods x uncertainties ", end=""
    )
    print("| an equal one excluded | covered | others excluded if one is better |")
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(asked.workers) as pool:
        for cell in CELLS:
            print(line(cell, asked.samples, pool), flush=True)


if __name__ == "__main__":
    main()
