"""The values benchmark names what exists, and runs what the paper ran."""

import inspect
import math
from collections import Counter
from dataclasses import replace

import pytest

from qualms.benchmarks.values import values
from qualms.launch import RunRequest, plans_of
from qualms.published import published
from qualms.shelf import find, names

BENCHMARK = values()
PLANS = [BENCHMARK.plan(name) for name in BENCHMARK.presets]
DEMO, SMALL, PAPER = PLANS
MODELS = ("softmax", "ttd", "ensemble", "tta", "ssn")
each_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.preset.name)


def part(plan, variants, rows=None):
    rows = plan.rows if rows is None else tuple(plan.row(name) for name in rows)
    variants = tuple(v for v in plan.variants if v.name in variants)
    return replace(plan, variants=variants, rows=rows)


def spec(plan, variant, row, seed=0):
    (line,) = part(plan, (variant,), (row,)).lines
    return next(run for run in line.runs if run.seed == seed)


def trainings(plan, *names):
    return [run for run in part(plan, names).runs if run.training["epochs"]]


def unknown(shelf, part):
    """Options that a part of the shelf does not take; a missing part skips the test."""
    if part.name not in names(shelf):
        pytest.skip(f"{part.name} is not on the shelf {shelf}")
    return part.options.keys() - inspect.signature(find(shelf, part.name)).parameters


def test_it_is_on_the_shelf():
    assert find("benchmarks", "values") is values


@each_plan
def test_datasets_exist_and_take_their_options(plan):
    for variant in plan.preset.every_variant:
        assert not unknown("datasets", variant.dataset), variant.name


@each_plan
def test_simulated_datasets_have_the_splits_that_runs_predict(plan):
    for variant in plan.variants:
        assert not unknown("datasets", variant.dataset)
        if variant.dataset.name in ("toy_shapes", "street_sim"):
            recipe = find("datasets", variant.dataset.name)(**variant.dataset.options)
            assert set(variant.splits) < set(recipe.counts), variant.name


@each_plan
def test_methods_networks_and_the_loop_take_their_options(plan):
    pytest.importorskip("torch")
    from qualms.training.options import training

    kinds = {
        (str(run.method), str(run.network), str(run.training)): run for run in plan.runs
    }
    for run in kinds.values():
        assert not unknown("networks", run.network), run.network
        assert not unknown("methods", run.method), run.method
        # Making the method and the options checks their values too.
        find("methods", run.method.name)(**run.method.options)
        training(run.training)


def test_the_toy_study_has_63_trainings():
    """Three training sets, each with 15 softmax runs, 3 with dropout and 3 SSNs."""
    for plan in (SMALL, PAPER):
        runs = trainings(plan, "toy_1", "toy_2", "toy_3a", "toy_3b")
        assert Counter(run.method.name for run in runs) == {
            "map": 45,
            "mc_dropout": 9,
            "ssn": 9,
        }


@each_plan
def test_runs_have_the_same_hashes_whenever_they_are_declared(plan):
    one, other = plan.runs, values().plan(plan.preset.name).runs
    assert [run.hash for run in one] == [run.hash for run in other]
    assert len({run.hash for run in one}) == len(one)


@each_plan
def test_scenarios_3a_and_3b_share_their_runs(plan):
    a, b = (trainings(plan, name) for name in ("toy_3a", "toy_3b"))
    assert [run.hash for run in a] == [run.hash for run in b]
    assert {"test/3a", "test/3b"} < set(a[0].splits)
    tests = [plan.variant(name).test for name in ("toy_3a", "toy_3b")]
    assert tests == ["test/3a", "test/3b"]


@each_plan
def test_ensembles_are_disjoint_and_rows_alone_take_the_first_of_each(plan):
    pools = plan.pools_of(BENCHMARK.row("ensemble"))
    assert all(len(pool) == 5 for pool in pools)
    assert len({seed for pool in pools for seed in pool}) == 5 * len(pools)
    alone = plan.pools_of(BENCHMARK.row("ttd"))
    assert alone == tuple((pool[0],) for pool in pools)


@each_plan
def test_runs_come_after_those_that_they_need(plan):
    order = {run.hash: i for i, run in enumerate(plan.runs)}
    for run in plan.runs:
        assert all(order[name] < order[run.hash] for name in run.parents)


@each_plan
def test_augmentation_at_test_time_predicts_with_the_weights_of_softmax(plan):
    for variant in plan.variants:
        if "feature" in variant.labels:
            continue  # screened by softmax alone
        lent, lender = (spec(plan, variant.name, row) for row in ("tta", "softmax"))
        assert lent.start == lender.hash
        assert lent.training["epochs"] == 0
        assert lent.network == lender.network


def test_a_row_that_is_asked_for_brings_the_runs_that_it_needs():
    runs = part(DEMO, ("toy_2",), ("tta",)).runs
    assert [run.method.name for run in runs] == ["map", "tta"]
    one = replace(part(SMALL, ("gta",), ("tta_queried",)), seeds=(0,))
    assert [(run.method.name, run.seed) for run in one.runs] == [
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
    measures = {row: set() for row in MODELS}
    for line in part(SMALL, ("lidc_texture",)).lines:
        if line.row.name.endswith("_queried"):
            measures[line.row.stage.row].add(line.at["measure"])
            assert line.at["aggregation"] in ("patch", "threshold")
    usual = {"PE", "MI"}
    assert measures == {
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
    for plan in (SMALL, PAPER):
        folds = tuple(v for v in plan.variants if "feature" in v.labels)
        runs = replace(plan, variants=folds).runs
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


def steps(run, items):
    """How many steps a training takes on that many items, and an SSN's for its mean."""
    passes = run.training.get("epoch_passes", 1)
    of_epoch = math.ceil(items * passes / run.training["batch"])
    alone = run.method.options.get("mean_epochs", 0)
    return run.training["epochs"] * of_epoch, alone * of_epoch


def test_the_paper_trains_volumes_as_many_steps_as_the_released_code():
    for name in ("toy_1", "toy_2", "toy_3a", "toy_3b"):
        assert steps(spec(PAPER, name, "softmax"), 160) == (24_000, 0)
        assert steps(spec(PAPER, name, "ssn"), 160) == (24_000, 800)
    for name, items in (("lidc_texture", 513), ("screening_lobulation_2", 360)):
        run = spec(PAPER, name, "softmax", PAPER.seeds[0])
        assert steps(run, items) == (150 * items, 0)
        assert run.training["patience"] == 10
    # The loader of street scenes counts passes.
    for row in ("softmax", "ssn"):
        run = spec(PAPER, "gta", row)
        assert steps(run, 13_157)[0] == 150 * math.ceil(13_157 / 6)


@pytest.mark.parametrize(
    ("variant", "items"),
    [
        *((f"toy_{name}", 160) for name in ("1", "2", "3a", "3b")),
        *(("lidc_texture", 503), ("lidc_malignancy", 204), ("gta", 800)),
    ],
)
def test_an_ssn_is_trained_longest_in_preset_small(variant, items):
    every, alone = steps(spec(SMALL, variant, "ssn"), items)
    assert 8_900 < every < 9_100
    assert 600 < alone < 850
    for row in ("softmax", "ttd"):
        assert every > 3 * steps(spec(SMALL, variant, row), items)[0]
    if variant in ("lidc_texture", "gta"):
        (line, *_) = part(SMALL, (variant,), ("ssn_queried",)).lines
        assert line.runs[0].training["epochs"] > 60


def test_the_demo_trains_1200_steps_and_leaves_random_weights_to_methods():
    for name in ("toy_1", "toy_2", "toy_3b"):
        for row in ("softmax", "ttd", "ssn"):
            assert steps(spec(DEMO, name, row), 160)[0] == 1_200
    assert {row.name for row in DEMO.rows} == {*MODELS, "laplace"}
    for name in ("mfvi", "radial", "rank1"):
        (plan,) = plans_of("values/toy_2", RunRequest(preset="demo", methods=(name,)))
        assert {run.method.name for run in plan.runs} == {name}


def test_the_published_networks_find_unseen_shapes_as_is_expected_of_the_demo():
    (expectation,) = (
        each for each in BENCHMARK.expectations["demo"] if "toy_2" in each.text
    )
    labels = {"dataset": "Toy 2", "type": "EU", "aggregation": "patch"}
    book = published(BENCHMARK.published).table.where(score="ood_auroc", **labels)
    values = {number.labels["row"]: number.value for number in book}
    # 300 steps gave TTA 0.55.
    assert 0.55 < expectation.low < min(values["ensemble"], values["tta"])


def test_measures_of_an_ssn_are_swapped():
    measures = {row: BENCHMARK.row(row).settings["measures"] for row in MODELS}
    assert measures["softmax"] == {"PU": "MSR"}
    assert measures["ensemble"] == {"PU": "PE", "AU": "EE", "EU": "MI"}
    assert measures["ssn"] == {"PU": "PE", "AU": "MI", "EU": "EE"}


def test_published_numbers_are_of_our_variants_rows_and_features():
    book = published(BENCHMARK.published).table
    declared = PAPER.preset.every_variant
    assert set(book.distinct("dataset")) <= {variant.label for variant in declared}
    assert set(book.distinct("row")) == set(MODELS)
    features = {v.labels["feature"] for v in declared if "feature" in v.labels}
    assert set(book.distinct("feature")) == features
    # Toy volumes are simulated in the paper too.
    for variant in declared:
        for number in book.where(dataset=variant.label):
            assert number.labels["simulated"] == variant.simulated


def test_its_protocol_is_found_also_after_it_was_loaded():
    # A module that is loaded takes its name in the package.
    for _ in range(2):
        assert values().protocol().judge
        assert values().presentation().tables
