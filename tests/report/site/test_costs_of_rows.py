"""Costs beside scores: which rows no other beats in both."""

import pytest

from qualms.evaluate.benchmark_results import Cost
from qualms.report.benchmark_report import BenchmarkReport, RowFacts
from qualms.report.site.contents import ShownBenchmark
from qualms.report.site.costs import cost_section
from qualms.report.table import Column, Table, TableCell, TableLine

SECONDS = {"a": 5.0, "b": 10.0, "c": 10.0, "d": 40.0}
VALUES = {"a": 0.8, "b": 0.9, "c": 0.85, "d": 0.88}


def section(score="accuracy", values=VALUES, seconds=SECONDS):
    table = Table(
        name="t",
        title="T",
        columns=(Column(label="x", keys={"score": score}),),
        lines=tuple(
            TableLine(
                labels=(row,),
                cells=(TableCell(mean=v, low=v - 0.1, high=v + 0.1, repeats=3),),
                keys={"row": row},
            )
            for row, v in values.items()
        ),
        keys={"variant": "home"},
    )
    report = BenchmarkReport(
        name="mine",
        title="Mine",
        rows=tuple(
            RowFacts(row, row, pool=2 if row == "d" else 1, options={"draws": 10})
            if row == "d"
            else RowFacts(row, row)
            for row in values
        ),
        seconds_each={("home", row): s for row, s in seconds.items()},
        costs={("home", "d"): Cost(80.0, 2_500_000)},
    )
    return cost_section(ShownBenchmark(slug="mine", report=report), [table], "index")


def test_the_front_has_what_no_other_beats_in_both():
    (data,) = section().data
    assert data.name == "index-mine-cost"
    assert data.value["front"] == ["a", "b"]
    (errors,) = section(score="nll").data
    assert errors.value["front"] == ["a"]
    details = {point["name"]: point["detail"] for point in data.value["points"]}
    assert details["d"] == "40 s, 2.5 M parameters in 2 networks, 10 draws"
    assert details["a"] == "5 s"


@pytest.mark.parametrize(
    "changes",
    [
        {"score": "coverage"},  # neither more nor less is better
        {"seconds": {"a": 5.0}},
        {"seconds": {}},
        {"values": {"a": float("nan"), "b": 0.5}},
    ],
)
def test_there_is_no_plot_without_two_costs_and_a_direction(changes):
    assert section(**changes) is None


def test_one_value_alone_has_room_around_it():
    (data,) = section(values={"a": 0.5, "b": 0.5}).data
    low, high = data.value["y"]["range"]
    assert low < 0.4
    assert high > 0.6
