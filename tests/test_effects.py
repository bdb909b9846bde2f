"""Expected effects are decided by the numbers that they name."""

import math

import pytest

from qualms.effects import value_of, worst_shortfall
from qualms.evaluate.benchmark import checks_of
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.results import ResultsTable, result
from qualms.spec import Part
from qualms.study import Benchmark, Expectation, Preset, TableRow, Variant

ROWS = tuple(TableRow(name=n, label=n, method=Part(name="map")) for n in "abc")
PRESET = Preset(
    name="demo",
    variants=tuple(
        Variant(name=name, label=name.upper(), dataset=Part(name="cells"))
        for name in ("v", "w")
    ),
    rows=("a", "b"),
    network=Part(name="resnet_small"),
    training={},
    seeds=(0,),
    pools=((0,),),
)
CONTEST = worst_shortfall("aggregation", ("a", "b"), {"score": "ood_auroc"})
AT = {"variant": "v", "score": "ood_auroc", "measure": "PE", "aggregation": "image"}


def numbers(**values):
    """Results of rows on the variant v, by "row_measure_aggregation"."""
    for name, value in values.items():
        row, measure, aggregation = name.split("_")
        labels = {"variant": "v", "row": row, "score": "ood_auroc"}
        labels |= {"measure": measure, "aggregation": aggregation}
        yield result(labels, (value,))


def checks(made, decided_by=CONTEST, low=0.02, high=1.0, **more):
    expectation = Expectation(
        text="what is expected", numbers=decided_by, low=low, high=high, **more
    )
    benchmark = Benchmark(
        name="toy",
        version=1,
        title="",
        paper="",
        task="segmentation",
        rows=ROWS,
        presets={"demo": PRESET},
        expectations={"demo": (expectation,), "paper": (expectation,) * 2},
    )
    table = ResultsTable.of(made)
    return checks_of(BenchmarkResults(plan=benchmark.plan("demo"), table=table))


def test_a_contest_says_how_far_each_value_falls_behind_at_worst():
    (check,) = checks(
        numbers(a_PE_patch=0.9, a_PE_image=0.7, b_PE_patch=0.5, b_PE_image=0.6)
    )
    assert check.values == pytest.approx({"patch": 0.1, "image": 0.2})
    assert check.held


def test_a_contest_with_a_winner_does_not_hold():
    (check,) = checks(
        numbers(a_PE_patch=0.9, a_PE_image=0.7, b_MI_patch=0.65, b_MI_image=0.6)
    )
    assert check.values == pytest.approx({"patch": 0.0, "image": 0.2})
    assert check.known
    assert not check.held


def test_values_compete_only_where_all_else_is_the_same():
    (check,) = checks(numbers(a_PE_patch=0.9, a_MI_image=0.7, b_PE_image=0.6))
    assert check.values == {"patch": 0.0, "image": 0.0}
    elsewhere = result({**AT, "row": "a", "variant": "w", "aggregation": "patch"}, (1,))
    (check,) = checks([*numbers(a_PE_image=0.7), elsewhere])
    assert check.values == {"patch": 0.0, "image": 0.0}


def test_a_contest_leaves_out_what_is_undefined_and_other_rows():
    made = numbers(a_PE_patch=0.9, a_PE_image=math.nan, c_PE_patch=0.1, c_PE_image=0.9)
    (check,) = checks(made)
    assert check.values == {"patch": 0.0}


def test_a_contest_leaves_out_numbers_without_the_label():
    plain = result({"variant": "v", "row": "a", "score": "ood_auroc"}, (0.99,))
    (check,) = checks([*numbers(a_PE_patch=0.9, a_PE_image=0.7), plain])
    assert check.values == pytest.approx({"patch": 0.0, "image": 0.2})


def test_a_contest_without_numbers_is_not_stated():
    other = worst_shortfall("aggregation", ("a", "b"), {"score": "dice"})
    assert checks(()) == ()
    assert checks(numbers(a_PE_patch=0.9), other) == ()


def test_one_row_is_enough_where_any_may_do():
    def decided(made, **more):
        (check,) = checks(made, value_of(("a", "b"), AT), low=0.6, **more)
        return check

    check = decided(numbers(a_PE_image=0.7, b_PE_image=0.4), any_row=True)
    assert check.held
    assert check.known
    check = decided(numbers(a_PE_image=0.7), any_row=True)
    assert check.held
    assert check.known
    check = decided(numbers(a_PE_image=0.5), any_row=True)
    assert not check.held
    assert not check.known
    check = decided(numbers(a_PE_image=0.7, b_PE_image=0.4))
    assert not check.held


def test_a_value_that_is_missing_is_unknown_and_never_held():
    (check,) = checks(numbers(a_PE_image=0.7), value_of(("a", "b"), AT))
    assert check.values["a"] == 0.7
    assert math.isnan(check.values["b"])
    assert not check.known
    assert not check.held


def test_rows_and_variants_that_are_not_run_decide_nothing():
    made = list(numbers(a_PE_image=0.7, c_PE_image=0.7))
    (check,) = checks(made, value_of(("a", "c"), AT))
    assert list(check.values) == ["a"]
    assert checks(made, value_of(("c",), AT)) == ()
    assert checks(made, value_of(("a",), {**AT, "variant": "elsewhere"})) == ()
    elsewhere = {"variant": "elsewhere"}
    assert checks(made, value_of(("a",), AT, minus=elsewhere)) == ()


def test_values_are_taken_from_each_other_by_labels_and_rows():
    made = list(numbers(a_PE_image=0.7, a_MI_image=0.4, b_PE_image=0.5))
    (check,) = checks(made, value_of(("a",), AT, minus={"measure": "MI"}))
    assert check.values == pytest.approx({"a": 0.3})
    (check,) = checks(made, value_of(("a",), AT, minus_rows=("b",)))
    assert check.values == pytest.approx({"a": 0.2})
    both = value_of(("b",), AT, minus={"measure": "MI"}, minus_rows=("a",))
    (check,) = checks(made, both)
    assert check.values == pytest.approx({"b": 0.1})


def test_a_label_that_must_be_missing_leaves_out_numbers_that_have_it():
    referred = result({**AT, "row": "a", "referred": 0.5}, (0.9,))
    made = [referred, *numbers(a_PE_image=0.7)]
    (check,) = checks(made, value_of(("a",), {**AT, "referred": None}))
    assert check.values == {"a": 0.7}
    (check,) = checks(
        made,
        value_of(("a",), {**AT, "referred": 0.5}, minus={"referred": None}),
    )
    assert check.values == pytest.approx({"a": 0.2})
