"""`qualms refer`: what a clinic reads, what a program reads, what is refused."""

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


def write_file(path, n=1500, seed=0, noise=1.0, **more):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(int)
    evidence = 1.5 * (2 * target - 1) + noise * rng.standard_normal(n)
    prob = 1 / (1 + np.exp(-3 * evidence))
    return predictions.write(path, {"target": target, "prob": prob, **more})


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_file(tmp_path_factory.mktemp("refer") / "val.npz")


@pytest.fixture(scope="module")
def abroad(tmp_path_factory):
    return write_file(
        tmp_path_factory.mktemp("refer") / "abroad.npz", seed=1, noise=2.5
    )


@pytest.mark.parametrize("option", ["--plan", "--items"])
def test_no_file_that_is_read_is_written(option, tmp_path, monkeypatch, capsys):
    file = write_file(tmp_path / "p.npz", n=60)
    other = write_file(tmp_path / "other.npz", n=60, seed=1)
    before = [file.read_bytes(), other.read_bytes()]
    for path in (file, other):
        words = ["refer", file, "--budget", 0.2, "--on", other, option, path]
        monkeypatch.setattr(sys, "argv", ["qualms", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        assert "this command reads it, and it would be lost" in capsys.readouterr().err
    assert [file.read_bytes(), other.read_bytes()] == before


def test_a_plan_is_not_written_over_by_the_items_it_refers(tmp_path):
    file, plan = write_file(tmp_path / "p.npz", n=60), tmp_path / "plan.json"
    assert run(file, "--budget", 0.2, "--plan", plan).exit_code == 0
    before = plan.read_bytes()
    told = run(file, "--apply", plan, "--items", plan)
    assert "cannot write" in str(told.exception)
    assert plan.read_bytes() == before


def test_no_file_of_another_kind_is_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write_file(tmp_path / "p.npz", n=60)
    settings, patients = tmp_path / "settings.json", tmp_path / "patients.csv"
    settings.write_text('{"lr": 0.1}')
    patients.write_text("id,name\n1,Ada\n")
    for option, path in (("--plan", settings), ("--items", patients)):
        before = path.read_bytes()
        told = run(file, "--budget", 0.2, option, path)
        assert f"{option} would replace {path}, which is a file of" in str(
            told.exception
        )
        assert path.read_bytes() == before
        path.unlink()
        for _ in range(2):  # its own files are written anew
            assert run(file, "--budget", 0.2, option, path).exit_code == 0
    told = run(file, "--budget", 0.2, "--plan", "plan.csv")
    assert "--plan writes a file that ends in .json" in str(told.exception)


def words(result):
    """Return the output without line breaks and padding."""
    return " ".join(result.output.split())


def test_an_accuracy_gives_the_rule_the_promise_and_the_workload(file):
    result = run(file, "--accuracy", 0.95)
    assert result.exit_code == 0, result.output
    text = words(result)
    plan = json.loads(run(file, "--accuracy", 0.95, "--json").stdout)
    shown = plan["shown"]
    assert f"Refer an item when its entropy is {shown['rounded']!r} or more" in text
    assert "at least 95% of the kept items are decided rightly" in text
    assert "Confidence 0.9" in text
    referred = round(1000 * shown["referred"])
    assert f"Of 1,000 such items {referred} go to the expert" in text
    for label in ("↑ accuracy", "↑ sensitivity", "↑ AUROC", "↓ NLL"):
        assert label in text
    assert f"{100 * shown['accuracy']:.1f}% [" in text
    assert "referring none" in text
    assert "promised (confidence 0.9)" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_window_nor_a_cell_broken(file, abroad, columns):
    result = run(file, "--accuracy", 0.95, "--on", abroad, columns=columns)
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= columns
    rows = [line for line in lines if line.lstrip().startswith(("↑", "↓"))]
    assert len(rows) == 10
    assert all(row.count("[") == row.count("]") == 2 for row in rows)


def test_a_budget_promises_nothing_unless_asked(file):
    plain = run(file, "--budget", 0.2)
    assert plain.exit_code == 0
    assert "Nothing is promised for new items" in words(plain)
    assert "20.0% [" in words(plain)
    assert "(--confidence 0.9)" in words(plain)
    sure = run(file, "--budget", 0.2, "--confidence", 0.95)
    assert "at most 20% of them are referred" in words(sure)


def test_no_plan_is_exit_code_1_with_the_best_that_can_be_promised(tmp_path):
    small = write_file(tmp_path / "small.npz", n=120)
    result = run(small, "--accuracy", 0.98)
    assert result.exit_code == 1
    text = words(result)
    assert "No threshold on the entropy can promise that" in text
    assert "The most that 120 independent items can promise: at least" in text
    assert "items like these would be enough to promise it" in text
    plan = json.loads(run(small, "--accuracy", 0.98, "--json").stdout)
    assert plan["found"] is False
    assert plan["threshold"] is None
    assert plan["promise"]["at_least"]["accuracy"] < 0.98


def test_nothing_needs_to_be_referred_where_all_items_are_good_enough(file):
    result = run(file, "--accuracy", 0.7)
    assert "Refer no item: the network decides all of them" in words(result)
    plan = json.loads(run(file, "--accuracy", 0.7, "--json").stdout)
    assert (plan["found"], plan["refers"]) == (True, False)


def test_a_shifted_file_is_warned_about(file, abroad):
    result = run(file, "--accuracy", 0.95, "--on", abroad)
    assert result.exit_code == 0
    text = words(result)
    assert "warning: on abroad.npz the kept items have accuracy" in text
    assert "accuracy 95%, as asked for: missed" in text
    assert "abroad.npz: 1,500 items" in text


def test_marked_items_clusters_and_groups_are_told_apart(tmp_path):
    n = 800
    arrays = {
        "shifted": np.arange(n) >= 600,
        "cluster": np.arange(n) // 2,
        "group": np.arange(n) % 3,
    }
    result = run(
        write_file(tmp_path / "a.npz", n=n, **arrays), "--budget", 0.2, "--by-group"
    )
    text = words(result)
    assert "a.npz, in-domain: 600 items of 300 clusters" in text
    assert "a.npz, shifted: 200 items of 100 clusters" in text
    assert "group items referred" in text
    assert "one item of each cluster" in text


def test_a_promise_is_of_one_random_item_per_cluster(tmp_path):
    clustered = write_file(tmp_path / "a.npz", cluster=np.arange(1500) // 3)
    about = "of one random item per cluster"
    text = words(run(clustered, "--accuracy", 0.9))
    assert f"Promise for new clusters like these, {about}: at least 90%" in text
    assert "sets of 500 clusters lead to a promise" in text
    assert f"Other choices on a.npz, promised {about}" in text
    budget = words(run(clustered, "--budget", 0.2, "--confidence", 0.9))
    assert f"{about}: at most 20% of them are referred" in budget
    few = write_file(tmp_path / "few.npz", n=120, cluster=np.arange(120) // 2)
    no_plan = words(run(few, "--accuracy", 0.98))
    assert f"The most that 60 independent items can promise {about}: at" in no_plan
    unclustered = words(run(write_file(tmp_path / "b.npz"), "--accuracy", 0.9))
    assert "Promise for new items like these: at least 90%" in unclustered
    assert "cluster" not in unclustered


def test_sensitivity_and_specificity_are_promised_together(file):
    result = run(file, "--sensitivity", 0.85, "--specificity", 0.8)
    text = words(result)
    assert "at least 85% of the kept positives are found" in text
    assert "at least 80% of the kept negatives are cleared" in text


def test_json_is_one_object_and_nothing_else(file, abroad):
    result = run(file, "--accuracy", 0.95, "--on", abroad, "--json")
    plan = json.loads(result.stdout)
    assert plan["format"] == 1
    assert plan["request"]["confidence"] == 0.9
    first, second = plan["outcomes"]
    assert (first["name"], second["name"]) == ("val.npz", "abroad.npz")
    assert second["verdicts"] == {"accuracy": "missed"}
    assert {"value", "low", "high"} == set(first["referred"])
    assert len(first["curve"]["accuracy"]) <= 400
    names = [score["score"] for score in first["scores"]]
    assert names == ["accuracy", "sensitivity", "specificity", "auroc", "nll"]
    assert plan["warnings"]


def test_names_cannot_steer_the_terminal(tmp_path):
    n = 40
    arrays = {"uncertainty/\x1b[31mred": np.arange(float(n))}
    file = write_file(tmp_path / "a.npz", n=n, **arrays)
    result = run(file, "--budget", 0.2, "--uncertainty", "\x1b[31mred")
    assert result.exit_code == 0
    assert "\x1b[31m" not in result.output


def fails(arguments, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qualms", "refer", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("qualms: ")
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "got neither; give for example --budget 0.2"),
        (["--budget", "0.2", "--accuracy", "0.9"], "got both"),
        (["--budget", "-0.1"], "budget must lie in [0, 1]"),
        (["--budget", "nan"], "budget must lie in [0, 1]"),
        (["--accuracy", "95"], "accuracy must lie between 0 and 1, got 95.0"),
        (["--accuracy", "0.9", "--confidence", "90"], "confidence must lie"),
        (["--budget", "0.2", "--level", "0"], "level must lie between 0 and 1"),
        (["--budget", "0.2", "--uncertainty", "entropi"], "Did you mean 'entropy'"),
        (["--budget", "0.2", "--on", "none.npz"], "there is no such file"),
    ],
)
def test_bad_options_end_in_a_sentence(file, options, sentence, capsys, monkeypatch):
    assert sentence in fails([file, *options], capsys, monkeypatch)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"target": np.arange(4.0), "mean": np.ones(4)}, "the std uncertainty needs"),
        ({"prob": np.full(4, 0.3)}, "has no 'target'"),
        ({"target": [0, 1], "probs": [[2.0, -1.0], [0.5, 0.1]]}, "--logits"),
    ],
)
def test_bad_files_end_in_a_sentence(tmp_path, arrays, sentence, capsys, monkeypatch):
    np.savez(tmp_path / "bad.npz", **arrays)
    arguments = [tmp_path / "bad.npz", "--budget", 0.2]
    assert sentence in fails(arguments, capsys, monkeypatch)


def test_errors_in_large_units_are_printed_without_decimals(tmp_path):
    rng = np.random.default_rng(0)
    target, spread = rng.normal(5e6, 1e6, 90), rng.uniform(1e5, 3e5, 90)
    mean = target + rng.normal(0, spread)
    arrays = {"target": target, "mean": mean, "var": spread**2}
    path = predictions.write(tmp_path / "wages.npz", arrays)
    error = np.abs(mean - target).mean()
    assert f"{error:.0f} [" in words(run(path, "--budget", 0.2))
