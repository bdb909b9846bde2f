"""Do tie groups and intervals of tables whose rows have few seeds keep their promise?

`python bench/seeds.py` draws tables of rows that are truly equal, counts how often one
is excluded from the best and how often an interval holds the truth, then makes one row
better and counts how many of the others are excluded. Its parts: `rows` of single runs,
whose item errors are drawn in closed form, so that thousands of tables cost little;
`judged`, rows of items in pairs or alone, by the functions of the package;
`pools` of runs whose probabilities are averaged, judged by these functions too. It
ends with the tables of `docs/intervals.md`. `--quick` takes few samples of each. What
was counted stays in `--out`, so that a run resumes, and others may do a share of it.
"""

import argparse
import itertools
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
sys.path.insert(0, str(_HERE.parent))

import numpy as np
from scipy.special import expit, stdtrit

from qualms import scores
from qualms.inference import (
    Design,
    Influence,
    compare_gaps,
    confidence_set,
    influence_of,
    influence_replicates,
    interval_of,
    left_out_spread,
    sampling_design,
    seed_spread,
)
from qualms.scores.arguments import called_in_order
from qualms.spec import pools as drawn_pools

ROWS = (2, 6, 12, 20)
SEED_ERRORS = (0, 1, 3, 10)
"""Standard deviations of a seed, in errors by items."""
SHARED = 0.6
"""Of the variance by items, that all rows have in common."""
BETTER = 3.0
"""By how many true standard errors of a difference one row is better, for the power."""
REPLICATES = 200
OVERLAPPING = "3 of 6 runs, six times"
KINDS = ("normal", "skewness 1", "skewness 2")
TABLES = {2: 1.0, 6: 0.6, 12: 0.4, 20: 0.3}
"""Share of the samples that tables of so many rows take: many rows cost more."""
DESIGNS = ("2 seeds", "3 seeds", "5 seeds", "6 seeds", OVERLAPPING)
MARK = "<!-- Written by bench/seeds.py: do not edit up to the next mark. -->\n"
END = "<!-- End of what bench/seeds.py writes. -->\n"


def main() -> None:
    arguments = _arguments()
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    counted = Counted(out / "counts.jsonl")
    samples = 60 if arguments.quick else arguments.samples
    tables = []
    if "rows" in arguments.parts:
        chosen = arguments.kinds.split(","), arguments.designs.split(";")
        tables.append(rows_table(counted, chosen, samples))
    if "judged" in arguments.parts:
        tables.append(judged_table(counted, samples // 6))
    if "pools" in arguments.parts:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        spreads = [float(spread) for spread in arguments.spreads.split(",")]
        chosen = itertools.product(sizes, spreads)
        tables.append(pools_table(counted, chosen, max(20, samples // 20)))
    text = "\n".join(tables)
    print(text, flush=True)
    if arguments.docs:
        page = Path(arguments.docs)
        before, rest = page.read_text().split(MARK)
        page.write_text(before + MARK + "\n" + text + "\n" + END + rest.split(END)[1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="rows,judged,pools")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of effects of seeds")
    parser.add_argument("--designs", default=";".join(DESIGNS), help="by semicolon")
    parser.add_argument("--sizes", default=",".join(map(str, MEMBERS)), help="of pools")
    parser.add_argument("--spreads", default=",".join(map(str, SPREADS)))
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="build/seeds")
    parser.add_argument("--docs", default="", help="page whose tables are replaced")
    return parser.parse_args()


class Counted:
    """What was counted, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, work, *cell) -> dict:
        """Return what `work(*cell)` counts, or counted before."""
        key = [work.__name__, *cell]
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in map(json.loads, lines):
            if line["cell"] == key:
                return line["found"]
        found = work(*cell)
        with self.path.open("a") as file:
            file.write(json.dumps({"cell": key, "found": found}) + "\n")
        return found


def _rng(*key: object) -> np.random.Generator:
    return np.random.default_rng([int.from_bytes(str(p).encode()) % 2**63 for p in key])


def effects(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Effects of seeds with mean 0 and variance 1, normal or gamma distributed."""
    if kind == "normal":
        return rng.standard_normal(shape)
    form = 4.0 / float(kind.split()[1]) ** 2
    return (rng.gamma(form, 1.0, shape) - form) / math.sqrt(form)


# ---------------------------------------------------------------- rows of runs


def _runs_of(design: str) -> list[tuple[int, ...]]:
    """The runs of each repeat."""
    if design == OVERLAPPING:
        return [tuple(pool) for pool in drawn_pools(6, 3, 6, seed=0)]
    return [(run,) for run in range(int(design.split()[0]))]


def tables_of(cell, samples, rng, better=0.0):
    """Means (S, K) of rows, and the variance (S, K) that their seeds seem to add."""
    kind, design, rows, s = cell
    pools = _runs_of(design)
    runs = 1 + max(run for pool in pools for run in pool)
    weight = np.zeros((len(pools), runs))
    for place, pool in enumerate(pools):
        weight[place, list(pool)] = 1.0 / len(pool)
    effect = s * effects(kind, (samples, rows, runs), rng) @ weight.T
    spread = seed_spread(np.arange(len(pools)), pools)
    square = np.square(effect - effect.mean(axis=2, keepdims=True)).sum(axis=2)
    scale = (
        spread.variance / np.square(np.arange(len(pools)) - (len(pools) - 1) / 2).sum()
    )
    common = math.sqrt(SHARED) * rng.standard_normal((samples, 1))
    mean = math.sqrt(1 - SHARED) * rng.standard_normal((samples, rows)) + common
    mean += effect.mean(axis=2)
    true = s**2 * np.square(weight.mean(axis=0)).sum()
    mean[:, 0] -= better * math.sqrt(2 * (1 - SHARED) + 2 * true)
    return mean, square * scale, spread.freedom


def _largest(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The largest squared studentised difference of any two rows."""
    largest = np.zeros(np.broadcast_shapes(mean.shape, variance.shape)[:-1])
    for row in range(1, mean.shape[-1]):
        gap = np.square(mean[..., :row] - mean[..., row, None])
        seen = 2 * (1 - SHARED) + variance[..., :row] + variance[..., row, None]
        np.maximum(largest, (gap / seen).max(axis=-1), out=largest)
    return largest


def quantiles(rule, variance, freedom, rng):
    """The largest squared difference (S,) that equal rows show at 5 %."""
    samples, rows = variance.shape
    shape = (samples, REPLICATES, rows)
    noise = math.sqrt(1 - SHARED) * rng.standard_normal(shape, np.float32)
    observed = variance[:, None, :].astype(np.float32)
    true, seen = observed, observed
    if rule == "now":
        true = observed / np.sqrt(_chisquare(freedom, shape, rng))
        seen = true * _chisquare(freedom, shape, rng)
    drawn = _largest(
        noise + np.sqrt(true) * rng.standard_normal(shape, np.float32), seen
    )
    return np.sort(drawn, axis=1)[:, math.ceil(0.95 * (REPLICATES + 1)) - 1]


def _chisquare(freedom, shape, rng):
    """Chi-square over its degrees of freedom."""
    drawn = rng.standard_gamma(freedom / 2, shape, np.float32)
    return np.maximum(drawn * np.float32(2 / freedom), np.float32(1e-12))


def count_rows(kind: str, design: str, rows: int, s: float, samples: int) -> dict:
    """Share of tables, rows and worse rows: excluded, covered and excluded."""
    cell = kind, design, rows, s
    found = {}
    for rule in ("former", "now"):
        rng = _rng(kind, design, rows, s)
        mean, variance, freedom = tables_of(cell, samples, rng)
        known = freedom
        if rule == "former":  # Overlapping pools counted as independent ones.
            count = len(_runs_of(design))
            factor = _former_factor(design)
            variance, known = variance * factor, count - 1.0
        limit = quantiles(rule, variance, known, rng)
        covered = np.abs(mean) <= _reach(rule, variance, known)
        excluded = _largest(mean, variance) > limit
        few = max(1, samples // 4)
        mean, variance, _ = tables_of(cell, few, rng, BETTER)
        if rule == "former":
            variance = variance * factor
        limit = quantiles(rule, variance, known, rng)
        gap = mean[:, 1:] - mean[:, :1]
        seen = 2 * (1 - SHARED) + variance[:, 1:] + variance[:, :1]
        power = (gap > 0) & (gap**2 / seen > limit[:, None])
        found[rule] = [float(part.mean()) for part in (excluded, covered, power)]
    return found


def _former_factor(design: str) -> float:
    pools = _runs_of(design)
    values = np.arange(len(pools), dtype=float)
    return seed_spread(values).variance / seed_spread(values, pools).variance


def _reach(rule: str, variance: np.ndarray, freedom: float) -> np.ndarray:
    """How far the interval of a row reaches, whose error by items is 1."""
    if rule == "now":
        return np.sqrt(1.96**2 + stdtrit(freedom, 0.975) ** 2 * variance)
    total = 1.0 + variance
    joined = total**2 / (1 / 300 + variance**2 / freedom)
    return stdtrit(joined, 0.975) * np.sqrt(total)


def rows_table(counted: Counted, chosen: Sequence[list[str]], samples: int) -> str:
    lines = [
        "|Seeds|Runs|s|Excluded, K = 2|6|12|20|Covered|Power, K = 2|6|12|20|",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, design, s in itertools.product(*chosen, SEED_ERRORS):
        if kind != "normal" and (s == 0 or design in ("5 seeds", "2 seeds")):
            continue
        found = [
            counted.of(count_rows, kind, design, rows, s, int(samples * TABLES[rows]))
            for rows in ROWS
        ]
        cells = [
            [_both(each, place) for each in found] if place != 1 else [_cover(found)]
            for place in range(3)
        ]
        lines.append(f"|{kind}|{design}|{s}|" + "|".join(itertools.chain(*cells)) + "|")
    return "\n".join(lines) + "\n"


def _both(found: dict, place: int) -> str:
    former, now = (100 * found[rule][place] for rule in ("former", "now"))
    return f"{former:.0f} / {now:.1f}" if place == 0 else f"{former:.0f} / {now:.0f}"


def _cover(found: list[dict]) -> str:
    weight = np.array(ROWS, float)
    former, now = (
        100 * np.average([each[rule][1] for each in found], weights=weight)
        for rule in ("former", "now")
    )
    return f"{former:.1f} / {now:.1f}"


# ---------------------------------------------------------------- rows of items

ITEM_ROWS, ROW_ITEMS = 6, 200


def count_judged(clustered: bool, seeds: int, s: float, samples: int) -> dict:
    """Share of tables and rows: excluded and covered, by the functions themselves."""
    excluded = covered = 0.0
    units = ROW_ITEMS // 2 if clustered else ROW_ITEMS
    cluster = np.arange(ROW_ITEMS) // 2 if clustered else None
    design = sampling_design(ROW_ITEMS, cluster=cluster)
    for sample in range(samples):
        rng = _rng("judged", clustered, seeds, s, sample)
        unit = np.repeat(np.arange(units), ROW_ITEMS // units)
        common = math.sqrt(SHARED) * rng.standard_normal((units, 1))
        own = math.sqrt(1 - SHARED) * rng.standard_normal((units, ITEM_ROWS))
        loss = (common + own)[unit]
        effect = s * rng.standard_normal((ITEM_ROWS, seeds)) / math.sqrt(units)
        rows, spreads = {}, {}
        for row in range(ITEM_ROWS):
            mean = float(loss[:, row].mean())
            change = (loss[:, row] - mean) / ROW_ITEMS
            values = mean + effect[row]
            rows[str(row)] = [_influence(value, change) for value in values]
            spreads[str(row)] = seed_spread(values)
            interval = interval_of(rows[str(row)], design=design)
            covered += (interval.low <= 0.0 <= interval.high) / ITEM_ROWS
        drawn = influence_replicates(rows, design=design, replicates=500, seed=sample)
        values = {
            name: float(np.mean([i.value for i in r])) for name, r in rows.items()
        }
        group = confidence_set(values, drawn, better="lower", seeds=spreads)
        excluded += len(group.members) < ITEM_ROWS
    return {"excluded": excluded / samples, "covered": covered / samples}


def _influence(value: float, change: np.ndarray) -> Influence:
    return Influence(
        value=value, values=change, scale="linear", low=-math.inf, high=math.inf
    )


def judged_table(counted: Counted, samples: int) -> str:
    lines = ["|200 items|Seeds|s|Excluded, K = 6|Covered|", "|---|---|---|---|---|"]
    for clustered, seeds, s in itertools.product((False, True), (3, 6), (1, 3)):
        found = counted.of(count_judged, clustered, seeds, s, samples)
        shares = f"{100 * found['excluded']:.1f}|{100 * found['covered']:.1f}"
        kind = "in pairs" if clustered else "alone"
        lines.append(f"|{kind}|{seeds}|{s}|{shares}|")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- pools of runs

ITEMS = 400
POOLED = {
    "accuracy": (scores.accuracy, "higher"),
    "NLL": (scores.nll, "lower"),
    "AUROC": (scores.auroc, "higher"),
    "ECE": (scores.ece, "lower"),
}
MEMBERS = (3, 5)
SPREADS = (0.1, 0.4)
"""Standard deviations of how sure a run is, and how good."""
POOL_ROWS = (2, 6)


def members_of(count: int, size: int, spread: float, target, common, rng) -> np.ndarray:
    """Probabilities (count, size, N) of runs of pools, alike to some degree."""
    own = rng.standard_normal((count, 1, len(target)))
    each = rng.standard_normal((count, size, len(target)))
    skill = 1.0 + spread * rng.standard_normal((count, size, 1))
    sure = np.exp(spread * rng.standard_normal((count, size, 1)))
    sign = 2.0 * target - 1.0
    logit = 1.2 * skill * sign + 0.9 * common + 0.5 * own + 0.8 * each
    return expit(1.3 * sure * logit)


def pool_truth(size: int, spread: float, pools: int = 400) -> dict[str, float]:
    """The expected score of a pool, over items and runs."""
    rng = _rng("truth", size, spread)
    found: dict[str, list[float]] = {name: [] for name in POOLED}
    target = rng.random(4_000) < 0.5
    for _ in range(pools // 20):
        common = rng.standard_normal(len(target))
        target = rng.random(len(target)) < 0.5
        mean = members_of(20, size, spread, target, common, rng).mean(axis=1)
        for name, (score, _) in POOLED.items():
            if name == "ECE":
                continue
            found[name] += [called_in_order(score, prob, target) for prob in mean]
    # The ECE of a sample lies above that of its population by noise.
    target = rng.random(60_000) < 0.5
    for _ in range(pools // 20):
        common = rng.standard_normal(len(target))
        mean = members_of(2, size, spread, target, common, rng).mean(axis=1)
        found["ECE"] += [scores.ece(prob, target) for prob in mean]
    return {name: float(np.mean(values)) for name, values in found.items()}


def _spread_of(score, members, target):
    """The jackknife over runs, and the variance of single runs over their number."""
    size = len(members)
    left_out = [
        score(np.delete(members, run, axis=0).mean(axis=0), target)
        for run in range(size)
    ]
    return left_out_spread([left_out]), seed_spread(
        [called_in_order(score, p, target) for p in members]
    )


def count_pools(size: int, spread: float, samples: int) -> dict[str, dict[str, float]]:
    truth = pool_truth(size, spread)
    design = Design(items=ITEMS)
    keys = ("former", "jackknife", "members")
    found = {
        name: dict.fromkeys([*(f"covered, {k}" for k in keys), "n"], 0.0)
        | {f"excluded, {k}, {rows}": 0.0 for k in keys for rows in POOL_ROWS}
        for name in POOLED
    }
    most = max(POOL_ROWS)
    for sample in range(samples):
        rng = _rng("pools", size, spread, sample)
        target = rng.random(ITEMS) < 0.5
        common = rng.standard_normal(ITEMS)
        members = members_of(most, size, spread, target, common, rng)
        for name, (score, better) in POOLED.items():
            counted = found[name]
            pooled = members.mean(axis=1)
            influences = {
                str(row): influence_of(score, pooled[row], target)
                for row in range(most)
            }
            spreads = [_spread_of(score, runs, target) for runs in members]
            by_rule = {
                "former": [None] * most,
                "jackknife": [pair[0] for pair in spreads],
                "members": [pair[1] for pair in spreads],
            }
            counted["n"] += 1
            for rule, seeds in by_rule.items():
                for row in range(2):
                    interval = interval_of(
                        influences[str(row)], design=design, seeds=seeds[row]
                    )
                    held = interval.low <= truth[name] <= interval.high
                    counted[f"covered, {rule}"] += held / 2
                for rows in POOL_ROWS:
                    some = {str(row): influences[str(row)] for row in range(rows)}
                    group = _group(name, better, some, seeds[:rows], design, sample)
                    key = f"excluded, {rule}, {rows}"
                    counted[key] += len(group.members) < rows
    for counted in found.values():
        for key in counted:
            if key != "n":
                counted[key] *= 100 / counted["n"]
    return found


def _group(name, better, influences, seeds, design, sample):
    if name == "ECE":
        if seeds[0] is None:
            return compare_gaps(influences, design=design, seed=sample).group
        by_name = dict(zip(influences, seeds, strict=True))
        return compare_gaps(influences, design=design, seed=sample, seeds=by_name).group
    drawn = influence_replicates(influences, design=design, replicates=500)
    pairs = zip(influences, seeds, strict=True)
    spreads = {row: spread for row, spread in pairs if spread is not None}
    values = {row: influence.value for row, influence in influences.items()}
    return confidence_set(values, drawn, better=better, seeds=spreads)


def pools_table(
    counted: Counted, chosen: Iterable[tuple[int, float]], samples: int
) -> str:
    lines = [
        "|Score|Runs of the pool|Spread of runs|Excluded, K = 2|6|Covered|",
        "|---|---|---|---|---|---|",
    ]
    for size, spread in chosen:
        found = counted.of(count_pools, size, spread, samples)
        for name, shares in found.items():
            rules = ("former", "jackknife", "members")
            three = partial(_three, shares, rules)
            cells = [
                *(three("excluded, {}, " + str(rows)) for rows in POOL_ROWS),
                three("covered, {}"),
            ]
            lines.append(f"|{name}|{size}|{spread}|" + "|".join(cells) + "|")
    return "\n".join(lines) + "\n"


def _three(counted: dict, rules: tuple[str, ...], key: str) -> str:
    return " / ".join(f"{counted[key.format(rule)]:.0f}" for rule in rules)


if __name__ == "__main__":
    main()
