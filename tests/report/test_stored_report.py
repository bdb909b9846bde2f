"""What pages show of a judged benchmark, stored beside its results."""

import json
import os
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
from qualms.report.site import write_site
from qualms.report.site._read import SiteRequest, read_contents
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


def altered(folder, change):
    path = folder / "results.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    names = lines[0]
    for line in lines[1:]:
        change(line, names)
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    return path


def test_a_table_changed_by_hand_is_named(folder, tmp_path):
    def better(line, names):
        value = names.index("value")
        line[value] = line[value].replace("0.85", "0.99")

    path = altered(folder, better)
    report = read_report(folder)
    (note,) = report.notes
    assert note.startswith(f"{path} was changed since it was judged: report.npz beside")
    contents = read_contents(SiteRequest(sources=(folder,)))
    assert [gap.why for gap in contents.gaps] == [note]
    write_site(folder, out=tmp_path / "site")
    page = (tmp_path / "site" / "mine.html").read_text("utf-8")
    assert "was changed since it was judged" in page


def test_a_renamed_row_is_a_sentence(folder, tmp_path):
    def rename(line, names):
        row = names.index("row")
        line[row] = "renamed" if line[row] == "a" else line[row]

    path = altered(folder, rename)
    sentence = "compares rows with the row 'a', and has no such row, but renamed, b, c"
    for source in (folder, path):
        with pytest.raises(ValueError, match=sentence):
            write_site(source, out=tmp_path / "site")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must be a table of results in CSV and UTF-8"),
        (b"\xff\xfe\x00", "must be a table of results in CSV and UTF-8"),
        (b'{"a":' * 100_000, "must be a table of results in CSV and UTF-8"),
        (b"[]\n", "must have a column 'variant'"),
        (b"row,value\na,1\n", "must have a column 'variant'"),
        (b"variant,row,value\nx,a\n", "3 cells in every line, got 2 in line 2"),
        (b"variant;row;value\nx;a;1\n", "must have a column 'variant'"),
        (b'variant,row,value\nx,a,"0,5"\n', "must hold numbers in its columns"),
    ],
)
def test_what_is_no_table_of_results_is_a_sentence(tmp_path, content, sentence):
    (tmp_path / "results.csv").write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        read_report(tmp_path)
    assert str(tmp_path / "results.csv") in str(caught.value)


@pytest.mark.parametrize("name", ["results.csv", "report.npz"])
def test_a_pipe_in_place_of_results_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    if name == "report.npz":
        assert not read_report(folder).complete
    else:
        with pytest.raises(OSError, match=r"results\.csv must be a file, got a pipe"):
            read_report(folder)


@pytest.mark.parametrize(
    "fields",
    [{"name": 3}, {"rows": ("a",)}, {"variants": None}, {"costs": {"a": 1}}],
)
def test_a_report_of_other_types_counts_as_missing(folder, fields):
    report = read_report(folder)
    assert report.complete
    write_report(replace(report, **fields), folder)
    assert not read_report(folder).complete
