"""The url benchmark names what exists, and runs what the paper ran."""

import inspect
import math
from collections import Counter
from dataclasses import replace

import pytest

from plans import run_of
from qualms.benchmarks.url import url
from qualms.launch import RunRequest, is_simulated, plans_of
from qualms.shelf import find, names
from qualms.spec import parse_split

BENCHMARK = url()
PRESETS = list(BENCHMARK.presets.values())
DEMO, SMALL, PAPER = PRESETS
METHODS = (
    *("ce", "infonce", "mcinfonce", "elk", "nivmf", "hib", "hetxl", "losspred"),
    *("mcdropout", "ensemble", "sngp"),
)
each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)


def spec(preset, variant, row, seed=1):
    return run_of(BENCHMARK.plan(preset.name), variant, row, seed)


def unknown(shelf, part):
    """Options that a part of the shelf does not take; a missing part skips the test."""
    if part.name.startswith("timm:"):
        return set()
    if part.name not in names(shelf):
        pytest.skip(f"{part.name} is not on the shelf {shelf}")
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def test_it_is_on_the_shelf():
    again = find("benchmarks", "url")()
    assert (again.name, again.rows) == (BENCHMARK.name, BENCHMARK.rows)


@each_preset
def test_datasets_exist_and_take_their_options(preset):
    for variant in preset.every_variant:
        for part in variant.parts:
            assert not unknown("datasets", part), variant.name


@each_preset
def test_simulated_datasets_have_the_splits_that_runs_predict(preset):
    for variant in preset.variants:
        parts = {"": variant.dataset, **variant.datasets}
        for split in variant.splits:
            name, own = parse_split(split)
            assert not unknown("datasets", parts[name])
            if is_simulated(parts[name].name):
                recipe = find("datasets", parts[name].name)(**parts[name].options)
                assert own in recipe.counts, split


@each_preset
def test_methods_networks_and_the_loop_take_their_options(preset):
    pytest.importorskip("torch")
    from qualms.training.options import training

    plan = replace(BENCHMARK.plan(preset.name), variants=preset.every_variant)
    kinds = {
        (str(run.method), str(run.network), str(run.training)): run for run in plan.runs
    }
    for run in kinds.values():
        assert not unknown("networks", run.network), run.network
        assert not unknown("methods", run.method), run.method
        # Making the method and the options checks their values too.
        find("methods", run.method.name)(**run.method.options)
        training(run.training)


@each_preset
def test_every_preset_has_the_eleven_methods_of_the_paper(preset):
    assert preset.rows[:11] == METHODS
    for variant in preset.variants:
        assert variant.rows[:11] == METHODS


@each_preset
def test_runs_come_after_those_that_they_need(preset):
    runs = BENCHMARK.plan(preset.name).runs
    order = {run.hash: i for i, run in enumerate(runs)}
    for run in runs:
        assert all(order[name] < order[run.hash] for name in run.parents)


def test_the_paper_trains_as_it_says():
    for variant, side in (("resnet50", 224), ("vit_medium", 256)):
        run = spec(PAPER, variant, "ce")
        assert run.dataset.options == {"side": side}
        assert len(run.datasets) == 8
        assert (run.training["optimiser"], run.training["epochs"]) == ("lamb", 32)
        for row in METHODS:
            own = spec(PAPER, variant, row).training
            assert 2016 <= own["batch"] * own["accumulate"] <= 2064
    assert {run.seed for run in BENCHMARK.plan("paper").runs} == {1, 2, 3}


@pytest.mark.parametrize(
    ("variant", "row", "rate"),
    [
        ("resnet50", "ce", 0.007801785043803659),
        ("resnet50", "infonce", 0.0012494973069077698),
        ("resnet50", "mcinfonce", 6.690659320813086e-05),
        ("vit_medium", "ce", 0.014012068596076578),
        ("vit_medium", "hib", 0.0016810841548162677),
    ],
)
def test_rates_are_those_of_the_released_runs(variant, row, rate):
    """As the released code's table of runs states them, after scaling."""
    assert math.isclose(spec(PAPER, variant, row).training["lr"], rate, rel_tol=1e-4)


@pytest.mark.parametrize(
    ("preset", "variant", "u"),
    [
        (PAPER, "resnet50", "mutual_information"),
        (PAPER, "resnet50_recall", "mutual_information"),
        (PAPER, "vit_medium", "entropy"),
        (SMALL, "species", "mutual_information"),
    ],
)
def test_dropout_is_chosen_and_judged_by_what_the_released_runs_take(
    preset, variant, u
):
    """`jsd` for ResNet-50, `class-entropy` for ViT-Medium."""
    assert spec(preset, variant, "mcdropout").training["select_uncertainty"] == u
    assert preset.variant(variant).settings["chosen"]["mcdropout"] == u


def test_dropout_is_judged_by_one_uncertainty_on_all_residual_networks():
    """And by the entropy in a row of its own."""
    assert BENCHMARK.row("mcdropout").settings["us"][0] == "mutual_information"
    for preset in PRESETS:
        for variant in preset.every_variant:
            if "config" in variant.labels or "mcdropout" not in variant.rows:
                continue
            chosen = variant.settings["chosen"].get("mcdropout", "mutual_information")
            vit = variant.labels.get("backbone") == "vit_medium"
            assert chosen == ("entropy" if vit else "mutual_information"), variant.name


@pytest.mark.parametrize(
    ("look", "row", "u"),
    [
        ("hetxl_log_determinant", "hetxl", "log_determinant"),
        ("mcdropout_entropy", "mcdropout", "entropy"),
    ],
)
def test_a_row_shows_the_runs_of_another_by_its_own_uncertainty(look, row, u):
    for preset, variant in ((DEMO, "species"), (SMALL, "species"), (PAPER, "resnet50")):
        assert look in preset.rows
        assert look in preset.variant(variant).rows
        assert spec(preset, variant, look).hash == spec(preset, variant, row).hash
        assert look not in preset.variant(variant).settings["chosen"]
    assert BENCHMARK.row(look).settings["us"] == (u,)


def test_runs_state_the_form_of_the_loss_that_the_authors_code_has():
    for preset, variant in ((DEMO, "species"), (SMALL, "species"), (PAPER, "resnet50")):
        options = {
            row: spec(preset, variant, row).method.options
            for row in ("mcinfonce", "nivmf")
        }
        assert options["mcinfonce"]["average"] == "likelihood"
        assert options["nivmf"]["stretching"] == "class"


def test_the_offset_of_hib_suits_networks_that_start_from_random_weights():
    offset = {
        (preset.name, name): spec(preset, name, "hib").method.options["offset"]
        for preset, name in (
            *((DEMO, "species"), (DEMO, "fashion"), (SMALL, "species")),
            *((PAPER, "resnet50"), (PAPER, "vit_medium")),
        )
    }
    assert offset == {
        ("demo", "species"): -5.0,
        ("demo", "fashion"): -5.0,
        ("small", "species"): -5.0,
        ("paper", "resnet50"): 2.0435,
        ("paper", "vit_medium"): -5.3607,
    }


def test_a_config_of_the_trade_off_is_judged_by_the_uncertainty_that_it_chooses_by():
    for row in ("mcdropout", "ensemble", "hetxl"):
        values = set()
        for variant in SMALL.further:
            u = spec(SMALL, variant.name, row).training["select_uncertainty"]
            assert variant.settings["chosen"][row] == u
            values.add(u)
        assert len(values) == 2, row


@pytest.mark.parametrize(
    ("row", "resnet50", "vit_medium"),
    [
        *(("mcinfonce", 0.001, 0.001), ("nivmf", 0.001, 0.001), ("hib", None, None)),
        *(("elk", None, None), ("losspred", None, 0.001)),
    ],
)
def test_heads_start_as_in_the_released_commands(row, resnet50, vit_medium):
    for variant, start in (("resnet50", resnet50), ("vit_medium", vit_medium)):
        options = spec(PAPER, variant, row).method.options
        assert options["initial_uncertainty"] == start


def test_real_clothes_are_run_where_they_are_asked_for():
    fashion, frozen, species, alone = DEMO.further
    assert alone.settings["upstream"] is False
    assert (frozen.network.name, frozen.training["features"]) == (
        "timm:tf_efficientnet_lite0",
        "cached",
    )
    assert species.dataset.name == "species"
    assert species.datasets == frozen.datasets
    run = spec(DEMO, "fashion_lite0", "losspred_ranking")
    assert run.method.options["goal"] == "ranking"
    assert run.method.options["width"] == 256
    assert spec(DEMO, "fashion", "infonce").training["augment"][0] == "crop"
    seen = [spec(DEMO, fashion.name, row).datasets for row in METHODS]
    assert all(each == seen[0] for each in seen)


def test_each_method_is_chosen_twice():
    for preset in (SMALL, PAPER):
        by = Counter(variant.selection for variant in preset.variants)
        assert by["r_auroc"] == by["recall"] > 0
        for variant in preset.variants:
            rule = BENCHMARK.selection(variant.selection).rule
            assert variant.training["select_by"] == rule


def test_few_shot_rows_go_on_from_the_first_training_and_never_see_what_is_judged():
    run = spec(SMALL, "species", "ce_few2_birds")
    first = spec(SMALL, "species", "ce")
    assert run.start == first.hash
    assert (run.items.name, run.items.split) == ("few_shot", "birds:test/even")
    assert run.items.options["k"] == 2
    assert run.splits == ("birds:test/odd",)


def test_the_trade_off_is_ten_configs_of_each_method_on_request():
    for preset, backbones in ((SMALL, 1), (PAPER, 2)):
        configured = [v for v in preset.further if v.name.startswith("tradeoff")]
        assert len(configured) == 10 * backbones
        options = {
            row: {
                str(sorted(spec(preset, v.name, row).training.items()))
                + str(spec(preset, v.name, row).method)
                for v in preset.further[:10]
            }
            for row in METHODS
        }
        assert all(len(each) == 10 for each in options.values())


@pytest.mark.parametrize("name", ["resnet50", "vit_medium"])
def test_configs_of_the_trade_off_train_as_the_paper_does(name):
    for row in METHODS:
        best = spec(PAPER, name, row).training
        items = best["batch"] * best["accumulate"]
        for number in range(10):
            one = spec(PAPER, f"tradeoff_{name}_{number}", row)
            for option in ("batch", "accumulate", "augment"):
                assert one.training[option] == best[option], (row, option)
            low, high = (rate * math.sqrt(items / 256) for rate in (1e-4, 1e-2))
            assert low <= one.training["lr"] <= high
    draws = [spec(PAPER, f"tradeoff_vit_medium_{n}", "hetxl") for n in range(10)]
    assert {one.method.options["draws"] for one in draws} == {1000}


def test_rates_of_the_trade_off_suit_the_items_of_a_step():
    rates = [spec(SMALL, v.name, "ce").training["lr"] for v in SMALL.further]
    assert SMALL.training["batch"] * SMALL.training["accumulate"] == 256
    assert 1e-4 <= min(rates) < 3e-4 < 3e-3 < max(rates) <= 1e-2


def test_the_spectral_bound_of_sngp_is_searched_for_convolutions():
    def bounds(preset, name):
        specs = (spec(preset, f"tradeoff_{name}_{n}", "sngp") for n in range(10))
        return {one.method.options.get("spectral_bound") for one in specs}

    assert bounds(PAPER, "resnet50") == bounds(SMALL, "species") == {None, 3.0035}
    assert bounds(PAPER, "vit_medium") == {None}


def test_a_few_shot_row_that_is_asked_for_brings_the_run_that_it_needs():
    request = RunRequest(preset="small", methods=("ce_few5_cars",), seeds=(2,))
    (plan,) = plans_of("url/species", request)
    assert [(run.method.name, run.seed) for run in plan.runs] == [("map", 2)] * 2


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        (("elk",), ("elk",)),
        (("map",), ("ce",)),
        (("ce", "elk_few2_birds"), ("ce", "elk_few2_birds")),
    ],
)
def test_a_method_is_its_first_trainings_and_others_have_names(asked, rows):
    (plan,) = plans_of("url/species", RunRequest(preset="small", methods=asked))
    assert tuple(row.name for row in plan.rows) == rows


def test_second_trainings_on_weights_of_others_have_names_too():
    (plan,) = plans_of("values/gta", RunRequest(preset="small", methods=("tta",)))
    assert [row.name for row in plan.rows] == ["tta"]
