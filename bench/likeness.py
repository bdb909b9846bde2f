"""Measure the level and the power of the check of new items against a plan.

`python bench/likeness.py` draws pairs of a plan's items and new items from populations
with ties, rare classes and clusters, applies the check of `qualms refer --apply`, and
counts verdicts. It prints the tables that stand in `bench/RESULTS.md`. `--times` sets
how many pairs are drawn of each kind, `--only` the beginning of their names.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from qualms.inference import Design, exact_interval
from qualms.referral._applied import measure_workload
from qualms.referral._items import one_per_cluster
from qualms.referral._likeness import check_likeness, reference_sample
from qualms.scores import Estimate

SIZES = ((200, 50), (1000, 200), (1000, 1000), (2000, 30))
BUDGET = 0.2


class Items(NamedTuple):
    """Items of a file."""

    uncertainty: np.ndarray
    predicted: np.ndarray
    cluster: np.ndarray | None = None


Population = Callable[[np.random.Generator, int], Items]


def binary(*, blur: float = 0.0, rate: float = 0.3, digits: int = 12) -> Population:
    """Return entropies of a network for two classes; few `digits` make ties."""

    def draw(rng: np.random.Generator, n: int) -> Items:
        side = np.where(rng.random(n) < rate, 1.5, -1.5)
        evidence = side + (1.0 + blur) * rng.standard_normal(n)
        prob = 1.0 / (1.0 + np.exp(-2.0 * evidence))
        entropy = -prob * np.log(prob) - (1.0 - prob) * np.log1p(-prob)
        return Items(entropy.round(digits), (prob > 0.5).astype(np.int64))

    return draw


def many_classes(*, classes: int = 100, tilt: float = 0.0) -> Population:
    """Return classes of very different shares, and an uncertainty of five values."""
    shares = 1.0 / np.arange(1, classes + 1) ** (1.0 + tilt)

    def draw(rng: np.random.Generator, n: int) -> Items:
        predicted = rng.choice(classes, n, p=shares / shares.sum())
        return Items(rng.geometric(0.4, n).clip(max=5).astype(float), predicted)

    return draw


def patients(*, photographs: tuple[int, int], shift: float = 0.0) -> Population:
    """Return clusters of so many photographs, alike within each; `n` are clusters."""

    def draw(rng: np.random.Generator, n: int) -> Items:
        size = rng.integers(photographs[0], photographs[1] + 1, n)
        cluster = np.repeat(np.arange(n), size)
        noise = rng.standard_normal(n)[cluster], rng.standard_normal(len(cluster))
        uncertainty = noise[0] + 0.5 * noise[1] + shift
        positive = uncertainty + rng.standard_normal(len(cluster)) > 1
        return Items(uncertainty, positive.astype(np.int64), cluster)

    return draw


LEVEL = {
    "two classes": (binary(), binary()),
    "two classes, entropy rounded to 0.1": (binary(digits=1), binary(digits=1)),
    "100 classes, few values": (many_classes(), many_classes()),
    "patients, 1 to 5 photographs": (
        patients(photographs=(1, 5)),
        patients(photographs=(1, 5)),
    ),
    "patients, 4 photographs, now 1": (
        patients(photographs=(4, 4)),
        patients(photographs=(1, 1)),
    ),
}
POWER = {
    "blurred images (noise 1.5 times)": (binary(), binary(blur=0.5)),
    "blurred images (noise 2 times)": (binary(), binary(blur=1.0)),
    "30 % positives, now 40 %": (binary(), binary(rate=0.4)),
    "30 % positives, now 60 %": (binary(), binary(rate=0.6)),
    "100 classes, rare ones rarer": (many_classes(), many_classes(tilt=0.3)),
    "patients, uncertainty 0.5 higher": (
        patients(photographs=(1, 5)),
        patients(photographs=(1, 5), shift=0.5),
    ),
}


def verdict(pair: tuple[Population, Population], sizes: tuple[int, int], seed: int):
    rng = np.random.default_rng(seed)
    plan, new = (draw(rng, n) for draw, n in zip(pair, sizes, strict=True))
    threshold = np.quantile(plan.uncertainty, 1.0 - BUDGET, method="higher")
    refers = plan.uncertainty >= threshold
    design = Design(items=len(refers), cluster=plan.cluster)
    low, high = exact_interval(refers, design=design)
    planned = Estimate(value=refers.mean(), low=low, high=high, undefined=0.0)
    refers_now = new.uncertainty >= threshold
    work = measure_workload(refers_now, new.cluster, planned, 0.95)
    classes = int(max(plan.predicted.max(), new.predicted.max())) + 1
    samples = (_sample(each, classes, seed) for each in (plan, new))
    check = check_likeness(*samples, change=work.change, permutations=199, seed=seed)
    return check.verdict, any(each.differs for each in check.departures)


def _sample(items: Items, classes: int, seed: int):
    index = np.arange(len(items.uncertainty))
    if items.cluster is not None:
        keys = (items.predicted, items.uncertainty)
        index = one_per_cluster(items.cluster, keys, seed)
    uncertainty, predicted = items.uncertainty[index], items.predicted[index]
    return reference_sample(uncertainty, predicted, classes, seed)


def table(cases: dict[str, tuple[Population, Population]], times: int) -> None:
    heads = " | ".join(f"{plan:,} and {new:,}" for plan, new in SIZES)
    print(f"| items | {heads} |\n|---|{'---:|' * len(SIZES)}")
    for name, pair in cases.items():
        cells = [table_cell(pair, sizes, times) for sizes in SIZES]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def table_cell(
    pair: tuple[Population, Population], sizes: tuple[int, int], times: int
) -> str:
    """Return the percentage beyond chance with its interval, and that of verdicts."""
    results = [verdict(pair, sizes, seed) for seed in range(times)]
    differ = sum(different for _, different in results)
    low, high = binomtest(differ, times).proportion_ci(method="wilson")
    small, few = (
        100 * sum(each == word for each, _ in results) / times
        for word in ("slightly unlike", "too few items")
    )
    ends = f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{100 * differ / times:.1f} ({ends}); {small:.0f}, {few:.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()

    def chosen(cases):
        return {k: v for k, v in cases.items() if k.startswith(arguments.only)}

    print("Of the same population, in percent of pairs:\n")
    table(chosen(LEVEL), arguments.times)
    print("\nOf another population:\n")
    table(chosen(POWER), max(1, arguments.times // 4))
