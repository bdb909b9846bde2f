"""How often intervals of rank correlations over runs cover those of other methods.

    python bench/correlations.py

Methods are drawn by chance, and their runs lie around them. The truth is the rank
correlation over the runs of very many methods.
"""

import numpy as np

from qualms.benchmarks.url._correlations import correlated
from qualms.scores import spearman

SAMPLES = 300


def draw_runs(rng, methods, runs, correlation):
    """Return two scores (methods * runs, 2) of every run, and its method."""
    first, noise = rng.normal(size=(2, methods, 1))
    second = correlation * first + np.sqrt(1 - correlation**2) * noise
    within = 0.3 * (runs > 1)
    scores = [
        (side + within * rng.normal(size=(methods, runs))).ravel()
        for side in (first, second)
    ]
    return np.stack(scores, 1), np.repeat(np.arange(methods), runs).astype(str)


def main():
    """Print coverage and median width."""
    print("| methods | runs of each | correlation | covered | width |")
    print("|---|---|---|---|---|")
    for methods in (8, 11, 20):
        for runs in (1, 3):
            for correlation in (0.0, 0.5, 0.8):
                rng = np.random.default_rng([methods, runs, int(10 * correlation)])
                points, _ = draw_runs(rng, 20_000, runs, correlation)
                truth = spearman(*points.T)
                ends = []
                for _ in range(SAMPLES):
                    points, names = draw_runs(rng, methods, runs, correlation)
                    found = correlated([tuple(p) for p in points], [*names])
                    ends.append((found.low, found.high))
                low, high = np.array(ends)[~np.isnan(ends).any(1)].T
                covered = 100 * np.mean((low <= truth) & (truth <= high))
                print(
                    f"| {methods} | {runs} | {correlation} | {covered:.1f} |"
                    f" {np.median(high - low):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
