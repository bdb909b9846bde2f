"""Results of the VALUES benchmark in which every number is the published one."""

import math

import numpy as np
from qualms.report.papers.values.settings import (
    ALL_SCORES,
    dataset_of,
    published_components,
    theirs,
)

from qualms.benchmarks import settings_text
from qualms.benchmarks.values import values
from qualms.evaluate import MapSlice, Scatter
from qualms.evaluate.results import BenchmarkResults, Cell, DrawnKey, Key

BENCHMARK = values()
PAPER, SMALL, DEMO = (BENCHMARK.presets[name] for name in ("paper", "small", "demo"))
SIDE = 16


def results_as_published(*, preset=PAPER, drawn=False):
    """A cell for each published number, with three repeats around its mean."""
    cells = {}
    for variant in preset.variants:
        dataset = dataset_of(variant)
        for one in known_components(dataset):
            for score in ALL_SCORES:
                value = theirs(dataset, one, score)
                if math.isfinite(value):
                    add(cells, key_of(variant.name, one, score), value)
    return BenchmarkResults(
        benchmark=BENCHMARK,
        preset=preset,
        cells=cells,
        slices=dict(slices(preset)) if drawn else {},
        scatters=dict(scatters(preset)) if drawn else {},
    )


def known_components(dataset):
    return published_components("toy2" if dataset == "toy1" else dataset)


def key_of(variant, one, score):
    """Where the protocol has it: at the settings that enter."""
    settings = one.settings
    if score.name in ("dice", "ged"):
        settings = {}
    elif score.name in ("ncc", "ace"):
        settings = {"measure": one.measure}
    return Key(variant, one.row, settings_text(settings), score.keys[0])


def add(cells, key, value):
    cells[key] = Cell(
        key=key,
        values=(value - 0.01, value, value + 0.01),
        as_published=(value, value, value),
        low=value - 0.05,
        high=value + 0.05,
    )


def blob(size, at=(0.5, 0.5)):
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    return np.exp(-((y - at[0]) ** 2 + (x - at[1]) ** 2) / size)


def slices(preset):
    """An item of each subset, with the maps of every row's measures."""
    for variant in preset.variants:
        for subset in ("in_domain", "shifted"):
            if subset == "shifted" and not variant.shift:
                continue
            for name in preset.rows:
                row = BENCHMARK.row(name)
                if row.stage is None and row.settings.get("measures"):
                    key = DrawnKey(variant.name, name, "", subset, "most_disputed")
                    yield key, made_slice(row, subset)


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


def scatters(preset):
    rng = np.random.default_rng(0)
    for variant in preset.variants:
        for name in preset.rows:
            row = BENCHMARK.row(name)
            measures = row.settings.get("measures", {}).values()
            x = rng.uniform(100, 5000, 40)
            for about in ("size", *(f"summed/{m}" for m in measures)):
                noise = rng.uniform(0.8, 1.2, 40)
                key = DrawnKey(variant.name, name, "", "in_domain", about)
                yield (
                    key,
                    Scatter(
                        name=about,
                        label=about,
                        subset="in_domain",
                        x_label="pixels",
                        x=x,
                        y=x * noise,
                    ),
                )
