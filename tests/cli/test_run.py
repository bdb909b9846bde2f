"""`qualms run`: what it makes, what it says, and how it ends."""

import csv
import io
import json
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import qualms
from launch import fakes
from qualms.cli import app, main
from qualms.launch import (
    RunOutcome,
    RunRequest,
    datasets_of,
    engine,
    parse_seeds,
    plans_of,
    prepare_datasets,
    progress,
    run_all,
    running,
)
from qualms.launch._progress_page import ProgressPage
from qualms.launch.progress import runs_view
from qualms.progress import duration_text
from qualms.spec import RunSpec

SIZES = {"train": 40, "val": 20, "test": 20}
TINY = ("-o", f"dataset.sizes={json.dumps(SIZES)}", "-o", "epochs=1")
SMALL = (*TINY, "-o", "network.width=2")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    wish = RunRequest(options={"dataset.sizes": SIZES})
    (plan,) = plans_of("regression/cells,cells_tails", wish)
    prepare_datasets(datasets_of(plan.runs), folder, workers=1)
    return folder


@pytest.fixture
def run(tmp_path, data):
    """Run the command on tiny data; work is a stand-in unless it is to be real."""

    def invoke(*arguments):
        given = ["run", *arguments, "--out", tmp_path / "runs", "--data", data]
        return CliRunner().invoke(app, [str(argument) for argument in given])

    return invoke


@pytest.fixture
def fake(monkeypatch):
    def use(work):
        monkeypatch.setattr(running, "run_all", partial(run_all, work=work))
        monkeypatch.setattr(engine, "default_workers", lambda _: 2)

    use(fakes.work_unless_odd)
    return use


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without figures, which take longest."""
    monkeypatch.setattr("qualms.report.benchmark.find_spec", lambda _: None)


def hashes(text):
    words = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    return {word for word in words if len(word) == 16}


def test_a_dry_run_lists_what_lacks_a_result_and_the_data_it_needs(run, tmp_path):
    result = run("regression/cells", "--methods", "map", "--seeds", "0-2", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "regression, preset demo: 3 of 3 runs lack a result" in result.output
    assert len(hashes(result.output)) == 3
    assert "cells plain  map  seed 2" in result.output
    assert "data: cells plain: will be made, or now by `qualms prepare" in (
        result.output
    )
    assert not (tmp_path / "runs").exists()


def test_methods_may_be_listed_with_spaces(run):
    result = run("regression/cells", "--methods", "map, gaussian", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "10 of 10 runs lack a result" in result.output


def test_without_a_benchmark_all_are_run(run):
    result = run("--seeds", "0", "--dry-run")
    assert "regression, preset demo: " in result.output


def test_runs_are_made_and_those_that_failed_are_listed_last(run, fake, tmp_path):
    asked = ("regression/cells", "--methods", "map", "--seeds", "0,1", *SMALL)
    result = run(*asked, "--no-judge", "--device", "cpu")
    assert result.exit_code == 1
    assert "2 runs: 1 done, 1 failed; " in result.output
    assert result.stderr.splitlines()[-3].startswith("failed: cells plain, map, seed 1")
    assert result.stderr.splitlines()[-2] == "  seed must be even, got 1"
    log = Path(result.stderr.splitlines()[-1].removeprefix("  log: "))
    assert "Traceback" in log.read_text()
    plan = run(*asked, "--dry-run")
    assert "1 of 2 runs lack a result" in plan.output
    assert hashes(plan.output) == {log.parent.name}
    assert "seed 1  failed before: seed must be even, got 1" in plan.output
    assert "data: cells plain: ready (train 40, val 20, test 20)" in plan.output


@pytest.mark.usefixtures("undrawn")
def test_in_brief_findings_and_one_table_fit_a_terminal(run, fake, monkeypatch):
    fake(fakes.predict)
    monkeypatch.delenv("COLUMNS", raising=False)
    result = run("regression/cells", *TINY, "--methods", "gaussian", "--brief")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("Table A1"))
    assert len(lines[start:]) <= 24 + 2
    assert max(len(line) for line in lines[start:-1]) <= 80
    assert "note:" not in result.output
    assert lines[-1].startswith("the page: ")
    assert Path(lines[-1].removeprefix("the page: ")).is_file()


def test_another_run_goes_on_where_the_first_ended(run, fake):
    asked = ("regression/cells", "--methods", "map", *SMALL, "--no-judge")
    run(*asked, "--seeds", "0,2", "--device", "cpu")
    result = run(*asked, "--seeds", "0,2,4", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "3 runs: 1 done, 2 skipped; " in result.output


@pytest.mark.parametrize("seeds", ["0-9", "3-9", "7,0,12"])
def test_all_seeds_that_are_asked_for_are_run(run, seeds):
    asked = ("regression/cells", "--methods", "map,ensemble", "--seeds", seeds)
    result = run(*asked, "--dry-run")
    assert result.exit_code == 0, result.output
    runs = [line for line in result.output.splitlines() if line.startswith("  ")]
    listed = {int(line.split()[-1]) for line in runs}
    assert listed == set(parse_seeds(seeds))


@pytest.mark.usefixtures("undrawn")
def test_results_of_a_part_leave_those_of_the_whole(run, fake, tmp_path):
    fake(fakes.predict)
    whole = tmp_path / "runs" / "regression" / "demo"
    asked = ("regression/cells,cells_tails", "--device", "cpu", *TINY)
    assert run(*asked, "--methods", "map", "--seeds", "0-5").exit_code == 0
    (first,) = whole.glob("part-*")
    before = (first / "results.csv").read_text()
    said = run(*asked, "--methods", "map", "--seeds", "0,1")
    assert said.exit_code == 0, said.output
    output = " ".join(said.output.split())
    assert "partial results of preset demo (cells, cells_tails, map, " in output
    assert "seeds 0-1" in output
    assert (first / "results.csv").read_text() == before
    assert len(list(whole.glob("part-*/results.csv"))) == 2
    assert not (whole / "results.csv").exists()


@pytest.mark.usefixtures("undrawn")
def test_seeds_beyond_those_of_the_preset_are_judged_and_pooled(run, fake, tmp_path):
    fake(fakes.predict)
    asked = ("regression/cells", "--methods", "map,ensemble", "--seeds", "0-6")
    result = run(*asked, "--device", "cpu", *TINY)
    assert result.exit_code == 0, result.output
    assert "7 runs: 7 done" in result.output
    (file,) = tmp_path.rglob("results.csv")
    page = file.with_name("index.html").read_text("utf-8")
    assert "the 7 pools are drawn from 7 runs" in " ".join(page.split())
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    judged = {row["row"] for row in rows if row["value"]}
    assert judged == {"conformal", "ensemble"}


def test_where_every_run_failed_nothing_is_judged(run, fake, tmp_path):
    asked = ("regression/cells", "--methods", "map", "--seeds", "1,3", *SMALL)
    result = run(*asked, "--device", "cpu")
    assert result.exit_code == 1
    last = "regression: nothing was judged, since every run failed"
    assert result.stdout.splitlines()[-1] == last
    assert not list(tmp_path.rglob("results.csv"))


@pytest.mark.usefixtures("undrawn")
def test_finished_runs_that_cannot_be_read_are_listed_with_what_to_do(
    run, fake, tmp_path
):
    asked = ("regression/cells", "--methods", "map", "--seeds", "0", *SMALL)
    run(*asked, "--device", "cpu", "--no-judge")  # writes no targets
    result = run(*asked, "--device", "cpu")
    assert result.exit_code == 1
    assert "1 run: 1 skipped" in result.output
    assert "1 run is missing" in result.output
    (path,) = tmp_path.rglob("val.safetensors")
    remedy = f"delete {path} and run the same command: it is made again from the"
    assert remedy in result.output
    path.unlink()
    path.with_name("test.safetensors").unlink()
    fake(fakes.predict)
    result = run(*asked, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "1 run: 1 done" in result.output


def test_predictions_in_the_place_of_others_are_made_again(run, fake, tmp_path):
    fake(fakes.predict)
    asked = ("regression/cells", "--methods", "map", "--seeds", "0", *TINY)
    run(*asked, "--device", "cpu", "--no-judge")
    assert "0 of 1 runs lack a result" in run(*asked, "--dry-run").output
    (test,) = tmp_path.rglob("test.safetensors")
    test.write_bytes(test.with_name("val.safetensors").read_bytes())
    assert "1 of 1 runs lack a result" in run(*asked, "--dry-run").output
    said = run(*asked, "--device", "cpu", "--no-judge")
    assert "1 run: 1 done" in said.output
    why = "is made again: the predictions of split 'test' are of split 'val', and not"
    assert why in " ".join(said.output.split())
    assert "0 of 1 runs lack a result" in run(*asked, "--dry-run").output
    said = run(*asked, "--device", "cpu", "--no-judge")
    assert "made again" not in said.output


def test_an_interrupt_ends_with_code_130_and_a_sentence(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(running, "run_all", interrupted)
    result = run("regression/cells", "--seeds", "0", *SMALL, "--device", "cpu")
    assert result.exit_code == 130
    assert "interrupted; finished work is kept, run again to go on" in result.stderr


def test_real_data_that_is_not_prepared_is_left_out_with_its_remedy(
    run, fake, monkeypatch
):
    calls = []
    monkeypatch.setattr(running, "run_all", partial(nothing, seen=calls))
    asked = ("--preset", "paper", "--seeds", "0", "--methods", "conformal")
    result = run("regression", *asked, "--no-judge", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert (
        "left out: rc49 gap: not prepared; run `qualms prepare rc49 " in result.output
    )
    assert {spec.dataset.name for spec in calls} == {"cells", "chairs"}


def test_finished_runs_are_judged_also_where_their_data_are_not(
    run, tmp_path, monkeypatch
):
    calls = []
    monkeypatch.setattr(running, "run_all", partial(nothing, seen=calls))
    wish = RunRequest(preset="paper", methods=("map",), seeds=(42,))
    (plan,) = plans_of("retina", wish)
    for spec in plan.runs:
        if spec.dataset.options == {"shift": "country"}:
            folder = tmp_path / "runs" / "retina" / spec.hash
            folder.mkdir(parents=True)
            fakes.finish(spec, folder)
    asked = ("--preset", "paper", "--methods", "map", "--seeds", "42", "--no-judge")
    result = run("retina", *asked, "--device", "cpu")
    assert "left out: eyepacs severity: not prepared" in result.output
    assert "and likewise for 6 more of eyepacs, which --dry-run lists" in result.output
    assert "-o shift=country` first" not in result.output
    kept = [spec.dataset for spec in calls if spec.dataset.name == "eyepacs"]
    assert [part.options for part in kept] == 2 * [{"shift": "country"}]


def nothing(specs, seen, **_):
    seen += specs
    yield from ()


def fails(arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qualms", "run", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["regresion"], "Did you mean 'regression'"),
        (["regression/cels"], "Did you mean 'cells'"),
        (["--preset", "dem"], "Did you mean 'demo'"),
        (["--methods", "maps"], "Did you mean 'map'"),
        (["--methods", " ,"], "methods must name at least one, got ' ,'"),
        (["--seeds", "x"], "seeds must read like 0-4 or 0,2,7, got 'x'"),
        (["--seeds", "4-2"], "seeds must read like 0-4 or 0,2,7, got '4-2'"),
        (["--seeds", "0,4-2"], "seeds must read like 0-4 or 0,2,7, got '0,4-2'"),
        (["--seeds", "3-"], "seeds must read like 0-4 or 0,2,7, got '3-'"),
        (["--seeds", "\u0663"], "seeds must read like 0-4 or 0,2,7"),
        (["--seeds", ","], "seeds must name at least one, got ','"),
        (["-o", "network.wdth=3"], "Did you mean 'network.width'"),
        (["-o", "epochs"], "must read name=value"),
        (["--data", __file__], "--data must be a folder, got the file"),
        (["--out", "s3://bucket/runs"], "in folders, got s3://bucket/runs; mount the"),
    ],
)
def test_mistakes_end_in_a_sentence_and_code_2(arguments, said, capsys, monkeypatch):
    assert said in fails(arguments, capsys, monkeypatch)


def test_a_folder_that_cannot_be_written_costs_no_time(
    tmp_path, capsys, monkeypatch, data
):
    (tmp_path / "file").touch()
    arguments = ["--out", tmp_path / "file" / "runs", "--data", data, "--device", "cpu"]
    assert "cannot write runs to" in fails(arguments, capsys, monkeypatch)


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["regression/asset_wealth", "--preset", "paper"], "asset_wealth is not in"),
        (["regression/cells", "--device", "cuda:99"], "device must be there"),
        (["regression/cells", "--out", "FILE/runs"], "cannot write runs to"),
        (["regression/cells", "-o", "patch=9"], "patch=9 is for segmentation, and th"),
        (
            ["regression/cells", "-o", "crop_pass=true"],
            "is for embedding, and this is",
        ),
        (
            ["regression/cells", "-o", "select_by=val_auroc"],
            "is for classification, and this is regression; select by 'val_loss'",
        ),
        (
            ["values/toy_1", "-o", "class_weights=minibatch"],
            "is for classification and embedding, and this is segmentation",
        ),
        (
            ["retina/country", "-o", "loss=dice_likelihood"],
            "is for segmentation, and this is classification; train with loss='like",
        ),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(
    arguments, said, dry, tmp_path, capsys, monkeypatch
):
    (tmp_path / "file").touch()
    words = [word.replace("FILE", str(tmp_path / "file")) for word in arguments]
    place = ["--data", tmp_path / "cache", "--workers", "1"]
    out = [] if "--out" in words else ["--out", tmp_path / "runs"]
    assert said in fails([*words, *place, *out, *dry], capsys, monkeypatch)


BROKEN = """
from qualms.methods import Method

def mine() -> Method:
    def predict(network, x, task):
        return {"probs": network(x).softmax(1)[None]}

    return Method(predict=predict)
"""


def test_a_dry_run_tries_what_a_method_of_ones_own_predicts(
    tmp_path, capsys, monkeypatch
):
    part = tmp_path / "mine.py"
    part.write_text(BROKEN + BROKEN.replace("mine", "other").replace("network(", "f("))
    monkeypatch.setenv("QUALMS_INCLUDE", str(part))
    place = ["--data", tmp_path / "cache", "--out", tmp_path / "runs", "--dry-run"]
    own = ["--seeds", "0", *place, "--methods"]
    said = fails(["values/toy_1", *own, "mine"], capsys, monkeypatch)
    assert "method 'mine' would fail: predict of a method must return" in said
    assert "'mean_probs', 'expected_entropy' and 'draw_labels' for segmentation" in said
    said = fails(["retina/country", *own, "other"], capsys, monkeypatch)
    assert "predict of the method fails on made-up items of classification" in said


def test_a_learning_rate_of_zero_is_refused(tmp_path, capsys, monkeypatch):
    words = ["regression/cells", "-o", "lr=0", "--out", tmp_path, "--dry-run"]
    assert "'lr' must be above 0" in fails(words, capsys, monkeypatch)


def test_tables_that_cannot_be_written_end_in_a_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(30, "Read-only file system", ".qualms-0.tmp")

    monkeypatch.setattr("qualms.report.benchmark.write_all", full)
    monkeypatch.setattr("qualms.launch.benchmarking.pending_runs", lambda *_: [])
    with pytest.raises(OSError, match=r"cannot write tables to .*: Read-only file sys"):
        qualms.judge("regression/cells", out=tmp_path, data=tmp_path)


def test_runs_that_were_never_made_are_not_judged(tmp_path):
    with pytest.raises(ValueError, match=r"none of the .* of regression is in"):
        qualms.judge("regression/cells", out=tmp_path, data=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", [[0.5], ["0"], 3])
def test_seeds_in_python_are_whole_numbers(seeds):
    with pytest.raises(ValueError, match="seeds must be whole numbers, as in"):
        qualms.run("regression/cells", seeds=seeds)


def test_data_that_was_asked_for_by_name_must_be_there(capsys, monkeypatch, tmp_path):
    arguments = ["regression/asset_wealth", "--preset", "paper", "--device", "cpu"]
    arguments += ["--out", tmp_path / "runs", "--data", tmp_path / "cache"]
    message = fails(arguments, capsys, monkeypatch)
    assert "asset_wealth is not in" in message
    assert "run `qualms prepare asset_wealth --from FOLDER --data" in message


def outcome(status, error="", seed=0):
    spec = fakes.spec(seed)
    return RunOutcome(
        spec=spec,
        folder=Path("f"),
        status=status,
        seconds=75.0,
        error=error,
        log=Path("f/log.txt"),
    )


def shown(*, terminal, monkeypatch, every=0.0, brief=False):
    """What a view of some runs prints."""
    monkeypatch.setattr(progress, "EVERY", every)
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    spec: RunSpec = fakes.spec()
    with runs_view(3, console, brief=brief) as seen:
        seen.data(spec.dataset, 1, 2)
        seen.data(spec.dataset, 2, 2)
        seen.epoch(spec, 3, 75, 0.123456, 2345.6, 90.0)
        seen.message(spec, "the batch was [halved]")
        if terminal:
            seen.bars.refresh()
        seen.ended(outcome("done"))
        seen.ended(outcome("failed", "the loss must be [finite]", 1))
        seen.ended(outcome("skipped", seed=2))
    return file.getvalue()


def test_elsewhere_than_in_a_terminal_progress_is_plain_lines(monkeypatch):
    assert shown(terminal=False, monkeypatch=monkeypatch).splitlines() == [
        "made cells",
        "cells, map, seed 0: epoch 3/75, loss 0.1235, 2,346 images/s, 2 min left",
        "cells, map, seed 0: the batch was [halved]",
        "[1/3] cells, map, seed 0: done in 1 min",
        "[2/3] cells, map, seed 1: failed: the loss must be [finite]",
    ]
    seldom = shown(terminal=False, monkeypatch=monkeypatch, every=1000.0)
    assert "epoch" not in seldom


def test_in_brief_lines_are_about_all_runs_together(monkeypatch):
    lines = shown(terminal=False, monkeypatch=monkeypatch, brief=True).splitlines()
    assert lines == [
        "0 of 3 runs",
        "cells, map, seed 0: the batch was [halved]",
        "1 of 3 runs, about 0 s left",
        "cells, map, seed 1: failed: the loss must be [finite]",
        "2 of 3 runs, about 0 s left",
        "3 of 3 runs",
    ]
    seldom = shown(terminal=False, monkeypatch=monkeypatch, every=1e3, brief=True)
    assert "of 3 runs" not in seldom
    assert "the loss must be [finite]" in seldom


def test_a_page_beside_the_results_shows_how_far_runs_are(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.launch._progress_page.SECONDS", 0.0)
    console, said = Console(file=io.StringIO()), []
    file, pace = tmp_path / "runs/progress.html", progress.Pace(3, 0.0)
    hostile = "the loss must be finite, got <script>"
    with runs_view(3, console, brief=True) as view:
        page = ProgressPage(view, file, "qualms run", pace, said.append)
        with closing(page):
            page.epoch(fakes.spec(0), 3, 75, 0.123456, 2345.6, 90.0)
            page.ended(outcome("failed", hostile, 1))
            text = file.read_text()
        over = file.read_text()
    assert said == [f"{file} shows how far the runs are"]
    assert "default-src 'none'" in text
    assert '<meta http-equiv="refresh" content="5">' in text
    assert "1 of 3 runs ended, 1 failed" in text
    assert "<td>cells, map, seed 0</td><td>3 of 75</td><td>loss 0.1235" in text
    assert "got &lt;script&gt;" in text
    assert "refresh" not in over
    assert "Under way" not in over


def test_short_work_has_no_page(tmp_path):
    file, pace = tmp_path / "progress.html", progress.Pace(1, 0.0)
    with runs_view(1, Console(file=io.StringIO())) as view:
        page = ProgressPage(view, file, "qualms run", pace, print)
        with closing(page):
            page.ended(outcome("done"))
    assert not file.exists()


def test_the_time_left_is_told_by_the_pace_of_runs_that_were_made(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    monkeypatch.setattr(progress, "EVERY", 0.0)
    spec: RunSpec = fakes.spec()
    with runs_view(12, Console(file=file, width=120), brief=True) as seen:
        for seed in (7, 8):  # what was done before says nothing about the pace
            seen.ended(outcome("skipped", seed=seed))
        now[0] = 500.0
        seen.data(spec.dataset, 1, 1)
        now[0] = 560.0
        seen.epoch(spec, 10, 20, 0.1, 10.0, 60.0)  # half of one of ten runs
    assert file.getvalue().splitlines()[-1] == "2 of 12 runs, about 19 min left"


def test_in_a_terminal_progress_is_a_live_view(monkeypatch):
    output = shown(terminal=True, monkeypatch=monkeypatch)
    assert "runs" in output
    assert "3/75" in output
    assert "loss 0.1235, 2,346 images/s, 2 min left" in output
    assert "cells, map, seed 1: failed: the loss must be [finite]" in output


def test_of_very_many_runs_a_terminal_shows_some(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with runs_view(200, console) as seen:
        for epoch in (5, 10):
            for seed in range(100):
                seen.epoch(fakes.spec(seed), epoch, 10, 0.1, 10.0, 60.0)
        assert len(seen.tasks) == progress.BARS
        assert seen.pace.under_way == pytest.approx(100)
        for seed in range(60):
            seen.ended(outcome("done", seed=seed))
        assert seen.tasks == {}
        assert seen.pace.under_way == pytest.approx(40)
        seen.epoch(fakes.spec(70), 9, 10, 0.1, 10.0, 60.0)
        assert list(seen.tasks) == [fakes.spec(70).hash]


def test_in_a_notebook_progress_is_live_where_widgets_are_installed(monkeypatch):
    console = Console(file=io.StringIO(), force_jupyter=True)
    for installed in (True, False):
        found = object() if installed else None
        monkeypatch.setattr("qualms.progress.find_spec", lambda _, found=found: found)
        assert progress.is_live(console) == installed


def test_python_runs_and_judges_as_the_command_does(fake, tmp_path, data):
    fake(fakes.predict)
    options = {"dataset.sizes": SIZES, "epochs": 1}
    arguments = {"seeds": "0-1", "options": options, "data": data, "out": tmp_path}
    results = qualms.run("regression/cells", methods=["map"], **arguments)
    assert {row.method.name for row in results.plan.rows} == {"map"}
    assert results.missing == ()
    (file,) = tmp_path.rglob("results.csv")
    assert "qualms.run(benchmark='regression/cells'" in file.read_text()
    before = file.read_bytes()
    again = qualms.judge("regression/cells", methods="map", write=False, **arguments)
    values = [each.table.column("value").tolist() for each in (again, results)]
    np.testing.assert_array_equal(*values)
    assert np.isfinite(results.result(row="conformal", score="coverage").value)
    assert file.read_bytes() == before
    assert results._repr_html_().startswith("<")
    assert repr(results).startswith("<BenchmarkResults of regression, preset demo with")


def test_python_raises_where_no_run_has_a_result(fake, tmp_path, data):
    arguments = {"options": {"dataset.sizes": SIZES}, "data": data, "out": tmp_path}
    with pytest.raises(RuntimeError, match="failed: seed must be even, got 1; its log"):
        qualms.run("regression/cells", methods=["map"], seeds=[1], **arguments)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (61, "1 min"), (3600, "1 h 00 min")],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration_text(seconds) == text


def test_training_and_judging_work_end_to_end(run, tmp_path):
    asked = ("regression/cells", "--methods", "map", "--seeds", "0", *SMALL)
    result = run(*asked, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "1 run: 1 done; " in result.output
    assert "Conformal Prediction" in result.output
    assert "expected effects" in result.output
    assert "findings of the paper" in result.output
    assert "pool more runs than there are seeds: ensemble" in result.output
    folder = tmp_path / "runs" / "regression"
    (part,) = (folder / "demo").iterdir()
    assert part.name.startswith("part-cells,")
    assert (part / "results.csv").is_file()
    assert (part / "findings.json").is_file()
    assert list((part / "tables").glob("*.csv"))
    (done,) = folder.glob("*/done.json")
    files = {file.name for file in done.parent.iterdir()}
    assert {"spec.json", "environment.json", "log.txt", "log.jsonl"} <= files
    data = json.loads((done.parent / "environment.json").read_text())
    assert {"hardware", "commit", "torch", "command", "packages"} <= set(data)
    assert len(list((done.parent / "predictions").iterdir())) == 2
