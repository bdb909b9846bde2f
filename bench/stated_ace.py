"""How often the interval of `stated_ace` holds, on soft discs drawn by chance.

    python bench/stated_ace.py

A population of 4,000 discs whose raters draw by the stated chances (sharpness 1) or by
softer ones (an overconfident model). Samples of it are judged as `qualms score` judges
files. The truth is that of the population, over the bins that samples of this size are
expected to fill: what lies in rarer bins is no part of the promise.
"""

import numpy as np

from qualms.evaluate.segmented._items import FEWEST, _stated_entry
from qualms.inference import interval_of
from qualms.scores.platt import stated_gaps

DISCS, SAMPLES, SIDE = 4_000, 300, 64


def gaps_of_disc(rng, sharp, raters):
    """(2, B) counts and gaps of one disc."""
    centre = rng.uniform(20, 44, (2, 1, 1))
    away = rng.uniform(5, 12) - np.hypot(*(np.mgrid[:SIDE, :SIDE] - centre))
    away = away / 2 + rng.normal(0, 0.3)
    chance, stated = (1 / (1 + np.exp(-k * away)) for k in (1.0, sharp))
    drawn = rng.random((raters, SIDE, SIDE)) < chance
    right = (drawn == (stated >= 0.5)).sum(axis=0)
    total = np.full(right.shape, raters)
    return np.array(stated_gaps(np.stack([1 - stated, stated]), right, total=total))


def held(rng, gaps, items):
    """Share of samples of `items` discs whose interval holds the truth, and that."""
    size, gap = gaps.sum(axis=0)
    filled = size * items / DISCS >= FEWEST
    truth = np.abs(gap[filled] / size[filled]).mean()
    hits = 0
    for _ in range(SAMPLES):
        size, gap = gaps[rng.integers(0, DISCS, items)].transpose(1, 2, 0)
        entry = _stated_entry(size, gap, "all", np.arange(items))
        found = interval_of(entry.influence())
        hits += found.low <= truth <= found.high
    return truth, hits / SAMPLES


def main():
    """Print a table."""
    rng = np.random.default_rng(0)
    print("| sharpness | raters | items | truth | held |\n|---|---|---|---|---|")
    for sharp in (1.0, 1.3, 3.0):
        for raters in (1, 4):
            discs = [gaps_of_disc(rng, sharp, raters) for _ in range(DISCS)]
            for items in (20, 60):
                truth, share = held(rng, np.array(discs), items)
                print(f"| {sharp} | {raters} | {items} | {truth:.4f} | {share:.1%} |")


if __name__ == "__main__":
    main()
