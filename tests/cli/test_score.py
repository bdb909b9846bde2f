"""The command line: what it prints, writes and refuses."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms import predictions
from qualms.cli import app, main

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 120)
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.2, 120), 0.01, 0.99)
    return predictions.write(tmp_path / "mine.npz", {"target": target, "prob": prob})


def test_score_prints_a_table_with_intervals_and_directions(file):
    result = run("score", file, "--resamples", 50)
    assert result.exit_code == 0, result.output
    assert "classification, 120 items" in result.output
    assert "↑ AUROC" in result.output
    assert "Ranges are 95% intervals" in result.output
    assert "Accurate?       better than guessing: " in result.output
    assert "Smooth ECE" not in result.output


def test_one_item_is_no_plural(tmp_path):
    path = predictions.write(tmp_path / "p.npz", {"target": [1], "prob": [0.7]})
    result = run("score", path, "--resamples", 0)
    assert "classification, 1 item\n" in result.output
    assert "1 items" not in result.output


def test_all_prints_every_score_and_the_curves(file):
    result = run("score", file, "--resamples", 0, "--all")
    assert "Smooth ECE" in result.output
    assert "▁" in result.output


def test_chosen_scores_are_shown_alone(file, capsys, monkeypatch):
    result = run("score", file, "--resamples", 0, "--scores", "smooth_ece,AUROC")
    shown = [line.split()[1] for line in result.output.splitlines() if line[0] in "↑↓"]
    assert shown == ["Smooth", "AUROC"]
    data = json.loads(run("score", file, "--scores", "ece", "--json").stdout)
    (scored,) = data["files"]
    assert {row["score"] for row in scored["scores"]} == {"ece"}
    assert next(answer["question"] for answer in scored["verdict"]) == "accurate"
    message = fails(["score", file, "--scores", "eec"], capsys, monkeypatch)
    assert "no score 'eec' here. Did you mean 'ece'?" in message
    message = fails(["score", file, "--scores", "AUC"], capsys, monkeypatch)
    assert "Did you mean 'macro_auroc'?" in message or "'auroc'?" in message
    twice = json.loads(
        run("score", file, "--json", "--scores", "ece", "--scores", "nll").output
    )
    assert {row["score"] for row in twice["files"][0]["scores"]} == {"ece", "nll"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "1", "--seed", "2"], "--seed must be given once, got it 2 times"),
        (["--html", "p.pdf"], "ends in .html or .htm, got p.pdf; call it p.html"),
        (["--curves", "p.png"], "ends in .csv, got p.png; call it p.csv"),
        (["--threshold", "50"], "between 0 and 1, got '50'; write 0.5 for 50 %"),
        (["--threshold", "-3"], "must lie between 0 and 1, got '-3'"),
    ],
)
def test_options_that_would_be_lost_or_mean_nothing_are_refused(
    file, words, said, capsys, monkeypatch
):
    assert said in fails(["score", file, *words], capsys, monkeypatch)


@pytest.mark.parametrize("option", ["--html", "--curves"])
def test_no_file_that_is_read_is_written(file, option, capsys, monkeypatch):
    before = file.read_bytes()
    other = file.with_name("val.npz")
    other.write_bytes(before)
    for path in (file, file.parent / "." / file.name, other):
        message = fails(
            ["score", file, "--val", other, option, path], capsys, monkeypatch
        )
        assert f"cannot write {path}: this command reads it" in message
    assert file.read_bytes() == other.read_bytes() == before
    both = ["--html", "a", "--curves", "a"]
    assert "cannot write a twice" in fails(["score", file, *both], capsys, monkeypatch)


def test_one_file_is_compared_with_nothing(file):
    said = "note: --compare needs a second file"
    assert said in run("score", file, "--compare").output
    assert said not in run("score", file, file, "--compare").output


def _heads(output):
    """Names of the files, as the first lines give them."""
    lines = [line for line in output.splitlines() if ": classification, " in line]
    return [line.partition(":")[0] for line in lines]


def test_files_are_called_by_method_and_seed_or_as_asked(
    file, tmp_path, capsys, monkeypatch
):
    read = predictions.read(file)
    for number, header in enumerate(
        (
            {"method": "map", "seed": 0, "split": "test"},
            {"method": "map", "seed": 1, "split": "test"},
            {"method": "map", "seed": 1, "split": "test/aptos"},
            {"method": "map"},
        )
    ):
        (tmp_path / f"5f3a{number}").mkdir()
        path = tmp_path / f"5f3a{number}" / "test.npz"
        predictions.write(path, read, header=header)
    files = sorted(tmp_path.glob("5f3a*/test.npz"))
    shown = _heads(run("score", *files, "--resamples", 0).output)
    assert shown == [
        "map seed 0",
        "map seed 1 (split test)",
        "map seed 1 (split test/aptos)",
        "test",
    ]
    given = ["score", *files[:2], "--resamples", 0, "--name", "mine"]
    assert _heads(run(*given, "--name", "theirs").output) == ["mine", "theirs"]
    assert _heads(run(*given, "--name", "mine").output) == [
        "mine (seed 0)",
        "mine (seed 1)",
    ]
    assert "once per file" in fails(given, capsys, monkeypatch)


def test_runs_that_differ_in_much_are_told_apart_by_their_files(file, tmp_path):
    read = predictions.read(file)
    networks = ({"name": "Sequential"}, {"name": "timm:resnet50", "weights": "mine.pt"})
    for name, network in zip("ab", networks, strict=True):
        header = {"method": "map", "seed": 0, "options": {"network": network}}
        predictions.write(tmp_path / f"{name}.npz", read, header=header)
    files = tmp_path / "a.npz", tmp_path / "b.npz"
    shown = _heads(run("score", *files, "--resamples", 0).output)
    assert shown == ["map seed 0 (a)", "map seed 0 (b)"]


def test_json_is_one_object_and_nothing_else(file):
    result = run("score", file, "--resamples", 20, "--json")
    data = json.loads(result.stdout)
    assert data["format"] == 5
    assert data["comparison"] is None
    (scored,) = data["files"]
    assert scored["task"] == "classification"
    names = {row["score"] for row in scored["scores"]}
    assert {"accuracy", "auroc", "aurc", "ece", "nll"} <= names
    keys = {"score", "label", "subset", "settings", "better", "value", "low", "high"}
    assert keys <= set(scored["scores"][0])
    assert all(len(curve["x"]) <= 400 for curve in scored["curves"])


def test_undefined_scores_are_null_in_json_with_a_reason(tmp_path):
    arrays = {"target": np.ones(30, int), "prob": np.linspace(0.1, 0.9, 30)}
    file = predictions.write(tmp_path / "one.npz", arrays)
    data = json.loads(run("score", file, "--resamples", 10, "--json").stdout)
    rows = {row["score"]: row for row in data["files"][0]["scores"]}
    assert rows["auroc"]["value"] is None
    assert "one class" in rows["auroc"]["why"]


def test_several_files_stand_side_by_side_with_differences(file, tmp_path):
    read = predictions.read(file)
    prob = np.clip(read.arrays["probs"][0, :, 1] + 0.2, 0, 1)
    other = predictions.write(
        tmp_path / "theirs.csv", {"target": read.arrays["target"], "prob": prob}
    )
    result = run("score", file, other, "--resamples", 120, "--compare")
    assert result.exit_code == 0, result.output
    assert "mine" in result.output
    assert "theirs" in result.output
    assert "Differences from the best" in result.output
    assert "●" in result.output


def test_curves_are_written_whole_as_csv(file, tmp_path):
    out = tmp_path / "curves.csv"
    run("score", file, "--resamples", 10, "--curves", out)
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    accuracy = [row for row in rows if row["curve"] == "referral_accuracy"]
    assert len(accuracy) == 120
    assert float(accuracy[0]["x"]) == 0.0


def test_the_page_is_written_and_named(file, tmp_path):
    out = tmp_path / "page.html"
    result = run("score", file, "--resamples", 10, "--html", out)
    assert out.exists()
    assert "page.html" in result.output


def test_the_page_shows_the_items_and_neighbours_of_files(file, tmp_path):
    out = tmp_path / "page.html"
    assert run("score", file, "--resamples", 0, "--html", out).exit_code == 0
    text = out.read_text("utf-8")
    assert 'id="page-items"' in text
    assert "Most certain mistakes" in text
    angle = np.arange(12) * 0.5
    arrays = {
        "embedding": np.stack([np.cos(angle), np.sin(angle)], 1),
        "target": np.arange(12) // 2,
        "uncertainty/mine": np.linspace(0, 1, 12),
    }
    embedding = predictions.write(tmp_path / "embedding.npz", arrays)
    assert run("score", embedding, "--resamples", 0, "--html", out).exit_code == 0
    text = out.read_text("utf-8")
    assert 'id="page-neighbours"' in text
    assert "Most certain queries" in text
    assert 'id="page-items"' not in text


def test_neighbours_on_the_page_come_from_the_gallery(tmp_path):
    files = {}
    for name, turn in (("query", 0.0), ("other", 0.01)):
        angle = np.arange(12) * 0.5 + turn
        arrays = {
            "embedding": np.stack([np.cos(angle), np.sin(angle)], 1),
            "target": np.arange(12) // 2,
            "uncertainty/mine": np.linspace(0, 1, 12),
            "item": [f"{name} {number}" for number in range(12)],
        }
        files[name] = predictions.write(tmp_path / f"{name}.npz", arrays)
    out = tmp_path / "page.html"
    arguments = ("score", files["query"], "--resamples", 0, "--html", out)
    assert run(*arguments, "--gallery", files["other"]).exit_code == 0
    text = out.read_text("utf-8")
    assert "in the gallery of 12 items" in text
    assert '"other 11"' in text
    assert run(*arguments).exit_code == 0
    text = out.read_text("utf-8")
    assert "among the other items" in text
    assert '"other 11"' not in text


def test_the_page_of_logits_has_scores_alone(tmp_path):
    logits = np.array([[2.0, -1.0], [-3.0, 1.0], [0.5, 0.0], [-1.0, 4.0]])
    arrays = {"target": [0, 1, 1, 1], "probs": logits}
    path = tmp_path / "logits.npz"
    np.savez(path, **arrays)
    out = tmp_path / "page.html"
    result = run("score", path, "--logits", "--resamples", 0, "--html", out)
    assert result.exit_code == 0, result.output
    assert 'id="page-files"' in out.read_text("utf-8")
    assert 'id="page-items"' not in out.read_text("utf-8")


def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    file, tmp_path, capsys, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("qualms.evaluate.score_files", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("os.fsync", full)
    message = fails(["score", file, "--html", tmp_path / "p.html"], capsys, monkeypatch)
    assert "p.html: No space left on device; free 8 MB there" in message
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_a_disk_that_fills_up_does_not_cost_the_scores(
    file, tmp_path, capsys, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("qualms.report.site.write_page", full)
    given = ["score", file, "--resamples", 0, "--html", tmp_path / "p.html"]
    monkeypatch.setattr(sys, "argv", ["qualms", *map(str, given)])
    with pytest.raises(SystemExit):
        main()
    output = capsys.readouterr()
    assert "AUROC" in output.out
    assert "No space left" in output.err
    assert "wrote" not in output.out


@pytest.mark.parametrize("option", ["--html", "--curves"])
def test_a_folder_cannot_be_the_file_to_write(
    file, tmp_path, capsys, monkeypatch, option
):
    monkeypatch.setattr("qualms.evaluate.score_files", lambda *_, **__: 1 / 0)
    message = fails(["score", file, option, tmp_path], capsys, monkeypatch)
    assert (
        f"cannot write {tmp_path}: it is a folder; give the path of a file" in message
    )


def test_too_little_memory_names_items_and_draws(file, capsys, monkeypatch):
    def full(*_, **__):
        raise MemoryError("Unable to allocate 37 GiB")

    monkeypatch.setattr("qualms.evaluate.score_files", full)
    message = fails(["score", file], capsys, monkeypatch)
    assert "give fewer items at a time, or fewer draws of each" in message


def test_a_page_may_have_a_name_that_is_no_text(file, tmp_path):
    out = tmp_path / os.fsdecode(b"caf\xe9.html")
    result = run("score", file, "--resamples", 0, "--html", out)
    assert result.exit_code == 0, result.output
    assert "AUROC" in out.read_text(encoding="utf-8")


def test_check_says_what_a_file_holds(file):
    result = run("check", file)
    assert result.exit_code == 0
    assert "valid classification predictions, 120 items, 1 draw" in result.output


def fails(arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qualms", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_a_missing_file_ends_in_a_sentence_and_code_2(tmp_path, capsys, monkeypatch):
    message = fails(["score", tmp_path / "none.npz"], capsys, monkeypatch)
    assert message.startswith("qualms: ")
    assert "none.npz" in message
    assert "Traceback" not in message


def test_logits_are_refused_unless_said(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "l.npz", target=rng.integers(0, 3, 9), probs=rng.normal(size=(9, 3))
    )
    message = fails(["score", tmp_path / "l.npz"], capsys, monkeypatch)
    assert "--logits" in message
    assert run("check", tmp_path / "l.npz", "--logits").exit_code == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--level", "1.5", "level"),
        ("--alpha", "0", "alpha"),
        ("--task", "clas", "task"),
    ],
)
def test_bad_options_end_in_a_sentence(file, option, value, said, capsys, monkeypatch):
    assert said in fails(["score", file, option, value], capsys, monkeypatch)


def test_validation_of_another_run_must_be_insisted_on(
    file, tmp_path, capsys, monkeypatch
):
    read = predictions.read(file)
    files = [
        predictions.write(tmp_path / f"{method}.npz", read, header={"method": method})
        for method in ("map", "mc_dropout")
    ]
    arguments = ["score", files[0], "--val", files[1], "--resamples", 0]
    message = fails(arguments, capsys, monkeypatch)
    assert "its method is 'map'" in message
    assert "--force-val" in message
    result = run(*arguments, "--force-val")
    assert result.exit_code == 0, result.output
    assert "val is of another run" in result.output


def test_an_unwritable_page_ends_in_a_sentence(file, tmp_path, capsys, monkeypatch):
    out = tmp_path / "no" / "such" / "page.html"
    arguments = ["score", file, "--resamples", 5, "--html", out]
    assert "page.html" in fails(arguments, capsys, monkeypatch)


def test_help_and_version_load_nothing_heavy():
    code = (
        "import sys; sys.argv = ['qualms', '--help']\n"
        "from qualms.cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'numba', 'scipy', 'torch'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "score" in done.stdout


def test_names_cannot_steer_the_terminal(tmp_path):
    name = "uncertainty/\x1b[31mred"
    arrays = {"target": np.arange(8) % 2, "prob": np.linspace(0.1, 0.9, 8)}
    file = predictions.write(tmp_path / "a.npz", arrays | {name: np.arange(8.0)})
    for verb in (("check",), ("score", "--resamples", 5)):
        result = run(verb[0], file, *verb[1:])
        assert result.exit_code == 0
        assert "\x1b[31m" not in result.output


def test_all_items_are_mixed_only_on_request(tmp_path, capsys, monkeypatch):
    target = np.arange(200) % 2
    prob = np.where(np.arange(200) < 120, 0.1 + 0.8 * target, 0.9 - 0.8 * target)
    arrays = {"target": target, "prob": prob, "shifted": np.arange(200) >= 120}
    path = predictions.write(tmp_path / "both.npz", arrays)
    text = run("score", path, "--scores", "accuracy").output
    assert "1.00" in text
    assert "0.6000" not in text
    text = run("score", path, "--scores", "accuracy", "--subset", "all").output
    assert "0.6000" in text
    message = fails(["score", path, "--subset", "both"], capsys, monkeypatch)
    assert "subset must be one of in_domain, shifted, all, got 'both'" in message


def test_thresholds_have_a_table_and_stand_in_the_json(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("test", "val"):
        target = (rng.random(300) < 0.4).astype(int)
        prob = 1 / (1 + np.exp(1.0 - rng.normal(size=300) - 2.0 * target))
        np.savez(tmp_path / f"{name}.npz", target=target, prob=prob)
    options = ["--val", str(tmp_path / "val.npz"), "--threshold", "sensitivity=0.9"]
    options += ["--meets", "sensitivity=0.85,specificity=0.8", "--prevalence", "0.05"]
    printed = runner.invoke(app, ["score", str(tmp_path / "test.npz"), *options])
    assert printed.exit_code == 0
    for words in ("target met?", "sensitivity=0.9", "any threshold", "0.05"):
        assert words in printed.output
    result = runner.invoke(
        app, ["score", str(tmp_path / "test.npz"), *options, "--json"]
    )
    points = json.loads(result.output)["files"][0]["points"]
    assert [point["threshold"] for point in points] == [
        "sensitivity=0.9",
        "any threshold",
    ]
    refused = runner.invoke(app, ["score", str(tmp_path / "test.npz"), *options[2:]])
    assert "chosen on validation items" in str(refused.exception)
