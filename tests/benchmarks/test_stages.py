"""Declared second trainings, further datasets and settings that enter training."""

import pytest

from qualms.benchmarks import Benchmark, Place, Preset, Stage, TableRow, Variant
from qualms.spec import Part

MAP = Part(name="map")
QUERY = Stage(
    row="ensemble",
    rule="most_uncertain",
    split="pool",
    options={"share": 0.5},
    chosen_by=("measure",),
)
ROWS = (
    TableRow(name="alone", label="Alone", method=MAP, places=({},)),
    TableRow(name="ensemble", label="Ensemble", method=MAP, pool=2, places=({},)),
    TableRow(name="queried", label="Queried", method=MAP, stage=QUERY),
    TableRow(
        name="continued",
        label="Continued",
        method=MAP,
        stage=Stage(row="alone", rule="few_shot", options={"k": 1}, continues=True),
        places=({},),
    ),
)
VARIANT = Variant(
    name="v",
    label="V",
    dataset=Part(name="cells"),
    datasets={"other": Part(name="chairs")},
    splits=("val", "test", "pool", "other:test"),
    places=({"measure": "MI"}, {"measure": "EE"}),
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


def spec(row, seed, **settings):
    return BENCHMARK.spec(PRESET, Place(VARIANT, BENCHMARK.row(row), settings), seed)


def test_rows_are_judged_at_their_own_places_or_at_the_variants():
    found = [(p.row.name, p.settings) for p in BENCHMARK.places(PRESET, VARIANT)]
    assert found == [
        ("queried", {"measure": "MI"}),
        ("queried", {"measure": "EE"}),
        ("alone", {}),
        ("ensemble", {}),
        ("continued", {}),
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
    runs = BENCHMARK.runs(PRESET)
    place = {run.hash: i for i, run in enumerate(runs)}
    assert len(place) == len(runs) == 2 + 2 * 2 + 2
    for run in runs:
        asked = run.items.runs if run.items else ()
        assert all(place[name] < place[run.hash] for name in asked)


@pytest.mark.parametrize("row", ["alone", "continued"])
def test_runs_name_further_datasets_and_their_splits(row):
    run = spec(row, 0)
    assert run.datasets == {"other": Part(name="chairs")}
    assert "other:test" in run.splits
