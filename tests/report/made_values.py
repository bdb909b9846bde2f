"""Results of the VALUES benchmark in which every number is the published one."""

import numpy as np

from qualms.benchmarks.values import values
from qualms.benchmarks.values._settings import DATA, paper_numbers
from qualms.evaluate import MapSlice, Scatter
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Labelled
from qualms.results import ResultsTable, result

BENCHMARK = values()
PAPER, SMALL, DEMO = (BENCHMARK.plan(name) for name in ("paper", "small", "demo"))
SIDE = 16
ELSEWHERE = {"table", "dataset", *DATA}
"""Labels of published numbers that are not those of ours."""


def results_as_published(*, plan=PAPER, drawn=False):
    """A result for each published number, with three repeats around its mean."""
    empty = BenchmarkResults(plan=plan, table=ResultsTable.of(()))
    made = {}
    for line in first_lines(plan):
        numbers = paper_numbers(empty).where(
            dataset=line.variant.label, row=line.row.name
        )
        for number in numbers:
            own = {n: v for n, v in number.labels.items() if n not in ELSEWHERE}
            labels = {**line.labels, **own}
            made.setdefault(tuple(sorted(labels.items())), around(labels, number.value))
    return BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(made.values()),
        slices=Labelled.of(slices(plan) if drawn else ()),
        scatters=Labelled.of(scatters(plan) if drawn else ()),
    )


def first_lines(plan):
    """The lines of first trainings: those of rows with measures."""
    return [line for line in plan.lines if line.row.settings.get("measures")]


def around(labels, value):
    return result(
        labels,
        (value - 0.01, value, value + 0.01),
        released_values=(value, value, value),
        low=value - 0.05,
        high=value + 0.05,
    )


def blob(size, at=(0.5, 0.5)):
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    return np.exp(-((y - at[0]) ** 2 + (x - at[1]) ** 2) / size)


def slices(plan):
    """An item of each subset, with the maps of every row's measures."""
    for variant in plan.variants:
        for subset in ("in_domain", "shifted"):
            if subset == "shifted" and not variant.shift:
                continue
            for row in plan.rows:
                if row.stage is None and row.settings.get("measures"):
                    labels = {"variant": variant.name, "row": row.name}
                    yield {**labels, "subset": subset}, made_slice(row, subset)


def made_slice(row, subset):
    raters = np.stack([blob(0.05) > level for level in (0.3, 0.5, 0.7)])
    measures = row.settings["measures"].values()
    return MapSlice(
        name="most_disputed",
        subset=subset,
        item="3",
        at=5,
        raters=raters.astype(np.uint8),
        predicted=raters[1].astype(np.uint8),
        disagreement=raters.var(axis=0).astype(np.float32),
        uncertainty={m: 0.6 * blob(0.1).astype(np.float32) for m in measures},
    )


def scatters(plan):
    rng = np.random.default_rng(0)
    for variant in plan.variants:
        for row in plan.rows:
            x = rng.uniform(100, 5000, 40)
            measures = row.settings.get("measures", {})
            of_type = [{"type": kind, "measure": m} for kind, m in measures.items()]
            for about in (
                {"name": "size"},
                *({"name": "summed", **t} for t in of_type),
            ):
                labels = {"variant": variant.name, "row": row.name, **about}
                noise = rng.uniform(0.8, 1.2, 40)
                yield (
                    {**labels, "subset": "in_domain"},
                    Scatter(
                        name=about["name"],
                        label=about["name"],
                        subset="in_domain",
                        x_label="pixels",
                        x=x,
                        y=x * noise,
                    ),
                )
