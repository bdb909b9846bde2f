"""Results in which every number is the published one, on the paper's own datasets."""

from qualms.benchmarks.regression import regression
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.published import published
from qualms.results import Result, ResultsTable, result

BENCHMARK = regression()
PAPER, SMALL = BENCHMARK.plan("paper"), BENCHMARK.plan("small")
NUMBERS = published(BENCHMARK.published).table
CITIES = ("aerial_building_pixels_kitsap", "aerial_building_pixels_vienna")


def results_as_published(*, simulated=False, plan=PAPER):
    """A result for each number of the tables: two repeats around its mean.

    Lines of other data, and those beyond the paper, were not run.
    """
    made = {}
    for line in plan.lines:
        names = {name: line.labels[name] for name in ("dataset", "row", "alpha")}
        printed = NUMBERS.where(**names)
        if line.variant.simulated != simulated or not len(printed):
            made[key_of(line)] = Result(labels=line.labels, why="was not run")
            continue
        for number in printed:
            subset, score = number.labels["subset"], number.labels["score"]
            add(made, line, subset, score, number.value)
            if (line.row.name, subset, score) == ("conformal", "val", "mae"):
                add(made, line, "test", "mae", 2 * number.value)
    return BenchmarkResults(plan=plan, table=ResultsTable.of(made.values()))


def key_of(line):
    return line.variant.name, line.row.name, line.labels["alpha"]


def add(made, line, subset, score, value):
    """Put a number among others, in place of the one with the same labels."""
    low, high = 0.99 * value, 1.01 * value
    made[*key_of(line), subset, score] = result(
        {**line.labels, "subset": subset, "score": score},
        (low, high),
        released_values=(value,),
        low=low,
        high=high,
    )
