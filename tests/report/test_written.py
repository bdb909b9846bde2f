"""Everything that is written about a judged benchmark, and the pages that link it."""

import csv
import math
import re
from dataclasses import replace
from html import escape

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from evaluate.made_referrals import make_runs
from plans import part_of
from qualms.benchmarks.retina._presentation import PRESENTATION
from qualms.effects import value_of
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.benchmark_results import (
    BenchmarkResults,
    Check,
    Cost,
    Missing,
)
from qualms.labels import Labelled
from qualms.report import _draw
from qualms.report.benchmark import (
    print_benchmark,
    print_checks,
    write_all,
)
from qualms.report.figures import (
    BarMark,
    CurveMark,
    Drawing,
    HistogramMark,
    Panel,
    PictureMark,
    PointMark,
    RuleMark,
    WordMark,
)
from qualms.report.presented import presentation_of
from qualms.results import ResultsTable, result
from qualms.spec import Part
from qualms.study import Benchmark, Expectation, Preset, TableRow, Variant
from report.made_retina import DEMO, results_as_published

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def coarse(monkeypatch):
    """Drawn in full, but as small files."""
    monkeypatch.setattr(_draw, "KINDS", ("png",))
    monkeypatch.setitem(_draw.STYLE, "savefig.dpi", 30)


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _name: None)


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def own(label="Mine", **more):
    """Results of a benchmark that nobody has written a layout for."""
    rows = (
        TableRow(name="a", label=label, method=Part(name="map")),
        TableRow(name="b", label="Other", method=Part(name="mc_dropout"), pool=2),
    )
    variant = Variant(
        name="clinic", label="My clinic", dataset=Part(name="mine"), shift="night"
    )
    preset = Preset(
        name="demo",
        variants=(variant,),
        rows=("a", "b"),
        network=Part(name="resnet50"),
        training={"epochs": 3},
        seeds=(0, 1),
        pools=((0, 1),),
    )
    benchmark = Benchmark(
        name="mine",
        version=1,
        title=f"My question {label}",
        paper="nobody",
        task="classification",
        rows=rows,
        presets={"demo": preset},
    )
    plan = benchmark.plan("demo")
    kinds = (
        {"subset": "all", "score": "accuracy"},
        {"subset": "shifted", "score": "accuracy"},
        {"subset": "all", "score": "aurc", "uncertainty": "entropy"},
    )
    made = [
        result({**line.labels, **kind}, (0.8, 0.9), low=0.7, high=0.95)
        for line in plan.lines
        for kind in kinds
    ]
    made[0] = replace(made[0], best="a", tied=True, difference=0.0)
    made[3] = replace(
        made[3],
        **{"best": "a", "tied": True, "difference": -0.1},
        **{"difference_low": -0.2, "difference_high": 0.01},
    )
    return BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(made),
        costs={("clinic", "a"): Cost(12.5, 1000)},
        **more,
    )


EXPECTED = Expectation(
    text="coverage drops",
    numbers=value_of(("gaussian",), {"variant": "cells", "score": "coverage"}),
    low=0.1,
    high=1.0,
    meaning="Intervals promise too much on unusual items.",
)


def check(value):
    return Check(expectation=EXPECTED, values={"gaussian": value})


def test_a_benchmark_is_shown_as_it_declares_and_others_have_ordinary_tables(tmp_path):
    declared = results_as_published(plan=DEMO, simulated=True)
    assert presentation_of(declared) is PRESENTATION
    assert presentation_of(own()) is not PRESENTATION
    written = write_all(own(), tmp_path)
    assert {path.name for path in written.tables} == {
        f"table_clinic{settings}{end}"
        for settings in ("", "_uncertainty_entropy")
        for end in (".csv", ".tex")
    }
    console = Console(width=80)
    with console.capture() as capture:
        print_benchmark(own(), console=console)
    message = " ".join(capture.get().split())
    assert (
        "My question Mine, My clinic real data; preset demo; shifted: night" in message
    )
    assert "Accuracy ↑" in message


def test_results_name_ties_differences_costs_and_commit(tmp_path):
    write_all(own(), tmp_path, command="qualms run mine")
    lines = {
        (line["row"], line["subset"], line["score"]): line
        for line in lines_of(tmp_path / "results.csv")
    }
    first, second = lines["a", "all", "accuracy"], lines["b", "all", "accuracy"]
    assert (first["best"], first["tied"]) == ("a", "True")
    assert (first["seconds"], first["parameters"]) == ("12.5", "1000")
    assert (second["seconds"], second["parameters"]) == ("", "")
    assert second["difference"] == "-0.1"
    assert (second["difference_low"], second["difference_high"]) == ("-0.2", "0.01")
    assert lines["a", "all", "aurc"]["uncertainty"] == "entropy"
    assert lines["a", "all", "aurc"]["best"] == ""
    assert {line["variant"] for line in lines.values()} == {"clinic"}
    assert (first["pool"], second["pool"]) == ("1", "2")
    assert re.fullmatch("[0-9a-f]{40}( with changes)?|", first["commit"])
    assert not {"alpha", "regime"} & set(first)


@pytest.mark.usefixtures("coarse")
def test_the_page_holds_figures_effects_and_every_table(tmp_path):
    made = results_as_published(plan=DEMO, simulated=True, drawn=True)
    made = replace(
        made,
        curves=made.curves.where(name="ood_roc"),
        histograms=Labelled(),
        checks=(check(0.3), check(0.01), check(math.nan)),
        hardware=("a machine",),
    )
    written = write_all(made, tmp_path, command="qualms run retina --preset demo")
    page = written.page.read_text(encoding="utf-8")
    tables = presentation_of(made).tables(made)
    assert len(tables) > 5
    for table in tables:
        assert escape(table.title) in page
    assert "qualms run retina --preset demo" in page
    assert '<li class="chip simulated">Simulated data</li>' in page
    caption = (tmp_path / "figures/figure_ood_country_simulated.txt").read_text()
    assert "On the dotted line uncertainty tells nothing" in " ".join(caption.split())
    assert page.count("On the dotted line uncertainty tells nothing") == 1
    for words in (">held<", ">not held<", ">unknown<", EXPECTED.meaning, "a machine"):
        assert words in page
    assert not re.search(r'(?:href|src)="(?!#|data:)', page)


def test_the_page_is_strict_and_escapes_names(tmp_path):
    written = write_all(own(label=HOSTILE), tmp_path, command=HOSTILE)
    page = written.page.read_text(encoding="utf-8")
    assert HOSTILE not in page
    assert "&lt;img" in page
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in page
    assert "unsafe" not in page
    assert not re.search(r"<[^>]* style=", page)


@pytest.mark.usefixtures("undrawn")
def test_tables_and_figures_of_an_earlier_time_do_not_stay(tmp_path):
    simulated = results_as_published(plan=DEMO, simulated=True)
    first = write_all(simulated, tmp_path)
    assert "pip install 'qualms-bench[report]'" in first.notes[0]
    (tmp_path / "figures").mkdir()
    strange = [tmp_path / "tables" / "table_of_mine.txt", tmp_path / "tables" / "a.csv"]
    stale = [
        tmp_path / "figures" / f"figure_3_country.{end}"
        for end in ("pdf", "png", "txt")
    ]
    for path in (*strange, *stale):
        path.write_text("")
    few = simulated.table.where(variant="country")
    second = write_all(replace(simulated, table=few), tmp_path)
    assert set(second.tables) < set(first.tables)
    assert set((tmp_path / "tables").iterdir()) == {*second.tables, *strange}
    assert not any(path.exists() for path in stale)


@pytest.mark.usefixtures("undrawn")
def test_everything_is_written_from_predictions_alone(tmp_path):
    few = part_of(DEMO, rows=("map", "mc_dropout", "mc_dropout_pair"))
    make_runs(few, tmp_path)
    judged = judge_plan(few, tmp_path, options=ScoreOptions(resamples=0))
    written = write_all(judged, tmp_path / "retina", command="qualms run retina")
    stems = {path.stem for path in written.tables}
    assert {f"table_{number}_simulated" for number in range(1, 8)} <= stems
    assert "table_truth_severity_simulated" in stems
    (auroc,) = (
        line
        for line in lines_of(tmp_path / "retina" / "tables" / "table_1_simulated.csv")
        if (line["subset"], line["score"], line["row"]) == ("shifted", "auroc", "map")
        and not line["referred"]
    )
    number = judged.result(
        variant="country", row="map", subset="shifted", score="auroc", referred=None
    )
    assert float(auroc["ours_mean"]) == pytest.approx(100 * np.mean(number.values))


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.3, "held"), (0.05, "NOT HELD"), (math.nan, "unknown")]
)
def test_effects_are_printed_with_their_numbers_and_meaning(value, verdict):
    console = Console(width=120)
    with console.capture() as capture:
        print_checks(own(checks=(check(value),)), console=console)
    _, line, meaning = capture.get().splitlines()
    assert line.split("coverage drops")[0].strip() == verdict
    assert ("missing" if math.isnan(value) else f"{value:.3f}") in line
    assert meaning.strip() == EXPECTED.meaning


def test_missing_runs_are_counted_by_kind():
    missing = tuple(
        Missing(
            hash=f"{i}", dataset="cells", method="map", seed=i, reason="was not run"
        )
        for i in range(7)
    )
    console = Console(width=120)
    with console.capture() as capture:
        print_benchmark(own(missing=missing), console=console)
    assert "7 runs are missing" in capture.get()
    assert "7 of map on cells: was not run" in capture.get()


def drawing():
    x = np.linspace(0, 1, 20)
    panel = Panel(
        marks=(
            CurveMark(
                x=x, y=x, low=x - 0.1, high=x + 0.1, colour="#2938b5", label="a curve"
            ),
            PointMark(x=0.5, y=0.5, low=0.4, high=0.6, hollow=True, label="published"),
            BarMark(x=0.2, height=0.4, low=0.3, high=0.5, colour="#a62b05", width=0.1),
            HistogramMark(edges=x, heights=x[1:], colour="#207b54", label="parts"),
            RuleMark((0, 0), (1, 1)),
            WordMark(0.5, 0.9, "words"),
        ),
        title="a panel",
        x_range=(0, 1),
        share="y",
    )
    picture = Panel(marks=(PictureMark(pixels=np.eye(8)),), bare=True)
    empty = Panel(empty="nothing was judged", share="y")
    return Drawing(
        name="figure_1",
        title="A figure",
        caption="What it shows.",
        rows=((panel, picture), (empty,)),
        sides=("above", "below"),
        simulated=True,
    )


def test_figures_are_drawn_the_same_each_time_with_their_caption(tmp_path):
    before = dict(mpl.rcParams)
    first, second = (_draw.draw(drawing(), tmp_path / name) for name in "ab")
    assert [path.suffix for path in first] == [".pdf", ".png", ".txt"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert [p.read_bytes()[:4] for p in first[:2]] == [b"%PDF", b"\x89PNG"]
    assert first[2].read_text() == "A figure\n\nWhat it shows.\n"
    assert dict(mpl.rcParams) == before


def test_a_legend_never_runs_out_of_its_figure():
    marks = tuple(
        BarMark(x=i, height=1, colour="#2938b5", label=f"{i}{'x' * 60}")
        for i in range(6)
    )
    narrow = Drawing(name="f", title="", caption="", rows=((Panel(marks=marks),),))
    assert narrow.columns == 1
