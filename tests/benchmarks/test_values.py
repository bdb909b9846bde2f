"""The values benchmark names what exists, and runs what the paper ran."""

import inspect
from collections import Counter
from dataclasses import replace

import pytest

from qualms.benchmarks import Place, pools_of, variant_of
from qualms.benchmarks.values import values
from qualms.launch import Wish, everything, is_simulated
from qualms.shelf import find, names

BENCHMARK = values()
PRESETS = list(BENCHMARK.presets.values())
DEMO, SMALL, PAPER = PRESETS
MODELS = ("softmax", "ttd", "ensemble", "tta", "ssn")
each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)


def variants(preset):
    return (*preset.variants, *preset.further)


def spec(preset, variant, row, seed=0, **settings):
    place = Place(variant_of(preset, variant), BENCHMARK.row(row), settings)
    return BENCHMARK.spec(preset, place, seed)


def trainings(preset, *names):
    chosen = tuple(v for v in preset.variants if v.name in names)
    runs = BENCHMARK.runs(replace(preset, variants=chosen))
    return [run for run in runs if run.training["epochs"]]


def unknown(shelf, part):
    """Options that a part of the shelf does not take; a missing part skips the test."""
    if part.name not in names(shelf):
        pytest.skip(f"{part.name} is not on the shelf {shelf}")
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def test_it_is_on_the_shelf():
    assert find("benchmarks", "values")() == BENCHMARK


@each_preset
def test_datasets_exist_and_take_their_options(preset):
    for variant in variants(preset):
        assert not unknown("datasets", variant.dataset), variant.name


@each_preset
def test_simulated_datasets_have_the_splits_that_runs_predict(preset):
    for variant in preset.variants:
        assert not unknown("datasets", variant.dataset)
        if is_simulated(variant.dataset.name):
            recipe = find("datasets", variant.dataset.name)(**variant.dataset.options)
            assert set(variant.splits) < set(recipe.counts), variant.name


@each_preset
def test_methods_networks_and_the_loop_take_their_options(preset):
    pytest.importorskip("torch")
    from qualms.training.options import training

    kinds = {
        (str(run.method), str(run.network), str(run.training)): run
        for run in BENCHMARK.runs(preset)
    }
    for run in kinds.values():
        assert not unknown("networks", run.network), run.network
        assert not unknown("methods", run.method), run.method
        # Making the method and the options checks their values too.
        find("methods", run.method.name)(**run.method.options)
        training(run.training)


def test_the_toy_study_has_63_trainings():
    """Three training sets, each with 15 softmax runs, 3 with dropout and 3 SSNs."""
    for preset in (SMALL, PAPER):
        runs = trainings(preset, "toy_1", "toy_2", "toy_3a", "toy_3b")
        assert Counter(run.method.name for run in runs) == {
            "map": 45,
            "mc_dropout": 9,
            "ssn": 9,
        }


@each_preset
def test_runs_have_the_same_hashes_whenever_they_are_declared(preset):
    again = values().presets[preset.name]
    one, other = (BENCHMARK.runs(preset), values().runs(again))
    assert [run.hash for run in one] == [run.hash for run in other]
    assert len({run.hash for run in one}) == len(one)


@each_preset
def test_scenarios_3a_and_3b_share_their_runs(preset):
    a, b = (trainings(preset, name) for name in ("toy_3a", "toy_3b"))
    assert [run.hash for run in a] == [run.hash for run in b]
    assert {"test/3a", "test/3b"} < set(a[0].splits)
    tests = [variant_of(preset, name).settings["test"] for name in ("toy_3a", "toy_3b")]
    assert tests == ["test/3a", "test/3b"]


@each_preset
def test_ensembles_are_disjoint_and_rows_alone_take_the_first_of_each(preset):
    pools = pools_of(preset, BENCHMARK.row("ensemble"))
    assert all(len(pool) == 5 for pool in pools)
    assert len({seed for pool in pools for seed in pool}) == 5 * len(pools)
    alone = pools_of(preset, BENCHMARK.row("ttd"))
    assert alone == tuple((pool[0],) for pool in pools)


@each_preset
def test_runs_come_after_those_that_they_need(preset):
    order = {run.hash: i for i, run in enumerate(BENCHMARK.runs(preset))}
    for run in BENCHMARK.runs(preset):
        assert all(order[name] < order[run.hash] for name in run.parents)


@each_preset
def test_augmentation_at_test_time_predicts_with_the_weights_of_softmax(preset):
    for variant in preset.variants:
        lent, lender = (spec(preset, variant.name, row) for row in ("tta", "softmax"))
        assert lent.start == lender.hash
        assert lent.training["epochs"] == 0
        assert lent.network == lender.network


def test_a_row_that_is_asked_for_brings_the_runs_that_it_needs():
    (choice,) = everything("values/toy_2", Wish(methods=("tta",)))
    assert choice.preset.rows == ("tta",)
    assert [run.method.name for run in choice.runs] == ["map", "tta"]
    wish = Wish(preset="small", methods=("tta_queried",), seeds=(0,))
    (choice,) = everything("values/gta", wish)
    assert [(run.method.name, run.seed) for run in choice.runs] == [
        ("map", 0),
        *[("tta", 0)] * (1 + 2 * 2),
    ]


def test_active_learning_costs_41_trainings_for_each_repeat():
    one = replace(SMALL, seeds=SMALL.pools[0], pools=SMALL.pools[:1])
    for name in ("lidc_texture", "lidc_malignancy", "gta"):
        runs = trainings(one, name)
        second = [run for run in runs if run.items is not None]
        assert len(runs) - len(second) == 5 + 1 + 1
        queried = Counter(
            (run.method.name, len(run.items.runs)) for run in second if run.items.runs
        )
        # Two aggregations; two measures for all but softmax; five runs each of pools.
        assert queried == {
            ("map", 1): 2,
            ("map", 5): 20,
            ("mc_dropout", 1): 4,
            ("tta", 1): 4,
            ("ssn", 1): 4,
        }
        drawn = Counter(run.method.name for run in second if not run.items.runs)
        assert drawn == {"map": 5, "mc_dropout": 1, "ssn": 1}


def test_only_predictive_and_epistemic_measures_query():
    variant = variant_of(SMALL, "lidc_texture")
    asked = {row: set() for row in MODELS}
    for place in BENCHMARK.places(SMALL, variant):
        if place.row.name.endswith("_queried"):
            asked[place.row.stage.row].add(place.settings["measure"])
            assert place.settings["aggregation"] in ("patch", "threshold")
    usual = {"PE", "MI"}
    assert asked == {
        "softmax": {"MSR"},
        **dict.fromkeys(("ttd", "ensemble", "tta"), usual),
        "ssn": {"PE", "EE"},
    }


def test_the_random_half_is_the_same_for_all_members_of_an_ensemble():
    first, last = (spec(SMALL, "gta", "ensemble_random", seed) for seed in (5, 9))
    assert first.items == last.items
    assert first.items.options["seed"] == 5
    assert first == spec(SMALL, "gta", "softmax_random", 5)


def test_the_screening_has_one_run_for_each_of_its_folds():
    for preset in (SMALL, PAPER):
        folds = tuple(v for v in preset.variants if "screening" in v.settings)
        runs = BENCHMARK.runs(replace(preset, variants=folds))
        assert len(runs) == len(folds) == 6 * 5
        assert {run.method.name for run in runs} == {"map"}
        seeds = [run.dataset.options["seed"] for run in runs[:5]]
        assert seeds == [123, 124, 125, 126, 127]


def test_the_paper_trains_as_it_says():
    toy, lidc, gta = (
        spec(PAPER, name, "softmax") for name in ("toy_2", "lidc_texture", "gta")
    )
    assert (toy.network.options["width"], lidc.network.options["width"]) == (8, 16)
    for run in (toy, lidc):
        assert (run.training["lr"], run.training["weight_decay"]) == (3e-4, 1e-5)
        assert (run.training["batch"], run.training["epochs"]) == (8, 150)
        assert run.training["schedule"] == "plateau"
    assert gta.network.name == "hrnet_w48"
    assert (gta.training["optimiser"], gta.training["lr"]) == ("sgd", 0.01)
    ranks = [spec(PAPER, n, "ssn").method.options["rank"] for n in ("toy_1", "gta")]
    assert ranks == [5, 10]
    assert spec(PAPER, "gta", "ssn").training["optimiser"] == "rmsprop"


@each_preset
def test_measures_of_an_ssn_are_swapped(preset):
    measures = {row: BENCHMARK.row(row).settings["measures"] for row in MODELS}
    assert measures["softmax"] == {"PU": "MSR"}
    assert measures["ensemble"] == {"PU": "PE", "AU": "EE", "EU": "MI"}
    assert measures["ssn"] == {"PU": "PE", "AU": "MI", "EU": "EE"}
