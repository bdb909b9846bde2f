"""The regression benchmark names what exists, and runs no more than it needs."""

import inspect
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plans import line_of, part_of, run_of
from qualms.benchmarks.regression import regression
from qualms.benchmarks.regression._rows import VARIATIONS
from qualms.launch import RunRequest, plans_of
from qualms.published import published
from qualms.shelf import find

BENCHMARK = regression()
PRESETS = list(BENCHMARK.presets.values())
PAPER = BENCHMARK.presets["paper"]
NUMBERS = published(BENCHMARK.published).table
GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "regression.json").read_text("utf-8")
)["cases"]
each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)


def options(shelf, part):
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def test_it_is_on_the_shelf():
    again = find("benchmarks", "regression")()
    assert (again.name, again.rows) == (BENCHMARK.name, BENCHMARK.rows)


@each_preset
def test_datasets_exist_and_take_their_options(preset):
    for variant in preset.variants:
        assert not options("datasets", variant.dataset), variant.name


@each_preset
def test_methods_and_networks_exist_and_take_their_options(preset):
    pytest.importorskip("torch")
    for spec in BENCHMARK.plan(preset.name).runs:
        assert not options("methods", spec.method)
        assert not options("networks", spec.network)


@each_preset
def test_every_run_is_there_once(preset):
    hashes = [spec.hash for spec in BENCHMARK.plan(preset.name).runs]
    assert len(set(hashes)) == len(hashes) > 0


@each_preset
def test_rows_and_variants_have_names_of_their_own(preset):
    assert len(set(preset.rows)) == len(preset.rows)
    assert len({variant.name for variant in preset.variants}) == len(preset.variants)
    assert len({row.label for row in BENCHMARK.rows}) == len(BENCHMARK.rows)


def test_rows_are_called_what_the_paper_calls_them():
    printed = set(NUMBERS.distinct("row"))
    assert printed == {row.name for row in BENCHMARK.rows if not row.beyond}


@pytest.mark.parametrize("simulated", [False, True])
def test_the_paper_preset_has_every_table(simulated):
    wanted = set(NUMBERS.pivot(("dataset", "alpha"), ()).rows)
    synthetic = {place for place in wanted if place[0].startswith(("Cells", "Chair"))}
    found = {
        (variant.label, alpha)
        for variant in PAPER.variants
        if variant.simulated == simulated and variant.label in dict(wanted)
        for alpha in (at["alpha"] for at in variant.at)
    }
    assert found == (synthetic if simulated else wanted)


def test_pools_are_the_index_lists_of_the_released_code():
    lists = [list(pool) for pool in PAPER.pools]
    assert lists == GOLDEN["model_selection"]["runs"]


def test_runs_that_no_pool_asks_for_are_left_out():
    runs = BENCHMARK.plan("paper").runs
    specs = [s for s in runs if s.dataset.name == "brain_tumour_pixels"]
    kinds = Counter(
        (
            s.method.name,
            s.method.options.get("alpha"),
            s.network.options.get("spectral"),
        )
        for s in specs
    )
    assert kinds == {
        ("map", None, None): 16,
        ("gaussian", None, None): 16,
        ("gaussian", None, 3.0): 5,
        ("quantile", 0.1, None): 5,
        ("quantile", 0.2, None): 5,
        ("quantile", 0.05, None): 5,
        ("mc_dropout", None, None): 5,
        ("laplace", None, None): 5,
    }


def test_the_paper_trains_one_kind_for_each_alpha_only():
    plan = BENCHMARK.plan("paper")
    assert line_of(plan, "cells", "quantile", alpha=0.2).pools
    assert not line_of(BENCHMARK.plan("demo"), "cells", "quantile", alpha=0.2).pools
    for alpha in (0.1, 0.2):
        run = line_of(plan, "cells", "quantile", alpha=alpha).runs[0]
        assert run.method.options["alpha"] == alpha


@each_preset
def test_graded_variants_need_no_runs_of_their_own(preset):
    plan = BENCHMARK.plan(preset.name)
    names = [variant.name for variant in plan.variants if not variant.settings]
    assert len(names) < len(plan.variants)
    assert part_of(plan, variants=names).runs == plan.runs


def test_further_test_cities_need_no_runs_of_their_own():
    one, *others = [v for v in PAPER.variants if v.name.startswith("aerial")]
    assert [v.test for v in others] == ["test/kitsap", "test/vienna"]
    plan = BENCHMARK.plan("paper")
    alone = replace(plan, variants=(one,)).runs
    assert replace(plan, variants=(one, *others)).runs == alone
    for variant in (one, *others):
        assert all(variant.test in spec.splits for spec in alone)


def test_graded_variants_keep_the_targets_of_the_paper():
    def kept(name, targets):
        within = PAPER.variant(name).settings["within"]
        return sum(any(low <= t <= high for low, high in within) for t in targets)

    counts, yaws = np.arange(1, 201), np.arange(2, 900, 2) / 10
    assert [kept(f"cells_tails_v{i}", counts) for i in (1, 2, 3)] == [126, 152, 176]
    assert [kept(f"rc49_gap_v{i}", yaws) for i in (1, 2, 3)] == [336, 374, 412]


def test_pools_of_the_same_runs_count_once():
    demo = BENCHMARK.plan("demo")
    assert demo.pools_of(demo.row("ensemble")) == ((0, 1, 2, 3, 4),)
    assert len(demo.pools_of(demo.row("gaussian"))) == 5


def test_a_pool_that_is_too_small_is_refused():
    demo = replace(BENCHMARK.plan("demo"), pools=((0, 1),))
    with pytest.raises(ValueError, match=r"'ensemble' pools 5 runs.*a pool of 2"):
        _ = demo.runs


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(LookupError, match="Did you mean 'ensemble'"):
        BENCHMARK.row("ensembel")
    with pytest.raises(LookupError, match="Did you mean 'cells_gap'"):
        PAPER.variant("cels_gap")


def test_assets_are_not_normalised_again():
    run = run_of(BENCHMARK.plan("paper"), "asset_wealth", "gaussian", 0, alpha=0.1)
    assert run.training["normalise"] == "none"


@pytest.mark.parametrize("module", ["benchmarks.regression", "report.benchmark"])
def test_judging_loads_neither_training_nor_plotting(module):
    code = (
        f"import qualms.{module}, sys; "
        "print(sorted({'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_variations_can_be_asked_for_in_preset_small():
    rows = tuple(row.name for row in VARIATIONS)
    request = RunRequest(preset="small", methods=("gaussian", *rows))
    (plan,) = plans_of("regression", request)
    judged = [line for line in plan.lines if line.row.name in rows]
    assert {line.row.name for line in judged} == set(rows)
    for line in judged:
        assert line.runs
        for run in line.runs:
            assert line.row.labels["select"] in run.method.options["select"]
    usual = {run.hash for run in BENCHMARK.plan("small").runs}
    assert {
        r.hash for ln in plan.lines if ln.row.name == "gaussian" for r in ln.runs
    } <= usual
