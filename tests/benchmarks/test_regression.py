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

from qualms.benchmarks import Place, pools_of, trained, variant_of
from qualms.benchmarks.regression import regression
from qualms.published import published
from qualms.shelf import find

BENCHMARK = regression()
PRESETS = list(BENCHMARK.presets.values())
PAPER = BENCHMARK.presets["paper"]
GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "regression.json").read_text("utf-8")
)["cases"]
each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)


def options(shelf, part):
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def test_it_is_on_the_shelf():
    assert find("benchmarks", "regression")() == BENCHMARK


@each_preset
def test_datasets_exist_and_take_their_options(preset):
    for variant in preset.variants:
        assert not options("datasets", variant.dataset), variant.name


@each_preset
def test_methods_and_networks_exist_and_take_their_options(preset):
    pytest.importorskip("torch")
    for spec in BENCHMARK.runs(preset):
        assert not options("methods", spec.method)
        assert not options("networks", spec.network)


@each_preset
def test_every_run_is_there_once(preset):
    hashes = [spec.hash for spec in BENCHMARK.runs(preset)]
    assert len(set(hashes)) == len(hashes) > 0


@each_preset
def test_rows_and_variants_have_names_of_their_own(preset):
    assert len(set(preset.rows)) == len(preset.rows)
    assert len({variant.name for variant in preset.variants}) == len(preset.variants)
    assert len({row.label for row in BENCHMARK.rows}) == len(BENCHMARK.rows)


def test_rows_are_called_what_the_paper_calls_them():
    printed = {number.where["method"] for number in published("regression").numbers}
    assert printed == {row.label for row in BENCHMARK.rows if not row.beyond}


@pytest.mark.parametrize("simulated", [False, True])
def test_the_paper_preset_has_every_table(simulated):
    wanted = {
        (number.where["dataset"], number.where["alpha"])
        for number in published("regression").numbers
    }
    synthetic = {place for place in wanted if place[0].startswith(("Cells", "Chair"))}
    found = {
        (variant.label, alpha)
        for variant in PAPER.variants
        if variant.simulated == simulated and variant.label in dict(wanted)
        for alpha in (place["alpha"] for place in variant.places)
    }
    assert found == (synthetic if simulated else wanted)


def test_pools_are_the_index_lists_of_the_released_code():
    lists = [list(pool) for pool in PAPER.pools]
    assert lists == GOLDEN["model_selection"]["runs"]


def test_runs_that_no_pool_asks_for_are_left_out():
    specs = [
        s for s in BENCHMARK.runs(PAPER) if s.dataset.name == "brain_tumour_pixels"
    ]
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
    quantile = Place(PAPER.variants[0], BENCHMARK.row("quantile"), {"alpha": 0.2})
    assert trained(PAPER, quantile)
    assert not trained(BENCHMARK.presets["demo"], quantile)
    alphas = [
        BENCHMARK.spec(PAPER, quantile._replace(settings=at), 0).method.options["alpha"]
        for at in ({"alpha": 0.1}, {"alpha": 0.2})
    ]
    assert alphas == [0.1, 0.2]


@each_preset
def test_graded_variants_need_no_runs_of_their_own(preset):
    whole = tuple(variant for variant in preset.variants if not variant.settings)
    assert len(whole) < len(preset.variants)
    assert BENCHMARK.runs(replace(preset, variants=whole)) == BENCHMARK.runs(preset)


def test_further_test_cities_need_no_runs_of_their_own():
    one, *others = [v for v in PAPER.variants if v.name.startswith("aerial")]
    assert [v.test for v in others] == ["test/kitsap", "test/vienna"]
    alone = BENCHMARK.runs(replace(PAPER, variants=(one,)))
    assert BENCHMARK.runs(replace(PAPER, variants=(one, *others))) == alone
    for variant in (one, *others):
        assert all(variant.test in spec.splits for spec in alone)


def test_graded_variants_keep_the_targets_of_the_paper():
    def kept(name, targets):
        within = variant_of(PAPER, name).settings["within"]
        return sum(any(low <= t <= high for low, high in within) for t in targets)

    counts, yaws = np.arange(1, 201), np.arange(2, 900, 2) / 10
    assert [kept(f"cells_tails_v{i}", counts) for i in (1, 2, 3)] == [126, 152, 176]
    assert [kept(f"rc49_gap_v{i}", yaws) for i in (1, 2, 3)] == [336, 374, 412]


@each_preset
def test_expectations_speak_of_what_the_preset_has(preset):
    for expected in BENCHMARK.expectations[preset.name]:
        variant_of(preset, expected.variant)
        if expected.minus:
            variant_of(preset, expected.minus)
        assert set(expected.rows) <= set(preset.rows)
        assert expected.score in BENCHMARK.scores


def test_pools_of_the_same_runs_count_once():
    demo = BENCHMARK.presets["demo"]
    assert pools_of(demo, BENCHMARK.row("ensemble")) == ((0, 1, 2, 3, 4),)
    assert len(pools_of(demo, BENCHMARK.row("gaussian"))) == 5


def test_a_pool_that_is_too_small_is_refused():
    demo = replace(BENCHMARK.presets["demo"], pools=((0, 1),))
    with pytest.raises(ValueError, match=r"'ensemble' pools 5 runs.*a pool of 2"):
        BENCHMARK.runs(demo)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(LookupError, match="Did you mean 'ensemble'"):
        BENCHMARK.row("ensembel")
    with pytest.raises(LookupError, match="Did you mean 'cells_gap'"):
        variant_of(PAPER, "cels_gap")


def test_assets_are_not_normalised_again():
    place = Place(
        variant_of(PAPER, "asset_wealth"), BENCHMARK.row("gaussian"), {"alpha": 0.1}
    )
    assert BENCHMARK.spec(PAPER, place, 0).training["normalise"] == "none"


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
