"""Plans of requests: the part that is asked for, and nothing else changed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from qualms.launch import RunRequest, data_key, plans_of, without_datasets
from qualms.launch import plan as plan_module
from qualms.launch.benchmarking import _with_corruptions
from qualms.launch.judging import results_folder
from qualms.shelf import find
from qualms.shelf import names as shelf_names
from qualms.spec import Part, Task
from qualms.study import (
    Benchmark,
    Config,
    GivenData,
    Preset,
    Selection,
    TableRow,
    Variant,
)

MAP, GAUSSIAN, DROPOUT = (Part(name=n) for n in ("map", "gaussian", "mc_dropout"))


def toy():
    plain, tails, real = (
        Variant(name="plain", label="P", dataset=Part(name="cells")),
        Variant(
            name="tails",
            label="T",
            dataset=Part(name="cells", options={"variant": "tails"}),
            training={"normalise": "none"},
        ),
        Variant(name="real", label="R", dataset=Part(name="asset_wealth")),
    )
    demo = Preset(
        name="demo",
        variants=(plain, tails, real),
        rows=("point", "pooled", "gauss"),
        network=Part(name="resnet_small"),
        training={"epochs": 5},
        methods={"gaussian": {"warmup": 2}},
        seeds=(0, 1, 2),
        pools=((0, 1), (1, 2)),
    )
    return Benchmark(
        name="toy",
        version=1,
        title="Toy",
        paper="none",
        task="regression",
        rows=(
            TableRow(name="point", label="", method=MAP),
            TableRow(name="pooled", label="", method=MAP, pool=2),
            TableRow(name="gauss", label="", method=GAUSSIAN),
            TableRow(name="dropout", label="", method=DROPOUT),
        ),
        presets={"demo": demo},
        configs={"quick": Config(options={"epochs": 1, "method.warmup": 0})},
    )


@pytest.fixture(autouse=True)
def on_the_shelf(monkeypatch):
    def find_toy(shelf, name):
        return toy if (shelf, name) == ("benchmarks", "toy") else find(shelf, name)

    monkeypatch.setattr(plan_module, "find", find_toy)


def choose(target="toy", **wish):
    (plan,) = plans_of(target, RunRequest(**wish))
    return plan


def names(parts):
    return [part.name for part in parts]


def test_without_a_request_the_plan_is_the_whole_preset():
    assert choose() == toy().plan("demo")
    assert choose().runs == toy().plan("demo").runs


def test_variants_are_chosen_by_name_in_their_order():
    assert names(choose("toy/tails,plain").variants) == ["tails", "plain"]


def test_variants_are_chosen_by_a_pattern():
    assert names(choose("toy/*ai*").variants) == ["plain", "tails"]
    with pytest.raises(LookupError, match=r"no 'x\*' in the variants"):
        choose("toy/x*")


def test_methods_are_chosen_by_their_name_or_by_that_of_a_row():
    assert names(choose(methods=("map",)).rows) == ["point", "pooled"]
    assert names(choose(methods=("point",)).rows) == ["point"]
    assert names(choose(methods=("mc_dropout",)).rows) == ["dropout"]


def test_rows_that_no_variant_has_are_refused_with_those_that_do():
    told = r"has no ce_few2_birds; ask for one of: url/species --preset small"
    with pytest.raises(ValueError, match=told):
        plans_of("url", RunRequest(preset="demo", methods=("ce_few2_birds",)))


def test_rows_keep_the_order_of_the_preset_whatever_is_asked_for_first():
    first = choose(methods=("gaussian", "map")).rows
    assert first == choose(methods=("map", "gaussian")).rows
    assert names(first) == ["point", "pooled", "gauss"]


def test_pools_are_those_that_the_seeds_fill():
    assert choose(seeds=(2, 1)).pools == ((1, 2),)
    plan = choose(seeds=(4, 5, 6))
    assert plan.pools == ((4, 5, 6), (5, 6, 4), (6, 4, 5))
    assert {spec.seed for spec in plan.runs} == {4, 5, 6}


@pytest.mark.parametrize("seeds", [(0, 1, 2, 3, 4, 5), (0, 7), (5, 0, 3)])
def test_every_seed_that_is_asked_for_is_run_and_pooled(seeds):
    plan = choose(seeds=seeds)
    for row in plan.rows:
        only = choose(seeds=seeds, methods=(row.name,))
        assert {spec.seed for spec in only.runs} == set(seeds)


def test_seeds_that_the_preset_does_not_have_are_pooled_too():
    plan = choose("retina/country", seeds=(42, 43, 44, 45))
    assert plan.alone == (42, 43, 44, 45)
    pooled = [plan.pools_of(row) for row in plan.rows if row.pool == 2]
    assert pooled
    assert set(pooled) == {((42, 43), (43, 44), (44, 45), (42, 45))}


def test_the_seeds_of_the_preset_change_nothing():
    (plain,) = plans_of("retina", RunRequest(preset="paper"))
    (same,) = plans_of("retina", RunRequest(preset="paper", seeds=plain.seeds[::-1]))
    assert same.pools == plain.pools
    assert same.part == plain.part == ""


@pytest.mark.parametrize(
    ("target", "wish", "part"),
    [
        ("toy", {}, ""),
        ("toy/plain,tails,real", {}, ""),
        ("toy/tails", {}, "tails"),
        ("toy", {"methods": ("map",)}, "map"),
        ("toy", {"seeds": (0, 1, 5, 7, 6)}, "seeds 0-1 5-7"),
        ("toy", {"seeds": (0,)}, "seeds 0"),
        (
            "toy/plain",
            {"options": {"epochs": 2}, "methods": ("map", "gauss")},
            "plain, epochs=2",
        ),
    ],
)
def test_a_part_of_a_preset_is_named(target, wish, part):
    assert choose(target, **wish).part == part


def test_rows_that_pool_more_runs_than_there_are_seeds_are_left_out_and_named():
    plan = choose(seeds=(0,))
    assert names(plan.rows) == ["point", "gauss"]
    assert plan.left_out == ("pooled",)
    with pytest.raises(ValueError, match=r"pooled pool at least 2 runs .* got 1;"):
        choose(seeds=(0,), methods=("pooled",))


def test_further_datasets_and_own_networks_take_options_and_may_be_missing(monkeypatch):
    def several():
        base = toy()
        demo = base.presets["demo"]
        one = replace(
            demo.variants[0],
            datasets={"chairs": Part(name="chairs")},
            splits=("test", "chairs:test"),
            network=Part(name="resnet_small", options={"width": 4}),
        )
        preset = replace(demo, variants=(one, demo.variants[1]))
        return replace(base, presets={"demo": preset})

    def find_several(shelf, name):
        return several if shelf == "benchmarks" else find(shelf, name)

    monkeypatch.setattr(plan_module, "find", find_several)
    sizes = {"train": 4, "val": 2, "test": 2}
    plan = choose(options={"dataset.sizes": sizes, "network.width": 2})
    first = plan.runs[0]
    assert {part.options["sizes"]["train"] for part in first.parts.values()} == {4}
    assert first.network.options["width"] == 2
    missing = [data_key(first.datasets["chairs"])]
    assert names(without_datasets(plan, missing).variants) == ["tails"]


def test_each_of_several_datasets_takes_the_sizes_of_its_own_splits():
    sizes = {"train": 64, "val": 20, "test": 30}
    (plan,) = plans_of("url", RunRequest(options={"dataset.sizes": sizes}))
    found = {name: part.options["sizes"] for name, part in plan.runs[0].parts.items()}
    assert found[""] == {"train": 64, "test": 30}
    assert found["birds"] == sizes
    assert found["votes"] == {"val": 20, "test": 30}
    # What no dataset has is left for the dataset to refuse.
    (plan,) = plans_of("url", RunRequest(options={"dataset.sizes": {"tset": 3}}))
    assert plan.runs[0].dataset.options["sizes"]["tset"] == 3


def test_options_go_to_the_parts_that_have_them():
    options = {
        "epochs": 3,
        "normalise": "imagenet",
        "method.warmup": 1,
        "network.width": 8,
        "dataset.seed": 7,
    }
    plan = choose("toy/plain,tails", options=options)
    for spec in plan.runs:
        assert spec.training == {"epochs": 3, "normalise": "imagenet"}
        assert spec.network.options == {"width": 8}
        assert spec.dataset.options["seed"] == 7
        gaussian = spec.method.name == "gaussian"
        assert spec.method.options == ({"warmup": 1} if gaussian else {})
    assert {plan.training_on(each)["epochs"] for each in plan.variants} == {3}
    assert plan.preset == toy().presets["demo"]


def test_a_config_is_a_set_of_options_that_others_override():
    specs = choose(config="quick", options={"epochs": 2}).runs
    assert {spec.training["epochs"] for spec in specs} == {2}
    gaussian = next(spec for spec in specs if spec.method.name == "gaussian")
    assert gaussian.method.options == {"warmup": 0}


def bound():
    """The toy with a config that the runs of one method take, and one that is asked."""
    base = toy()
    demo = base.presets["demo"]
    chosen = replace(demo.variants[0], configs={"gaussian": "chosen"})
    further = replace(demo.variants[1], name="rare")
    preset = replace(
        demo,
        variants=(chosen,),
        further=(further,),
        networks={"gaussian": {"width": 4}},
        alone=(0, 1, 2),
    )
    configs = {
        "chosen": Config(method="gaussian", options={"lr": 0.1, "method.warmup": 7}),
        "other": Config(method="gaussian", options={"lr": 0.2}),
    }
    return replace(base, presets={"demo": preset}, configs=configs)


@pytest.fixture
def with_configs(monkeypatch):
    def find_bound(shelf, name):
        return bound if shelf == "benchmarks" else find(shelf, name)

    monkeypatch.setattr(plan_module, "find", find_bound)


def by_method(plan):
    return {spec.method.name: spec for spec in plan.runs}


@pytest.mark.usefixtures("with_configs")
def test_a_config_of_a_method_is_for_its_runs_alone():
    specs = by_method(choose())
    assert specs["gaussian"].training == {"epochs": 5, "lr": 0.1}
    assert specs["gaussian"].method.options == {"warmup": 7}
    assert specs["gaussian"].network.options == {"width": 4}
    assert specs["map"].training == {"epochs": 5}
    assert specs["map"].network.options == {}
    specs = by_method(choose(config="other"))
    assert specs["gaussian"].training == {"epochs": 5, "lr": 0.2}
    assert specs["gaussian"].method.options == {"warmup": 2}
    assert specs["map"].training == {"epochs": 5}


@pytest.mark.usefixtures("with_configs")
def test_a_config_whose_method_is_not_run_is_refused():
    with pytest.raises(ValueError, match="which is not among the methods to run"):
        choose(config="other", methods=("map",))


@pytest.mark.usefixtures("with_configs")
def test_what_is_asked_for_overrides_the_config_of_a_method():
    given = {"lr": 0.3, "method.warmup": 1, "network.width": 6}
    for config in ("", "chosen"):
        specs = by_method(choose(config=config, options=given))
        assert {spec.training["lr"] for spec in specs.values()} == {0.3}
        assert specs["gaussian"].method.options == {"warmup": 1}
        assert specs["gaussian"].network.options == {"width": 6}


@pytest.mark.usefixtures("with_configs")
def test_further_variants_are_run_only_when_asked_for():
    assert names(choose().variants) == ["plain"]
    assert names(choose("toy/rare").variants) == ["rare"]


@pytest.mark.usefixtures("with_configs")
def test_rows_that_pool_nothing_have_each_seed_that_is_asked_for():
    assert choose(seeds=(1, 2)).alone == (1, 2)
    assert choose(seeds=(7,)).alone == (7,)


def test_a_network_from_elsewhere_takes_its_options_unchecked(monkeypatch):
    def elsewhere():
        preset = replace(toy().presets["demo"], network=Part(name="timm:resnet18"))
        return replace(toy(), presets={"demo": preset})

    monkeypatch.setattr(plan_module, "find", lambda *_: elsewhere)
    specs = choose(options={"network.drop_rate": 0.1}).runs
    assert specs[0].network.options == {"drop_rate": 0.1}


def test_options_go_to_the_networks_that_know_them(monkeypatch):
    def two_networks():
        preset = toy().presets["demo"]
        own = replace(preset.variants[1], network=Part(name="timm:resnet18"))
        preset = replace(preset, variants=(preset.variants[0], own))
        return replace(toy(), presets={"demo": preset})

    def found(shelf, name):
        return two_networks if shelf == "benchmarks" else find(shelf, name)

    monkeypatch.setattr(plan_module, "find", found)

    def chosen(options, target="toy"):
        plan = choose(target, methods=("point",), options=options)
        return {spec.network.name: spec.network.options for spec in plan.runs}

    # The network of the preset has no weights, and is not asked here.
    weights = {"network.weights": "w.pt"}
    assert chosen(weights, "toy/tails") == {"timm:resnet18": {"weights": "w.pt"}}
    both = chosen({**weights, "network.width": 4})
    assert both == {"timm:resnet18": {"weights": "w.pt"}, "resnet_small": {"width": 4}}
    with pytest.raises(LookupError, match=r"no option 'network\.weights'"):
        chosen(weights, "toy/plain")


def test_datasets_that_are_missing_can_be_left_out():
    plan = choose()
    less = without_datasets(plan, [data_key(Part(name="asset_wealth"))])
    assert names(less.variants) == ["plain", "tails"]
    assert all(spec.dataset.name == "cells" for spec in less.runs)


@pytest.mark.parametrize(
    ("target", "wish", "said"),
    [
        ("toi", {}, "no 'toi' in benchmarks."),
        ("toy/tail", {}, "no 'tail' in the variants of toy, preset demo. Did you mean"),
        ("toy", {"preset": "dem"}, "in the presets of toy. Did you mean 'demo'"),
        ("toy", {"config": "quik"}, "in the configs of toy. Did you mean 'quick'"),
        ("toy", {"methods": ("maps",)}, "in the methods of toy. Did you mean 'map'"),
        ("toy", {"options": {"epoch": 3}}, "for training. Did you mean 'epochs'"),
        ("toy", {"options": {"metod.x": 3}}, "no part 'metod' has options. Did you"),
        ("toy", {"options": {"method.warmp": 3}}, "Did you mean 'method.warmup'"),
        ("toy", {"options": {"network.wdth": 3}}, "Did you mean 'network.width'"),
        ("toy", {"options": {"dataset.sied": 3}}, "Did you mean 'dataset.seed'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(target, wish, said):
    with pytest.raises(LookupError) as refused:
        choose(target, **wish)
    assert said in str(refused.value)


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="'epochs' of training must be a whole number"):
        choose(options={"epochs": "many"})


@pytest.mark.parametrize(
    ("name", "value"), [("epochs", -1), ("lr", -0.1), ("momentum", 2)]
)
def test_a_value_that_makes_no_sense_is_refused_before_anything_starts(name, value):
    with pytest.raises(ValueError, match=f"training option '{name}' must be"):
        choose(options={name: value})


def test_a_value_that_a_method_refuses_is_refused_before_anything_starts():
    message = "mc_dropout cannot be made: rate must lie between 0 and 1, got 1.5"
    with pytest.raises(ValueError, match=message):
        choose(methods=("mc_dropout",), options={"method.rate": 1.5})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"network.levels": 0}, "at least 1, got 8, 0 and 1"),
        ({"network.width": 0}, "at least 1, got 0, 2 and 1"),
        ({"network.space": 5}, "space must be 2 or 3, got 5"),
    ],
)
def test_a_value_that_a_network_refuses_is_refused_before_anything_starts(
    options, said
):
    with pytest.raises(ValueError, match=f"unet cannot be made: .*{said}"):
        plans_of("values/toy_1", RunRequest(methods=("softmax",), options=options))


def test_a_network_that_no_device_without_memory_can_build_is_left_to_its_run(
    monkeypatch,
):
    def numbers(*_, **__):
        return torch.ones(1).item()

    monkeypatch.setattr("qualms.networks.make_network", numbers)
    assert choose(options={"network.width": 4}).runs


@pytest.mark.parametrize("epochs", [0, -1])
def test_no_epochs_are_refused_in_the_same_words(epochs):
    message = f"'epochs' must be a whole number from 1 on, got {epochs}$"
    with pytest.raises(ValueError, match=f"training option {message}"):
        choose(options={"epochs": epochs})


@pytest.mark.parametrize(
    ("target", "wish", "said"),
    [
        (
            "retina/country",
            {"options": {"select_by": "val_referral"}},
            "select_by=val_referral belongs to selection 'joint', and retina/country"
            " to selection 'in_domain'; run retina/country_joint",
        ),
        (
            "retina/country",
            {"options": {"select_by": "val_referral_kept"}},
            "select_by=val_referral_kept belongs to selection 'joint', and"
            " retina/country to selection 'in_domain'; run retina/country_joint",
        ),
        (
            "retina/severity_joint",
            {"options": {"select_by": "val_auroc"}},
            "select_by=val_auroc belongs to selection 'in_domain', and"
            " retina/severity_joint to selection 'joint'; run retina/severity",
        ),
        (
            "retina/country,country_joint",
            {"options": {"select_by": "val_auroc"}},
            "run retina/country",
        ),
        (
            "retina/country",
            {"preset": "paper", "config": "map_country_joint"},
            "config 'map_country_joint' belongs to selection 'joint', and"
            " retina/country to selection 'in_domain'; run retina/country_joint",
        ),
        # Where the variants of the preset name no configs, those of others tell.
        ("retina/country", {"config": "map_country_joint"}, "run retina/country_joint"),
        (
            "retina/country_joint",
            {"config": "mfvi_country_in_domain"},
            "run retina/country",
        ),
        (
            "retina/country_blur5",
            {"preset": "paper", "options": {"select_by": "val_referral"}},
            "'in_domain'; leave it out",
        ),
    ],
)
def test_what_belongs_to_another_selection_is_refused(target, wish, said):
    with pytest.raises(ValueError, match="belongs to selection") as refused:
        choose(target, **wish)
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize(
    ("target", "wish"),
    [
        ("retina/country", {"options": {"select_by": "val_auroc"}}),
        ("retina/country", {"options": {"select_by": "last"}}),
        ("retina/country_joint", {"options": {"select_by": "val_referral"}}),
        ("retina/country_joint", {"options": {"select_by": "val_referral_kept"}}),
        ("retina/country_joint", {"config": "map_country_joint"}),
        ("retina/severity", {"config": "map_country_in_domain"}),
        # The same options were chosen by both selections.
        ("retina/severity", {"config": "rank1_severity_joint"}),
        ("regression/cells", {"options": {"select_by": "val_loss"}}),
    ],
)
def test_what_belongs_to_no_other_selection_is_run(target, wish):
    assert choose(target, **wish).runs


def test_a_config_of_all_runs_cannot_change_the_selection_either(monkeypatch):
    def two_selections():
        base = toy()
        plain = base.presets["demo"].variants[0]
        rules = {"in_domain": "val_loss", "joint": "val_referral"}
        variants = tuple(
            replace(plain, name=name, selection=name, training={"select_by": rule})
            for name, rule in rules.items()
        )
        selections = tuple(
            Selection(name=name, rule=rule, splits=("val",), label=name, items=name)
            for name, rule in rules.items()
        )
        preset = replace(base.presets["demo"], variants=variants)
        configs = {"sly": Config(options={"select_by": "val_referral"})}
        return replace(
            base,
            task="classification",
            presets={"demo": preset},
            configs=configs,
            selections=selections,
        )

    def find_two(shelf, name):
        return two_selections if shelf == "benchmarks" else find(shelf, name)

    monkeypatch.setattr(plan_module, "find", find_two)
    assert choose("toy/joint", config="sly").runs
    with pytest.raises(ValueError, match=r"toy/in_domain to .*; run toy/joint"):
        choose("toy/in_domain", config="sly")


def test_what_is_changed_is_told():
    options = {"epochs": 3, "method.place": "blocks"}
    methods = ("map", "mc_dropout")
    wish = RunRequest(config="map_country_joint", options=options, methods=methods)
    (plan,) = plans_of("retina/country_joint", wish)
    message = "config map_country_joint, epochs=3, method.place=blocks"
    assert plan.preset_text == f"demo with {message}"
    (plain,) = plans_of("retina", RunRequest())
    assert plain.preset_text == "demo"


def test_of_all_benchmarks_those_are_run_that_have_the_method():
    chosen = plans_of("", RunRequest(methods=("gaussian", "map")))
    found = {c.benchmark.name: "map" in names(c.rows) for c in chosen}
    assert (found["regression"], found["retina"]) == (False, True)
    (only,) = plans_of("", RunRequest(methods=("gaussian",)))
    assert only.benchmark.name == "regression"
    assert {row.method.name for row in only.rows} == {"gaussian"}
    with pytest.raises(LookupError, match="in the methods of benchmarks"):
        plans_of("", RunRequest(methods=("gausian", "map")))
    with pytest.raises(LookupError, match="in the methods of retina"):
        plans_of("retina", RunRequest(methods=("gausian",)))


@pytest.mark.parametrize(
    ("name", "preset", "rows"),
    [
        ("retina", "demo", {"laplace": 1, "laplace_pair": 2}),
        ("retina", "small", {"laplace": 1, "laplace_ensemble": 3}),
        ("retina", "demo", {"swag": 1, "swag_pair": 2}),
        ("retina", "demo", {"snapshot": 1, "snapshot_pair": 2}),
        ("retina", "demo", {"evidential": 1, "evidential_pair": 2}),
        ("retina", "demo", {"temperature": 1, "temperature_pair": 2}),
        ("regression", "small", {"mfvi": 1, "mfvi_ensemble": 5}),
    ],
)
def test_a_method_that_the_benchmark_lacks_gets_rows_and_pools(name, preset, rows):
    method = next(iter(rows))
    (chosen,) = plans_of(name, RunRequest(preset=preset, methods=(method,)))
    made = chosen.rows
    assert names(made) == list(rows)
    assert all(row.beyond and row.method.name == method for row in made)
    assert [row.pool for row in made] == list(rows.values())
    lenders = {"map"} if find("methods", method)().trained_as else set()
    assert {spec.method.name for spec in chosen.runs} == {method, *lenders}


@pytest.mark.parametrize(
    ("name", "method", "lender"),
    [
        ("retina", "temperature", "map"),
        ("retina", "laplace", "map"),
        ("retina", "tta", "map"),
        ("regression", "laplace", "conformal"),
        ("values", "temperature", "softmax"),
        ("url", "tta", "ce"),
    ],
)
def test_what_is_fitted_after_training_takes_the_runs_of_map(name, method, lender):
    (both,) = plans_of(name, RunRequest(methods=(method, lender)))
    (lending,) = plans_of(name, RunRequest(methods=("map",)))
    runs = {run.hash: run for run in both.runs}
    fitted = [run for run in both.runs if run.method.name == method]
    assert fitted
    for run in fitted:
        assert run.training["epochs"] == 0
        assert (runs[run.start].method.name, runs[run.start].seed) == ("map", run.seed)
    # Nothing is trained for it: what it starts from is what `map` is judged by.
    assert {run.start for run in fitted} <= {run.hash for run in lending.runs}


@pytest.mark.parametrize("name", shelf_names("benchmarks"))
def test_no_declared_row_trains_what_another_row_has_trained(name):
    benchmark = find("benchmarks", name)()
    for row in benchmark.rows:
        lender = find("methods", row.method.name)().trained_as
        if row.stage is None and lender:
            assert benchmark.row(row.weights_of).method.name == lender, row.name


def test_a_config_of_the_lender_serves_who_takes_its_runs():
    wish = RunRequest(
        preset="small", methods=("temperature",), config="map_country_joint"
    )
    (chosen,) = plans_of("retina/country_joint", wish)
    assert {run.training["lr"] for run in chosen.runs} == {0.026561}


@pytest.mark.parametrize(
    ("name", "preset", "asked", "rows", "methods"),
    [
        ("retina", "demo", "deep_ensemble", ["map_pair"], {"map"}),
        ("retina", "small", "deep_ensemble", ["map_ensemble"], {"map"}),
        ("retina", "demo", "map_ensemble", ["map_pair"], {"map"}),
        ("retina", "demo", "swag_ensemble", ["swag_pair"], {"swag"}),
        ("retina", "demo", "tta_ensemble", ["tta_pair"], {"map", "tta"}),
        ("regression", "demo", "deep_ensemble", ["ensemble"], {"map"}),
        ("regression", "demo", "laplace_ensemble", None, {"map", "laplace"}),
        ("values", "demo", "ttd_ensemble", None, {"mc_dropout"}),
        ("url", "demo", "head_ensemble", ["ensemble"], {"head_ensemble"}),
    ],
)
def test_pools_of_any_method_are_asked_for_by_name(name, preset, asked, rows, methods):
    (chosen,) = plans_of(name, RunRequest(preset=preset, methods=(asked,)))
    assert names(chosen.rows) == (rows or [asked])
    assert {run.method.name for run in chosen.runs} == methods


@pytest.mark.parametrize(
    ("seeds", "size", "pools"),
    [
        ((), 5, ((7, 0, 1, 2, 3),)),
        ((4, 5, 6), 3, ((4, 5, 6),)),
    ],
)
def test_a_benchmark_without_pools_gets_members_of_a_deep_ensemble(
    monkeypatch, seeds, size, pools
):
    retina = find("benchmarks", "retina")()
    demo = replace(
        retina.presets["demo"], rows=("map",), seeds=(7,), pools=((7,),), alone=()
    )
    alone = replace(retina, rows=retina.rows[:1], presets={"demo": demo})
    monkeypatch.setattr("qualms.launch.plan.find", lambda *_: lambda: alone)
    wish = RunRequest(methods=("map", "deep_ensemble"), seeds=seeds)
    (chosen,) = plans_of("retina/country", wish)
    single, pooled = (chosen.row(row) for row in ("map", "map_ensemble"))
    assert names(chosen.rows) == ["map", "map_ensemble"]
    assert (pooled.pool, pooled.beyond) == (size, True)
    found = {tuple(sorted(pool)) for pool in chosen.pools_of(pooled)}
    assert found == {tuple(sorted(pool)) for pool in pools}
    # The single network is judged as often as before, or as often as was asked.
    assert chosen.pools_of(single) == tuple((s,) for s in seeds or (7,))
    assert len(chosen.runs) == size


def test_a_guest_whose_option_has_no_default_is_refused_in_a_sentence(monkeypatch):
    def needy(*, rate: float) -> None:
        raise AssertionError(rate)

    monkeypatch.setattr("qualms.launch._extra_rows.find", lambda *_: needy)
    with pytest.raises(ValueError, match="must have a default, got none for rate"):
        plans_of("retina", RunRequest(methods=("swag",)))


def test_embeddings_of_different_networks_are_not_pooled():
    with pytest.raises(ValueError, match="cannot be pooled, got map_ensemble; take"):
        plans_of("url", RunRequest(methods=("deep_ensemble",)))


def test_a_wrong_method_is_answered_with_those_of_the_same_task():
    with pytest.raises(LookupError) as refused:
        plans_of("values/toy_1", RunRequest(methods=("softmaxx",)))
    message = str(refused.value)
    assert "Did you mean 'softmax'" in message
    known = message.partition("Known: ")[2].rstrip(".").split(", ")
    assert {"softmax", "ssn", "laplace"} <= set(known)
    assert not {"gaussian", "quantile", "hib"} & set(known)


def test_a_method_of_another_task_is_refused():
    with pytest.raises(ValueError, match="retina is about classification, and 'gauss"):
        plans_of("retina", RunRequest(methods=("gaussian",)))


def test_pages_of_own_data_differ_with_all_that_is_asked_for():
    given = GivenData(
        name="pets",
        dataset=Part(name="folder"),
        task=Task(name="classification", classes=2),
        shape=(8, 8, 3),
        sizes={"train": 40, "test": 20},
    )
    requests = [
        {},
        {"methods": ("map",)},
        {"options": {"epochs": 1}},
        {"options": {"epochs": 2}},
        {"options": {"dataset.side": 6}},
        {"given": replace(given, seeds=(0, 1))},
        {"given": replace(given, network=Part(name="resnet_small"))},
    ]
    plans = [
        plan
        for more in requests
        for plan in plans_of("own", RunRequest(**{"given": given} | more))
    ]
    folders = [results_folder(plan, Path("runs")) for plan in plans]
    assert len(set(folders)) == len(requests)
    assert folders[0] == Path("runs/own/pets")
    assert folders[2].name == "part-epochs=1"


@pytest.mark.parametrize(
    ("corrupt", "severity", "names", "severities"),
    [
        ("blur, fog", "1-3", ("blur", "fog"), (1, 2, 3)),
        (["blur"], 4, ("blur",), (4,)),
        (("fog",), [5, 1], ("fog",), (5, 1)),
        ((), (), (), ()),
    ],
)
def test_corruptions_are_taken_as_text_or_lists(corrupt, severity, names, severities):
    request = _with_corruptions(RunRequest(), corrupt, severity)
    assert request.corruptions == names
    assert request.severities == severities


def test_severities_of_a_call_must_lie_in_one_to_five():
    with pytest.raises(ValueError, match="severities must lie in 1 to 5"):
        _with_corruptions(RunRequest(), "fog", [0, 3])
