"""`qualms refer --plan` and `--apply`: what a clinic does a month later."""

import csv
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms import predictions
from qualms.cli import app, main

runner = CliRunner()


def run(*arguments, columns=80):
    command = ["refer", *(str(argument) for argument in arguments)]
    return runner.invoke(app, command, env={"COLUMNS": str(columns)})


def words(result):
    """Return the output without line breaks and padding."""
    return " ".join(result.output.split())


def write_file(path, n=1500, seed=0, *, noise=1.0, labelled=True):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(int)
    evidence = 1.5 * (2 * target - 1) + noise * rng.standard_normal(n)
    arrays = {
        "prob": 1 / (1 + np.exp(-3 * evidence)),
        "item": [f"eye {seed}-{i}" for i in range(n)],
    }
    return predictions.write(path, arrays | ({"target": target} if labelled else {}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("apply")
    file = write_file(path / "val.npz")
    result = run(file, "--accuracy", 0.95, "--plan", path / "plan.json")
    assert result.exit_code == 0, result.output
    assert "Written: " in result.output
    write_file(path / "new.csv", 400, 1, labelled=False)
    write_file(path / "odd.parquet", 400, 2, noise=3.0, labelled=False)
    return path


@pytest.mark.parametrize("columns", [80, 120])
def test_new_items_like_those_of_the_plan(folder, columns):
    result = run("--apply", folder / "plan.json", folder / "new.csv", columns=columns)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= columns
    text = words(result)
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["rule"]["words"] in text
    assert "go to the expert, the network decides" in text
    assert "of 1,000 such items about" in text
    assert "at least 95% of the kept items are decided rightly" in text
    assert "Alike. The new items look like those the plan was made on" in text
    assert "--items FILE writes all" in text


def test_new_items_unlike_those_of_the_plan(folder):
    result = run("--apply", folder / "plan.json", folder / "odd.parquet")
    assert result.exit_code == 1
    text = words(result)
    assert "Unlike. The new items do not look like those" in text
    assert "The plan was not made for such items" in text


def test_the_lists_hold_the_items_at_or_above_the_threshold(folder, tmp_path):
    plan = json.loads((folder / "plan.json").read_text())
    lists = tmp_path / "own.csv", tmp_path / "new.csv"
    run(folder / "val.npz", "--accuracy", 0.95, "--items", lists[0])
    result = run(
        "--apply", folder / "plan.json", folder / "new.csv", "--items", lists[1]
    )
    assert f"Written: {lists[1]}" in result.output.replace("\n", "")
    for path, name in zip(lists, ("val.npz", "new.csv"), strict=True):
        with path.open(newline="") as file:
            listed = {row["item"] for row in csv.DictReader(file)}
        file = predictions.read(folder / name)
        prob = file.arrays["probs"][0].clip(1e-300)
        entropy = -(prob * np.log(prob)).sum(axis=1)
        items = file.arrays["item"][entropy >= plan["rule"]["threshold"]]
        assert listed == set(items.tolist())


def test_json_is_one_object_and_nothing_else(folder):
    result = run("--apply", folder / "plan.json", folder / "new.csv", "--json")
    applied = json.loads(result.stdout)
    assert applied["format"] == 1
    assert applied["check"]["verdict"] == "alike"
    assert [each["what"] for each in applied["check"]["departures"]] == [
        "uncertainty",
        "predicted classes",
    ]
    work = applied["workload"]
    assert work["referred"] == len(applied["items"])
    assert work["share"]["low"] < work["share"]["value"] < work["share"]["high"]
    assert set(applied["items"][0]) == {"item", "row", "uncertainty", "predicted"}


def test_how_to_keep_a_plan_is_said_where_it_is_not_kept(folder):
    assert "--plan FILE writes the plan" in words(
        run(folder / "val.npz", "--budget", 0.2)
    )


def test_no_plan_is_written_where_nothing_can_be_promised(tmp_path):
    file = write_file(tmp_path / "few.npz", 40)
    target = tmp_path / "plan.json"
    result = run(file, "--accuracy", 0.99, "--plan", target)
    assert result.exit_code == 1
    assert "There is no plan to write" in result.output
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--apply", "plan.json", "new.csv", "--budget", "0.2"), "leave it out"),
        (("--apply", "plan.json", "new.csv", "--on", "val.npz"), "--on belongs to"),
        (("--apply", "val.npz", "new.csv"), "is not the JSON of a plan"),
        (("--apply", "none.json", "new.csv"), "none.json: cannot be read"),
        (("--apply", "plan.json", "none.csv"), "there is no such file"),
        (("new.csv", "--budget", "0.2"), "apply a plan that was made before (--apply)"),
        (("val.npz", "--budget", "0.2", "--plan", "no/plan.json"), "no folder 'no'"),
    ],
)
def test_mistakes_end_in_a_sentence(folder, arguments, sentence, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["qualms", "refer", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_values_have_a_plan_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # so that the names of files are short
    rng = np.random.default_rng(0)
    target, std = rng.normal(size=600), 0.2 + rng.random(600)
    mean = target + std * rng.normal(size=600)
    halves = slice(0, 400), slice(400, 600)
    first, second = ({"mean": mean[h], "std": std[h]} for h in halves)
    file = predictions.write("a.npz", first | {"target": target[:400]})
    new = predictions.write("b.npz", second)
    result = run(file, "--budget", 0.2, "--plan", "plan.json")
    assert result.exit_code == 0, result.output
    assert "mean absolute error" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    result = run("--apply", "plan.json", new)
    assert result.exit_code == 0, result.output
    assert "predicted value (median)" in result.output


def test_names_of_items_cannot_steer_the_terminal(folder, tmp_path):
    arrays = {"prob": [0.5, 0.1], "item": ["[red]eye\x1b[2J[/]", "plain"]}
    new = predictions.write(tmp_path / "[bold]new.npz", arrays)
    result = run("--apply", folder / "plan.json", new)
    assert "[red]eye" in result.output
    assert "[bold]new.npz: 2 new items" in result.output
    assert "\x1b[2J" not in result.output
