"""What pages show of a judged benchmark, stored beside its results."""

import json
from dataclasses import replace

import numpy as np
import pytest

from qualms.evaluate.benchmark_results import Cost
from qualms.report.benchmark_report import benchmark_report
from qualms.report.figures import (
    CloudMark,
    CurveMark,
    Drawing,
    Panel,
    PictureMark,
    RuleMark,
)
from qualms.report.presented import presentation_of
from qualms.report.stored_report import read_report, write_report
from report.small_study import small_study

LONG = np.linspace(0, 1, 5000)
DRAWING = Drawing(
    name="figure_1",
    title="</script> one",
    caption="words",
    rows=(
        (
            Panel(
                marks=(
                    CurveMark(x=LONG, y=LONG**2, colour="#2938b5", low=LONG, high=LONG),
                    CloudMark(x=LONG, y=LONG, colour="#2938b5", label="items"),
                    RuleMark((0.0, 0.0), (1.0, np.nan)),
                    PictureMark(pixels=np.eye(3, dtype=np.uint8), scale=(0.0, 1.0)),
                ),
                x_ticks={0.5: "half"},
                y_range=(None, 1.0),
            ),
        ),
    ),
)


@pytest.fixture
def folder(tmp_path):
    """The folder of a judged benchmark with a report."""
    results = small_study(hardware=("a machine",))
    results.table.to_csv(tmp_path / "results.csv")
    tables = presentation_of(results).tables(results)
    report = benchmark_report(results, tables, [DRAWING], command="qualms run mine")
    write_report(report, tmp_path)
    return tmp_path


def test_a_report_is_read_as_it_was_written(folder):
    results = small_study(hardware=("a machine",))
    tables = presentation_of(results).tables(results)
    report = read_report(folder)
    assert report.complete
    assert (report.name, report.title, report.folder) == ("mine", "My question", folder)
    assert report.hardware == ("a machine",)
    assert report.costs == {("clinic", "a"): Cost(12.5, 1000)}
    assert [row.label for row in report.rows] == ["Mine", "Other", "Not run"]
    assert report.rows[1].pool == 2
    assert report.simulated
    assert repr(report.tables) == repr(tables)  # nan equals itself as text
    assert len(report.table) == len(results.table)
    figure = report.figures[0]
    assert figure.title == "</script> one"
    curve, cloud, rule, picture = figure.panels[0].marks
    assert 100 < len(curve.x) == len(curve.low) <= 400
    assert cloud.label == "items"
    assert 100 < len(cloud.x) <= 200
    assert rule.start == (0.0, 0.0)
    assert np.isnan(rule.end[1])
    assert picture.pixels.tolist() == np.eye(3).tolist()
    assert figure.panels[0].x_ticks == {0.5: "half"}
    assert figure.panels[0].y_range == (None, 1.0)


def test_a_report_of_other_results_is_not_shown(folder):
    few = small_study().table.where(row="a")
    few.to_csv(folder / "results.csv")
    report = read_report(folder)
    assert not report.complete
    assert report.figures == ()
    assert len(report.table) == len(few)
    assert [row.name for row in report.rows] == ["a"]
    assert [v.name for v in report.variants] == ["clinic", "night"]
    assert [v.simulated for v in report.variants] == [False, True]


@pytest.mark.parametrize("damage", ["cut", "empty", "missing", "words", "strange"])
def test_a_damaged_report_leaves_the_table(folder, damage):
    path = folder / "report.npz"
    data = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "words":
        path.write_text("a report")
    elif damage == "strange":
        plain = {"format": 1, "results": "", "report": {"record": "Path", "fields": {}}}
        np.savez(path, report=np.array(json.dumps(plain)))
    report = read_report(folder)
    assert not report.complete
    assert len(report.table) == len(small_study().table)


def test_seconds_are_those_of_the_runs_that_one_repeat_pools():
    results = small_study()
    single = next(line for line in results.plan.lines if line.row.name == "a")
    assert len(single.runs) == 1
    costs = {("clinic", "a"): Cost(12.5, 1000), ("clinic", "b"): Cost(30.0, 1000)}
    report = benchmark_report(replace(results, costs=costs), (), ())
    assert report.seconds_each == {("clinic", "a"): 12.5, ("clinic", "b"): 30.0}
