"""Results in which every number is the published one, on the paper's own datasets."""

from qualms.benchmarks.regression import regression
from qualms.evaluate.results import BenchmarkResults, Cell, Key
from qualms.published import published

BENCHMARK = regression()
PAPER = BENCHMARK.presets["paper"]
CITIES = ("aerial_building_pixels_kitsap", "aerial_building_pixels_vienna")


def results_as_published(*, simulated=False, preset=PAPER):
    """A cell for each number of the tables, twice: two repeats around its mean."""
    rows = {row.label: row.name for row in BENCHMARK.rows}
    names = {v.label: v.name for v in preset.variants if v.simulated == simulated}
    cells = {}
    for number in published("regression").numbers:
        at = number.where
        if at["dataset"] not in names:
            continue
        name, row = names[at["dataset"]], rows[at["method"]]
        settings = f"alpha={at['alpha']:g}"
        add(cells, Key(name, row, settings, at["metric"]), number.mean)
        if (row, at["metric"]) == ("conformal", "val_mae"):
            add(cells, Key(name, row, settings, "test_mae"), 2 * number.mean)
    return BenchmarkResults(benchmark=BENCHMARK, preset=preset, cells=cells)


def add(cells, key, value):
    low, high = 0.99 * value, 1.01 * value
    cells[key] = Cell(
        key=key, values=(low, high), as_published=(value,), low=low, high=high
    )
