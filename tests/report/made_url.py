"""Results of the URL benchmark in which every number is the published one."""

from qualms.evaluate.results import BenchmarkResults, Cell, Cost, Key
from qualms.report.papers.url.settings import (
    BY_R_AUROC,
    BY_RECALL,
    MAIN_SCORES,
    SHOTS,
    UPSTREAM_SCORES,
    released_number,
)

from qualms.benchmarks.url import url

BENCHMARK = url()
PAPER, SMALL, DEMO = (BENCHMARK.presets[name] for name in ("paper", "small", "demo"))


def url_results_as_published(preset=PAPER):
    """A cell for each published number, with three repeats around its mean."""
    cells, costs = {}, {}
    for variant in preset.variants:
        source = BY_RECALL if variant.selection == "recall" else BY_R_AUROC
        for row in variant.rows:
            if BENCHMARK.row(row).stage is not None:
                _add_second(cells, variant, row)
                continue
            for score in (*MAIN_SCORES, *UPSTREAM_SCORES):
                number = released_number(variant, row, score.metric, source)
                if number is not None:
                    _add(cells, Key(variant.name, row, "", score.name), number.mean)
            costs[variant.name, row] = _cost(variant, row)
    return BenchmarkResults(
        benchmark=BENCHMARK, preset=preset, cells=cells, costs=costs
    )


def _add_second(cells, variant, row):
    known = BENCHMARK.row(row).settings
    for k in SHOTS:
        if known["shots"] == k:
            metric = f"r_auroc_few{k}"
            first = known["first"]
            number = released_number(variant, first, metric, "released_few_shot")
            _add(cells, Key(variant.name, row, "", "r_auroc"), number.mean)
    if row.startswith("ce_many"):
        _add(cells, Key(variant.name, row, "", "r_auroc"), 0.684)
        _add(cells, Key(variant.name, row, "", "recall_at_1"), 0.538)


def _cost(variant, row):
    found = [
        released_number(variant, row, metric, "table1").mean
        for metric in ("params_millions", "epoch_time_s", "inference_ms_per_sample")
    ]
    return Cost(
        seconds=1.0,
        parameters=round(1e6 * found[0]),
        per_epoch=found[1],
        per_item=found[2] / 2e3,
        per_crop=found[2] / 2e3,
    )


def _add(cells, key, value):
    cells[key] = Cell(
        key=key,
        values=(value - 0.01, value, value + 0.01),
        as_published=(value, value, value),
        low=value - 0.02,
        high=value + 0.02,
    )
