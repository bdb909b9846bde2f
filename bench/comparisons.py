"""Do marks, intervals and findings of tables whose rows have few seeds hold?

`python bench/comparisons.py` draws tables of rows of accuracy .8 on 1,000 items, judges
them by the functions of the package, and prints the table of `docs/intervals.md`.
`hard` is the share of an item's margin that all rows have in common, `own` that of the
row, and the rest is of a single run; `seeds` says how the skill of runs varies.
"""

import argparse
import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import ttest_ind

from qualms.inference import compare_rows, far_apart, mean_influence

ITEMS, ACCURACY, BETTER = 1_000, 0.8, 0.02
COLLAPSED = 0.5
"""Accuracy that a run loses when it collapses."""
CELLS = (
    (2, 3, 0.8, 0.0, "none"),
    (2, 3, 0.5, 0.25, "normal"),
    (2, 3, 0.5, 0.25, "log-normal"),
    (2, 5, 0.8, 0.0, "none"),
    (2, 5, 0.5, 0.25, "normal"),
    (2, 5, 0.5, 0.25, "collapse"),
    (6, 3, 0.8, 0.0, "none"),
    (6, 3, 0.5, 0.25, "normal"),
    (6, 3, 0.5, 0.25, "log-normal"),
    (6, 5, 0.8, 0.0, "none"),
    (6, 5, 0.5, 0.25, "normal"),
    (6, 5, 0.5, 0.25, "collapse"),
    (20, 3, 0.5, 0.25, "normal"),
)
"""Rows, runs of each, `hard`, `own`, `seeds`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    samples = parser.parse_args().samples
    print(
        "|Rows|Runs|Common|Own|Seeds|Excluded|Covered|Left out|Ranges|Welch|Disagree|"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for cell in CELLS:
        found = count(*cell, samples=max(100, samples * 2 // cell[0]))
        print(f"|{'|'.join(map(str, (*cell, *found)))}|", flush=True)


def runs_of(rng, kind, accuracy, runs, common):
    """Errors (runs, items) of the runs of one row."""
    hard, own, seeds = kind
    margin = math.sqrt(hard) * common + math.sqrt(own) * rng.standard_normal(ITEMS)
    margin = margin + math.sqrt(1 - hard - own) * rng.standard_normal((runs, ITEMS))
    limit = np.full(runs, ndtri(accuracy))
    if seeds == "normal":
        limit += 0.05 * rng.standard_normal(runs)
    if seeds == "log-normal":
        limit -= 0.05 * (np.exp(rng.standard_normal(runs)) - math.exp(0.5)) / 2.16
    if seeds == "collapse":
        limit = np.where(rng.random(runs) < 0.2, ndtri(accuracy - COLLAPSED), limit)
    return (margin > limit[:, None]).astype(float)


def count(rows, runs, hard, own, seeds, *, samples):
    """Shares in %; of rows that are excluded where one is better by 2 points, too."""
    excluded = covered = differences = left_out = far = disagree = 0
    welch = {0.0: 0.0, BETTER: 0.0}
    for better in (0.0, BETTER):
        for sample in range(samples):
            rng = np.random.default_rng([sample, rows, runs, int(1e3 * better)])
            common = rng.standard_normal(ITEMS)
            errors = {
                str(row): runs_of(
                    *(rng, (hard, own, seeds), ACCURACY + better * (row == 0)),
                    *(runs, common),
                )
                for row in range(rows)
            }
            table = {n: [mean_influence(run) for run in e] for n, e in errors.items()}
            known = {
                name: row
                for name, row in table.items()
                if not far_apart([run.value for run in row], row)
            }
            far += (rows - len(known)) / (2 * samples * rows)
            means = [errors[str(row)].mean(axis=1) for row in range(rows)]
            p = [ttest_ind(means[0], m, equal_var=False).pvalue for m in means[1:]]
            welch[better] += 100 * np.mean(np.array(p) <= 0.05) / samples
            if len(known) < 2:
                continue
            group, gaps = compare_rows(known, better="lower")
            gone = set(group.eliminated)
            if better:
                left_out += len(gone - {"0"}) / (rows - 1) / samples
            else:
                excluded += bool(gone) / samples
            for name, gap in gaps.items():
                agrees = (name in gone) == (not gap.low <= 0 <= gap.high)
                disagree += not (agrees and (name in gone) == (gap.p <= 0.05))
                truth = better * ((group.best == "0") - (name == "0"))
                if name != group.best:
                    covered += gap.low <= truth <= gap.high
                    differences += 1
    shares = excluded, covered / differences, left_out, far
    welchs = " / ".join(f"{share:.1f}" for share in welch.values())
    return (*(f"{100 * share:.1f}" for share in shares), welchs, disagree)


if __name__ == "__main__":
    main()
