"""Results of the URL benchmark in which every number is the published one."""

from qualms.benchmarks.url import url
from qualms.benchmarks.url._rows import HALF
from qualms.benchmarks.url._settings import (
    BY_R_AUROC,
    BY_RECALL,
    FEW_SHOT,
    MAIN_SCORES,
    R_AUROC,
    RECALL,
    UPSTREAM_SCORES,
    UrlStudy,
)
from qualms.evaluate.benchmark_results import BenchmarkResults, Cost
from qualms.results import Result, ResultsTable, result

BENCHMARK = url()
PAPER, SMALL, DEMO = (BENCHMARK.plan(name) for name in ("paper", "small", "demo"))


def url_results_as_published(plan=PAPER):
    """A result for each published number, with three repeats around its mean.

    Lines that the paper has no number of were not run.
    """
    empty = BenchmarkResults(plan=plan, table=ResultsTable.of(()))
    made, costs = [], {}
    for line in plan.lines:
        if line.row.stage is not None:
            numbers = _second(empty, line)
        else:
            numbers = _first(empty, line)
            cost = _cost(empty, line)
            if cost is not None:
                costs[line.variant.name, line.row.name] = cost
        of_line = [around(line, score, value) for score, value in numbers]
        made += of_line or [Result(labels=line.labels, why="was not run")]
    return BenchmarkResults(plan=plan, table=ResultsTable.of(made), costs=costs)


def around(line, score, value):
    return result(
        {**line.labels, **score.labels},
        (value - 0.01, value, value + 0.01),
        released_values=(value, value, value),
        low=value - 0.02,
        high=value + 0.02,
    )


def _first(empty, line):
    study, variant, row = UrlStudy(empty), line.variant, line.row.name
    source = BY_RECALL if variant.selection == "recall" else BY_R_AUROC
    for score in (*MAIN_SCORES, *UPSTREAM_SCORES):
        number = study.released(variant, row, score, source)
        if number is not None:
            yield score, number.value


def _second(empty, line):
    labels = line.row.labels
    if labels["shots"] == HALF:
        yield R_AUROC, 0.684
        yield RECALL, 0.538
        return
    number = UrlStudy(empty).released(
        *(line.variant, labels["first"], R_AUROC, FEW_SHOT), shots=labels["shots"]
    )
    yield R_AUROC, number.value


def _cost(empty, line):
    labels = {"source": "table1", "backbone": line.variant.labels.get("backbone")}
    numbers = [
        UrlStudy(empty).printed(**labels, row=line.row.name, score=score)
        for score in ("params_millions", "epoch_time_s", "inference_ms_per_sample")
    ]
    if None in numbers:
        return None
    millions, epoch, both = (number.value for number in numbers)
    return Cost(
        seconds=1.0,
        parameters=round(1e6 * millions),
        per_epoch=epoch,
        per_item=both / 2e3,
        per_crop=both / 2e3,
    )
