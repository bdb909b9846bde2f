"""The retina benchmark names what exists, and states what was published."""

import inspect
import subprocess
import sys
from collections import Counter
from dataclasses import fields, replace

import pytest

from plans import part_of, run_of
from qualms.benchmarks.retina import retina
from qualms.benchmarks.retina._rows import BLUR_ROWS
from qualms.published import published
from qualms.shelf import find
from qualms.study import Overrides

METHODS = ("map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi")
BENCHMARK = retina()
PRESETS = list(BENCHMARK.presets.values())
DEMO, PAPER = BENCHMARK.presets["demo"], BENCHMARK.presets["paper"]
each_preset = pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)


def unknown(shelf, part):
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def spec(preset, variant, row, seed=42):
    return run_of(BENCHMARK.plan(preset.name), variant, row, seed)


def judged(variant):
    """The methods that a variant has rows of."""
    return [name for name in METHODS if not variant.rows or name in variant.rows]


def test_it_is_on_the_shelf():
    again = find("benchmarks", "retina")()
    assert (again.name, again.rows) == (BENCHMARK.name, BENCHMARK.rows)


@each_preset
def test_datasets_exist_and_take_their_options(preset):
    for variant in preset.every_variant:
        assert not unknown("datasets", variant.dataset), variant.name


@each_preset
def test_simulated_datasets_can_be_made(preset):
    for variant in preset.every_variant:
        if variant.simulated and preset.name != "paper":
            recipe = find("datasets", variant.dataset.name)(**variant.dataset.options)
            assert set(variant.splits) < set(recipe.counts)


@each_preset
def test_methods_networks_and_the_loop_take_their_options(preset):
    pytest.importorskip("torch")
    from qualms.training.options import training

    kinds = {}
    for variant in preset.every_variant:
        for row in judged(variant):
            run = spec(preset, variant.name, row)
            kinds[run.method.name, str(run.method.options), str(run.training)] = run
            if ":" not in run.network.name:
                assert not unknown("networks", run.network)
    for run in kinds.values():
        assert not unknown("methods", run.method), run.method
        # Making the method and the options checks their values too.
        find("methods", run.method.name)(**run.method.options)
        training(run.training)


def test_every_config_has_options_that_exist():
    pytest.importorskip("torch")
    from qualms.training.options import GROUPS

    loop = {field.name for group in GROUPS.values() for field in fields(group)}
    for name, config in BENCHMARK.configs.items():
        assert config.method in METHODS
        assert config.of("").keys() <= loop, name
        method = inspect.signature(find("methods", config.method)).parameters
        assert config.of("method").keys() <= method.keys(), name
        assert {n.rpartition(".")[0] for n in config.options} <= {"", "method"}


def test_there_are_22_published_configurations():
    configs = BENCHMARK.configs
    kept = {(c.method, str(c.options), c.note) for c in configs.values()}
    assert len(kept) == 22
    assert len(configs) == 24
    assert Counter(config.method for config in configs.values()) == dict.fromkeys(
        METHODS, 4
    )
    for method in ("radial", "rank1"):
        both = [configs[f"{method}_severity_{r}"] for r in ("in_domain", "joint")]
        assert both[0] == both[1]


def test_configurations_are_the_published_ones():
    """Read again from the protocol, in its own terms."""
    configs = BENCHMARK.configs
    first = configs["map_country_in_domain"].options
    assert (first["lr"], first["momentum"]) == (0.023072, 1 - 0.0098467)
    assert (first["schedule"], first["final_factor"]) == ("linear", 0.01)
    assert (first["batch"] * first["accumulate"], first["epochs"]) == (256, 90)
    assert first["weight_decay"] == 0.0
    assert "0.00010674" in configs["map_country_in_domain"].note
    dropout = configs["mc_dropout_severity_joint"].options
    assert (dropout["lr"], dropout["method.rate"]) == (0.023072, 0.18222)
    assert dropout["batch"] * dropout["accumulate"] == 128
    mfvi = configs["mfvi_country_in_domain"].options
    assert (mfvi["method.stddev_mean"], mfvi["method.stddev_stddev"]) == (
        9.7618e-4,
        0.41994,
    )
    assert (mfvi["method.l2"], mfvi["schedule"]) == (1.3178e-4, "step")
    radial = configs["radial_severity_joint"].options
    assert (radial["lr"], radial["method.l2"]) == (0.20617, 8.4192e-4)
    assert radial["method.norm"] == "output_channels"
    rank1 = configs["rank1_country_joint"].options
    assert (rank1["weight_decay"], rank1["method.fast_lr"]) == (2 * 4.3192e-5, 0.60756)
    fsvi = configs["fsvi_severity_joint"].options
    assert (fsvi["method.prior_cov"], fsvi["method.inducing"]) == (4.275120502, 10)
    assert (fsvi["method.l2"], fsvi["method.stochastic_linearisation"]) == (
        2.5277460e-5,
        False,
    )
    assert fsvi["batch"] * fsvi["accumulate"] == 256


def test_only_fsvi_was_trained_without_weights_of_classes():
    for config in BENCHMARK.configs.values():
        expected = "none" if config.method == "fsvi" else "minibatch"
        assert config.options["class_weights"] == expected


def test_an_l2_that_was_never_applied_is_noted_and_left_out():
    for name, config in BENCHMARK.configs.items():
        silent = config.method in ("map", "mc_dropout") or name in (
            "fsvi_country_joint",
            "fsvi_severity_in_domain",
        )
        assert bool(config.note) == silent
        if silent:
            assert config.options["weight_decay"] == 0
            assert not config.options.get("method.l2")


def test_every_run_on_real_data_has_its_published_configuration():
    for variant in PAPER.variants:
        shift = variant.dataset.options["shift"]
        for method in METHODS:
            name = f"{method}_{shift}_{variant.selection}"
            assert variant.configs[method] == name
        for method in judged(variant):
            run = spec(PAPER, variant.name, method)
            config = BENCHMARK.configs[variant.configs[method]]
            assert config.of("").items() <= run.training.items()
            assert config.of("method").items() <= run.method.options.items()


def test_epochs_are_chosen_by_the_declared_rule():
    rules = {"in_domain": "val_auroc", "joint": "val_referral"}
    for preset in PRESETS:
        for variant in preset.every_variant:
            run = spec(preset, variant.name, "map")
            assert run.training["select_by"] == rules[variant.selection]
            assert run.splits == ("val", "val/shifted", "test", "test/shifted")


def test_stochastic_methods_predict_with_five_draws():
    for preset in PRESETS:
        for method in METHODS[1:]:
            options = spec(preset, "country", method).method.options
            assert options["draws"] == 5


def test_fsvi_starts_as_in_the_released_code():
    """Kernels are uniform everywhere, and blocks are their shortcuts."""
    options = spec(PAPER, "country", "fsvi").network.options
    assert options == {"zero_last": True, "init": "uniform"}
    assert spec(PAPER, "country", "map").network.options == {}


def test_single_models_are_all_six_seeds_and_pools_six_different_threes():
    assert PAPER.seeds == tuple(range(42, 48))
    plan = BENCHMARK.plan("paper")
    assert plan.pools_of(plan.row("map")) == tuple((s,) for s in PAPER.seeds)
    pools = plan.pools_of(plan.row("map_ensemble"))
    assert len(pools) == 6
    assert {len(set(pool)) for pool in pools} == {3}
    assert set().union(*pools) <= set(PAPER.seeds)


@pytest.mark.parametrize(
    ("name", "runs", "real"), [("demo", 24, 0), ("small", 36, 0), ("paper", 360, 216)]
)
def test_presets_need_so_many_runs(name, runs, real):
    specs = BENCHMARK.plan(name).runs
    assert len(specs) == len({s.hash for s in specs}) == runs
    assert sum(s.dataset.name == "eyepacs" for s in specs) == real


@pytest.mark.parametrize(
    ("preset", "variant", "expected"),
    [
        ("demo", "country_mild", "5a5f9f9f056b40d7"),
        ("demo", "severity_mild", "3ae188009b418c6e"),
        ("demo", "country_mild_joint", "6d3e9002de60bcf9"),
        ("small", "country_mild", "8e560edf24efaf5a"),
        ("small", "severity_mild", "4ba0b8553785009f"),
    ],
)
def test_mild_shifts_have_the_runs_of_the_shifts_before_them(preset, variant, expected):
    assert spec(BENCHMARK.presets[preset], variant, "map").hash == expected


@each_preset
def test_every_simulated_shift_deceives_or_is_called_mild(preset):
    simulated = {
        v.name: v
        for v in preset.every_variant
        if v.simulated and "blur" not in v.dataset.options
    }
    calm = {name for name in simulated if "_mild" in name}
    assert len(simulated) == 2 * len(calm)
    for name, variant in simulated.items():
        deceives = variant.dataset.options.get("deceptive", False)
        assert deceives == (name not in calm)
        assert ("mild" in variant.label) == (name in calm)
    for name in calm:
        options = dict(simulated[name].dataset.options)
        main = simulated[name.replace("_mild", "")]
        assert main.dataset.options == options | {"deceptive": True}
        assert simulated[name] in preset.further
        assert main.shift != simulated[name].shift


@each_preset
def test_rows_and_variants_have_names_of_their_own(preset):
    assert len(set(preset.rows)) == len(preset.rows)
    names = [variant.name for variant in preset.every_variant]
    assert len(set(names)) == len(names)
    assert len({row.label for row in BENCHMARK.rows}) == len(BENCHMARK.rows)


def test_the_paper_preset_has_a_line_for_every_published_number():
    names = ("shift", "selection", "blur", "onset", "size", "method", "pool")
    lines = {
        tuple(line.labels.get(name) for name in (*names, "simulated"))
        for line in BENCHMARK.plan("paper").lines
    }
    numbers = published(BENCHMARK.published).table
    for number in numbers:
        at = tuple(number.labels.get(name) for name in (*names, "simulated"))
        assert at in lines, number.labels
    assert len(numbers) == 2172


def test_joint_selection_can_be_asked_for_in_every_preset():
    for preset in PRESETS:
        for shift in ("country", "severity"):
            variant = preset.variant(f"{shift}_joint")
            assert (variant.selection, variant.dataset.options["shift"]) == (
                "joint",
                shift,
            )
    assert not any(variant.selection == "joint" for variant in DEMO.variants)


def selection_text(preset, name, **training):
    plan = part_of(BENCHMARK.plan(preset.name), overrides=Overrides(training=training))
    return plan.selection_text(preset.variant(name))


def test_selections_are_told_in_words():
    inside = "selection in_domain: chosen on in-domain validation items"
    assert selection_text(DEMO, "country") == inside
    joint = selection_text(PAPER, "country_joint")
    assert "in-domain and shifted validation items" in joint


def test_another_rule_for_epochs_is_told():
    assert selection_text(DEMO, "country", select_by="last").endswith(
        "; the last epoch of each run, chosen on no items"
    )
    assert selection_text(DEMO, "country", select_by="val_loss").endswith(
        "; epochs chosen by val_loss"
    )


@each_preset
def test_every_variant_can_be_searched(preset):
    for variant in preset.every_variant:
        assert set(BENCHMARK.search[variant.name]) == set(METHODS)


def test_declaring_it_loads_neither_training_nor_plotting():
    code = (
        "import qualms.benchmarks.retina, sys; qualms.benchmarks.retina.retina(); "
        "print(sorted({'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_the_study_of_blur_can_be_asked_for_in_preset_small():
    small = BENCHMARK.presets["small"]
    plan = replace(BENCHMARK.plan("small"), variants=small.further)
    blurred = [v for v in plan.variants if v.dataset.options.get("blur")]
    places = {(v.labels["shift"], plan.labels_of(v)["blur"]) for v in blurred}
    assert places == {(s, b) for s in ("country", "severity") for b in (5, 10, 20, 30)}
    assert all(v.simulated and v.rows == BLUR_ROWS for v in blurred)
    assert not {v.name for v in blurred} & {v.name for v in small.variants}
