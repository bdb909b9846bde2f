"""Declared second trainings, further datasets and settings that enter training."""

from dataclasses import replace

import pytest

from qualms.spec import Part
from qualms.study import Benchmark, Preset, Stage, TableRow, Variant

MAP = Part(name="map")
QUERY = Stage(
    row="ensemble",
    rule="most_uncertain",
    split="pool",
    options={"share": 0.5},
    chosen_by=("measure",),
)
ROWS = (
    TableRow(name="alone", label="Alone", method=MAP, at=({},)),
    TableRow(name="ensemble", label="Ensemble", method=MAP, pool=2, at=({},)),
    TableRow(name="queried", label="Queried", method=MAP, stage=QUERY),
    TableRow(
        name="continued",
        label="Continued",
        method=MAP,
        stage=Stage(row="alone", rule="few_shot", options={"k": 1}, continues=True),
        at=({},),
    ),
    TableRow(
        name="posthoc",
        label="Post hoc",
        method=Part(name="laplace"),
        weights_of="alone",
        at=({},),
    ),
    TableRow(
        name="chosen_by_posthoc",
        label="Chosen by post hoc",
        method=MAP,
        stage=Stage(row="posthoc", rule="most_uncertain", splits=("test",)),
        at=({"measure": "MI"}, {"measure": "PE"}),
    ),
    TableRow(
        name="random",
        label="Random",
        method=MAP,
        pool=2,
        stage=Stage(rule="random_items", seeded=True),
        at=({},),
    ),
)
VARIANT = Variant(
    name="v",
    label="V",
    dataset=Part(name="cells"),
    datasets={"other": Part(name="chairs")},
    splits=("val", "test", "pool", "other:test"),
    at=({"measure": "MI"}, {"measure": "EE"}),
    only={"measure": ("MI", "EE")},
)
PRESET = Preset(
    name="demo",
    variants=(VARIANT,),
    rows=tuple(row.name for row in ROWS),
    network=Part(name="resnet_small"),
    training={},
    seeds=(0, 1),
    pools=((0, 1),),
    alone=(0, 1),
)
BENCHMARK = Benchmark(
    name="toy",
    version=1,
    title="",
    paper="",
    task="regression",
    rows=ROWS,
    presets={"demo": PRESET},
)


PLAN = BENCHMARK.plan("demo")


def spec(row, seed, **at):
    """The run of a row with a seed."""
    lines = (line for line in PLAN.lines if line.row.name == row)
    line = next(line for line in lines if line.at.items() <= at.items())
    return next(run for run in line.runs if run.seed == seed)


def test_rows_are_judged_at_their_own_settings_or_at_the_variants():
    assert [(line.row.name, line.at) for line in PLAN.lines] == [
        ("queried", {"measure": "MI"}),
        ("queried", {"measure": "EE"}),
        ("alone", {}),
        ("ensemble", {}),
        ("continued", {}),
        ("posthoc", {}),
        ("chosen_by_posthoc", {"measure": "MI"}),
        ("random", {}),
    ]


def test_a_second_training_asks_the_whole_pool_by_its_rule():
    items = spec("queried", 1, measure="MI").items
    assert items.name == "most_uncertain"
    assert items.runs == tuple(spec("alone", seed).hash for seed in (0, 1))
    assert (items.split, items.options) == ("pool", {"share": 0.5, "measure": "MI"})
    assert (
        spec("queried", 1, measure="EE").hash != spec("queried", 1, measure="MI").hash
    )


def test_a_second_training_may_go_on_from_the_first():
    later = spec("continued", 1)
    assert later.start == spec("alone", 1).hash
    assert later.items.runs == (later.start,)
    assert spec("queried", 1, measure="MI").start is None


def test_runs_that_are_asked_come_before_those_that_ask():
    runs = PLAN.runs
    place = {run.hash: i for i, run in enumerate(runs)}
    assert len(place) == len(runs) == 2 + 2 * 2 + 2 + 2 + 2 + 2
    for run in runs:
        assert all(place[name] < place[run.hash] for name in run.parents)


def test_a_row_with_the_weights_of_another_is_not_trained():
    lender, lent = spec("alone", 1), spec("posthoc", 1)
    assert lent.start == lender.hash
    assert lent.training == {**lender.training, "epochs": 0}
    assert (lent.method.name, lent.network, lent.dataset) == (
        "laplace",
        lender.network,
        lender.dataset,
    )


def test_a_row_that_is_asked_for_alone_brings_all_runs_that_it_needs():
    rows = (BENCHMARK.row("chosen_by_posthoc"),)
    runs = replace(PLAN, rows=rows).runs
    assert [run.hash for run in runs] == [
        spec(row, seed, measure="MI").hash
        for seed in (0, 1)
        for row in ("alone", "posthoc", "chosen_by_posthoc")
    ]
    assert runs[-1].splits == ("test",)


def test_runs_of_a_pool_draw_the_same_random_items():
    assert [spec("random", seed).items.options for seed in (0, 1)] == [{"seed": 0}] * 2
    assert spec("random", 0).parents == ()


@pytest.mark.parametrize("row", ["alone", "continued"])
def test_runs_name_further_datasets_and_their_splits(row):
    run = spec(row, 0)
    assert run.datasets == {"other": Part(name="chairs")}
    assert "other:test" in run.splits
