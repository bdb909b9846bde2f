"""Run specs, grids and pools: plain data, the same on every machine."""

import itertools
import json
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from qualms.spec import (
    CorruptedSplit,
    ItemRule,
    Part,
    RunSpec,
    Task,
    digest,
    grid,
    parse_corrupted,
    parse_split,
    pools,
)

SPEC = RunSpec(
    benchmark="regression",
    dataset=Part(name="cells", options={"shift": "tails"}),
    network=Part(name="resnet34_ddu"),
    method=Part(name="gaussian", options={"warmup": 20, "rates": [0.1, 0.2]}),
    seed=3,
    training={"epochs": 75, "batch": 32, "lr": 1e-3},
)
CHANGED = {
    "benchmark": "retina",
    "dataset": Part(name="cells", options={"shift": "gap"}),
    "network": Part(name="resnet50"),
    "method": Part(name="gaussian", options={"warmup": 20, "rates": [0.1, 0.3]}),
    "seed": 4,
    "training": {"epochs": 75, "batch": 32, "lr": 2e-3},
    "splits": ("val", "test", "test/shifted"),
    "start": "0123456789abcdef",
    "items": ItemRule(name="most_uncertain", runs=("0123456789abcdef",)),
    "datasets": {"birds": Part(name="cub", options={"size": 64})},
    "sources": {"methods/mine": "0" * 16},
    "version": 2,
}


def test_a_spec_comes_back_from_json_as_it_was():
    for name in CHANGED:
        spec = replace(SPEC, **{name: CHANGED[name]})
        assert RunSpec.from_json(spec.to_json()) == spec


def test_the_hash_is_sixteen_digits_and_known():
    assert SPEC.hash == "40283bf9b02b5a31"
    for names, known in (
        (("datasets", "sources", "splits"), "0e50f3d820d69e86"),
        (("items", "start", "version"), "4af34cb133938054"),
    ):
        changed = {name: CHANGED[name] for name in names}
        assert replace(SPEC, **changed).hash == known
    assert digest("") == "e3b0c44298fc1c14"


def test_the_hash_does_not_depend_on_the_order_of_options():
    turned = dict(reversed(SPEC.training.items()))
    assert list(turned) != list(SPEC.training)
    assert replace(SPEC, training=turned).hash == SPEC.hash


def test_every_field_changes_the_hash():
    assert set(CHANGED) == {field.name for field in fields(RunSpec) if field.init}
    hashes = {replace(SPEC, **{name: new}).hash for name, new in CHANGED.items()}
    assert len(hashes | {SPEC.hash}) == len(CHANGED) + 1


def test_every_part_of_a_rule_for_items_changes_the_hash():
    rule = ItemRule(name="most_uncertain", runs=("0" * 16,), options={"count": 10})
    others = (
        replace(rule, name="random"),
        replace(rule, runs=("1" * 16,)),
        replace(rule, split="pool"),
        replace(rule, options={"count": 20}),
    )
    specs = [replace(SPEC, items=each) for each in (None, rule, *others)]
    assert len({spec.hash for spec in specs}) == len(specs)
    assert [RunSpec.from_json(spec.to_json()) for spec in specs] == specs


def test_options_that_change_no_number_leave_the_hash_as_it_was():
    for option in ({"sinks": ["wandb"]}, {"validate": 2}):
        spec = replace(SPEC, training={**SPEC.training, **option})
        assert spec.hash == SPEC.hash
        assert RunSpec.from_json(spec.to_json()) == spec


def test_the_parents_of_a_run_are_where_it_starts_and_what_chose_its_items():
    assert SPEC.parents == ()
    rule = ItemRule(name="most_uncertain", runs=("b" * 16, "a" * 16))
    spec = replace(SPEC, start="a" * 16, items=rule)
    assert spec.parents == ("a" * 16, "b" * 16)


def test_splits_of_further_datasets_are_named_by_their_dataset():
    further = {"birds": Part(name="cub")}
    spec = replace(SPEC, datasets=further, splits=("test", "birds:test/shifted"))
    assert [parse_split(split) for split in spec.splits] == [
        ("", "test"),
        ("birds", "test/shifted"),
    ]
    assert spec.parts == {"": SPEC.dataset, **further}
    with pytest.raises(ValueError, match=r"'cars:test' .* which are birds"):
        replace(spec, splits=("cars:test",))
    with pytest.raises(ValueError, match="a word without ':' and '/', got 'a:b'"):
        replace(SPEC, datasets={"a:b": Part(name="cub")})


def test_a_tuple_among_the_options_leaves_the_hash_as_it_was():
    spec = replace(SPEC, training={"steps": (30, 60)})
    assert RunSpec.from_json(spec.to_json()).hash == spec.hash


def test_json_is_canonical():
    text = SPEC.to_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_a_spec_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        SPEC.seed = 5


def test_a_task_has_one_of_four_names():
    assert Task(name="segmentation", classes=24, ignore=255, space=2).ignore == 255
    with pytest.raises(ValueError, match=r"one of classification, .*, got 'detection'"):
        Task(name="detection")


def test_a_grid_has_every_combination_once_the_last_axis_fastest():
    made = grid(method=("map", "swag"), seed=range(3), rate=(0.1,))
    assert made[:2] == [
        {"method": "map", "seed": 0, "rate": 0.1},
        {"method": "map", "seed": 1, "rate": 0.1},
    ]
    assert len({tuple(row.items()) for row in made}) == len(made) == 6


def test_a_grid_of_nothing_is_one_empty_choice_and_an_empty_axis_none():
    assert grid() == [{}]
    assert grid(seed=()) == []


def test_a_grid_takes_iterators():
    assert grid(seed=iter([1, 2])) == [{"seed": 1}, {"seed": 2}]


def test_pools_of_six_runs_by_three_have_the_form_of_retina():
    made = pools(6, 3, 6, seed=0)
    assert len(made) == 6
    assert len(set(made)) == 6
    for pool in made:
        assert len(set(pool)) == 3
        assert list(pool) == sorted(pool)
        assert all(type(run) is int and 0 <= run < 6 for run in pool)


def test_pools_are_a_function_of_their_seed():
    assert pools(20, 5, 5, seed=1) == pools(20, 5, 5, seed=1)
    assert pools(20, 5, 5, seed=1) != pools(20, 5, 5, seed=2)
    assert pools(20, 5, 5, seed=1)[:3] == pools(20, 5, 3, seed=1)


@pytest.mark.parametrize("n", range(1, 6))
def test_all_pools_come_up_before_any_repeats(n):
    for size in range(1, n + 1):
        every = set(itertools.combinations(range(n), size))
        made = pools(n, size, 2 * len(every), seed=n)
        assert set(made[: len(every)]) == every
        assert sorted(made) == sorted([*every] * 2)


@pytest.mark.parametrize(
    ("n", "size", "repeats", "said"),
    [
        (6, 0, 1, r"1\.\.6 for 6 runs, got 0"),
        (6, 7, 1, r"1\.\.6 for 6 runs, got 7"),
        (0, 1, 1, r"got 1"),
        (6, 3, 0, r"repeats must be at least 1, got 0"),
        (6, 3, -2, r"repeats must be at least 1, got -2"),
    ],
)
def test_impossible_pools_are_refused(n, size, repeats, said):
    with pytest.raises(ValueError, match=said):
        pools(n, size, repeats, seed=0)


def test_corrupted_splits_are_predicted_by_the_same_run():
    splits = (*SPEC.splits, "test+fog-3", "test+mine-5")
    sources = {"corruptions/mine": "0" * 16}
    more = replace(SPEC, splits=splits, sources=sources)
    assert more.hash == SPEC.hash
    assert RunSpec.from_json(more.to_json()) == more
    assert replace(more, splits=(*splits, "train")).hash != SPEC.hash
    other = {**sources, "methods/mine": "0" * 16}
    assert replace(more, sources=other).hash != SPEC.hash


def test_the_name_of_a_corrupted_split_says_what_it_is():
    split = CorruptedSplit("test/shifted", "scanner_blur", 2)
    assert split.name == "test/shifted+scanner_blur-2"
    assert parse_corrupted(split.name) == split
    assert parse_corrupted("test/shifted") is None
