"""Expected effects are decided by the cells that they name."""

import math
from dataclasses import replace

import pytest
from qualms.evaluate.checks import checks_of

from qualms.benchmarks import Benchmark, Expectation, Preset, TableRow, Variant
from qualms.evaluate.results import Cell, Key
from qualms.spec import Part

CONTEST = Expectation(
    text="no aggregation wins everywhere",
    variant="",
    rows=("a", "b"),
    score="ood_auroc",
    contest="aggregation",
    low=0.02,
    high=1.0,
)


def cells(**values):
    """Cells of rows, by "row_measure_aggregation"."""
    found = {}
    for name, value in values.items():
        row, measure, aggregation = name.split("_")
        at = f"measure={measure}, aggregation={aggregation}"
        key = Key("v", row, at, "ood_auroc")
        found[key] = Cell(key=key, values=(value,))
    return found


def check(found, expectation=CONTEST):
    dataset = Part(name="cells")
    preset = Preset(
        name="demo",
        variants=(Variant(name="v", label="V", dataset=dataset),),
        rows=("a", "b"),
        network=Part(name="resnet_small"),
        training={},
        seeds=(0,),
        pools=((0,),),
    )
    rows = tuple(TableRow(name=n, label=n, method=Part(name="map")) for n in "ab")
    benchmark = Benchmark(
        name="toy",
        version=1,
        title="",
        paper="",
        task="segmentation",
        rows=rows,
        presets={"demo": preset},
        expectations={"demo": (expectation,)},
    )
    return checks_of(benchmark, preset, found)


def test_a_contest_says_how_far_each_value_falls_behind_at_worst():
    (found,) = check(
        cells(a_PE_patch=0.9, a_PE_image=0.7, b_PE_patch=0.5, b_PE_image=0.6)
    )
    assert found.values == pytest.approx({"patch": 0.1, "image": 0.2})
    assert found.held


def test_a_contest_with_a_winner_does_not_hold():
    (found,) = check(
        cells(a_PE_patch=0.9, a_PE_image=0.7, b_MI_patch=0.65, b_MI_image=0.6)
    )
    assert found.values == pytest.approx({"patch": 0.0, "image": 0.2})
    assert found.known
    assert not found.held


def test_values_compete_only_where_all_else_is_the_same():
    (found,) = check(cells(a_PE_patch=0.9, a_MI_image=0.7, b_PE_image=0.6))
    assert found.values == {"patch": 0.0, "image": 0.0}


def test_a_contest_leaves_out_what_is_undefined_and_other_rows():
    found = cells(a_PE_patch=0.9, a_PE_image=math.nan, c_PE_patch=0.1, c_PE_image=0.9)
    (check_,) = check(found)
    assert check_.values == {"patch": 0.0}


def test_a_contest_without_numbers_is_not_stated():
    assert check({}) == ()
    assert check(cells(a_PE_patch=0.9), replace(CONTEST, score="dice")) == ()


def test_one_row_is_enough_where_some_are_asked_for():
    expectation = replace(
        CONTEST, contest="", variant="v", low=0.6, some=True, settings=AT
    )
    (found,) = check(cells(a_PE_image=0.7, b_PE_image=0.4), expectation)
    assert found.held
    assert found.known
    (found,) = check(cells(a_PE_image=0.7), expectation)
    assert found.held
    assert found.known
    (found,) = check(cells(a_PE_image=0.5), expectation)
    assert not found.held
    assert not found.known
    (found,) = check(
        cells(a_PE_image=0.7, b_PE_image=0.4), replace(expectation, some=False)
    )
    assert not found.held


AT = {"measure": "PE", "aggregation": "image"}
