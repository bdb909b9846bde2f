"""`qualms tune`: what it says, and how it ends."""

import json
import re
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from launch import searched
from qualms.cli import _tuning, app, main
from qualms.launch import RunRequest, prepare_datasets, run_all
from qualms.launch.tune import search_of


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    prepare_datasets([searched.DATASET], folder, workers=1)
    return folder


@pytest.fixture
def tune(tmp_path, data, monkeypatch):
    searched.on_shelf(monkeypatch)
    monkeypatch.setattr(_tuning, "run_all", partial(run_all, work=searched.work))
    monkeypatch.setattr(_tuning, "default_workers", lambda _: 1)

    def invoke(*arguments):
        given = ["tune", "toy/plain", "--method", "map", *arguments]
        given += ["--out", tmp_path / "runs", "--data", data, "--device", "cpu"]
        return CliRunner().invoke(app, [str(argument) for argument in given])

    return invoke


def folder(tmp_path, selection):
    wish = RunRequest(methods=("map",), seeds=(0,))
    return search_of("toy/plain", wish, selection).folder(tmp_path / "runs")


def test_a_dry_run_lists_the_trials_and_makes_nothing(tune, tmp_path):
    result = tune("--dry-run")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == (
        "toy/plain, map, preset demo, seed 0, selection in_domain: 32 trials by AUROC"
        " of in-domain validation items"
    )
    assert lines[1].startswith("32 of 32 lack a result in ")
    assert lines[2].split() == ["trial", "lr", "momentum", "final_factor", "select_by"]
    assert [line.split()[0] for line in lines[3:]] == [str(n) for n in range(32)]
    assert not (tmp_path / "runs").exists()


def test_the_best_is_printed_as_a_command_that_sets_exactly_its_options(tune, tmp_path):
    result = tune("--trials", "8", "--selection", "joint")
    assert result.exit_code == 0, result.output
    assert result.output.count("selection joint") == 3
    data = json.loads((folder(tmp_path, "joint") / "best.json").read_text())
    (command,) = [s for s in result.output.splitlines() if s.startswith("  qualms run")]
    assert command.strip() == data["command"]
    words = shlex.split(command)
    assert words[:3] == ["qualms", "run", "toy/plain_joint"]
    given = [words[i + 1] for i, word in enumerate(words) if word == "-o"]
    options = {text.partition("=")[0]: text.partition("=")[2] for text in given}
    assert options.pop("select_by") == "val_referral"
    assert {n: float(v) for n, v in options.items()} == {
        n: v for n, v in data["options"].items() if n != "select_by"
    }
    ranked = [float(v) for v in re.findall(r"^ +\d+ +(0\.\d{4})", result.output, re.M)]
    assert ranked == sorted(ranked, reverse=True)
    assert ranked[0] == pytest.approx(data["value"], abs=1e-4)

    lines = re.findall(r"^trial (\d+): val_referral ", result.output, re.M)
    assert sorted(map(int, lines)) == list(range(8))

    plan = tune("--trials", "8", "--selection", "joint", "--dry-run")
    done = sum(line.endswith("  done") for line in plan.output.splitlines())
    assert done == len(ranked)


def test_a_search_by_tpe_says_what_is_known_of_it(tune, tmp_path):
    result = tune("--sampler", "tpe", "--trials", "6", "--dry-run")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "selection in_domain, sampler tpe: 6 trials by AUROC" in lines[0]
    assert lines[1].startswith("6 of 6 lack a result in ")
    assert [line.split()[0] for line in lines[3:7]] == list("0123")
    assert lines[-1] == "the other 2 follow from the results of those before them"
    assert not (tmp_path / "runs").exists()

    result = tune("--sampler", "tpe", "--trials", "6", "--at-once", "2")
    assert result.exit_code == 0, result.output
    made = re.findall(r"^trial (\d+): val_auroc ", result.output, re.M)
    assert sorted(made) == list("012345")
    plan = tune("--sampler", "tpe", "--trials", "6", "--dry-run").output.splitlines()
    assert [line.split()[0] for line in plan[3:]] == list("012345")


def test_trials_that_are_pruned_are_listed_and_do_not_count_as_failed(
    tune, tmp_path, monkeypatch
):
    work = partial(run_all, work=searched.work_by_epochs)
    monkeypatch.setattr(_tuning, "run_all", work)
    given = ("--pruner", "hyperband", "--trials", "6", "-o", "epochs=4")
    result = tune(*given)
    assert result.exit_code == 0, result.output
    assert ", pruner hyperband: 6 trials by AUROC" in result.output.splitlines()[0]
    pruned = re.findall(r"^trial (\d+): pruned with ", result.output, re.M)
    assert pruned
    reason = r"^trial (\d+): the pruner hyperband stopped it after epoch \d of 4, with"
    assert sorted(re.findall(reason, result.output, re.M)) == sorted(pruned)
    assert f"{6 - len(pruned)} of 6 trials have a value" in result.output
    assert "without a value" not in result.output


def test_the_front_of_several_objectives_is_listed_with_its_configs(tune):
    result = tune("--objective", "nll", "--objective", "ece", "--trials", "4")
    assert result.exit_code == 0, result.output
    assert ", objective nll, objective ece: 4 trials" in result.output.splitlines()[0]
    row = r"^  trial (\d+): 0\.\d{4}, \d\.\d{4}, 0\.\d{4}; (.*)$"
    front = re.findall(row, result.output, re.M)
    assert "front of val_auroc, nll, ece: trials that no other" in result.output
    assert f" without being worse in another: {len(front)}\n" in result.output
    assert front
    for number, path in front:
        assert f"trial = {number}\n" in Path(path).read_text()


def test_trials_that_failed_are_listed_with_their_logs(tune):
    result = tune("--trials", "2", "-o", "lr=0.4")
    assert result.exit_code == 1
    assert (
        "selection in_domain: 0 of 2 trials have a value of val_auroc" in result.output
    )
    assert result.stderr.count("  the loss became nan with lr 0.4") == 2
    assert result.stderr.count("  log: ") == 2
    assert result.stderr.splitlines()[-1] == "no trial has a result"


def test_an_interrupt_ends_with_code_130_and_a_sentence(tune, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(_tuning, "run_all", interrupted)
    result = tune("--trials", "2")
    assert result.exit_code == 130
    assert "interrupted after 0 of 2 trials; finished work is kept" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["toy/plain", "--method", "mapp"], "Did you mean 'map'"),
        (
            ["toy/plain", "--method", "map", "--selection", "x"],
            "Known: in_domain, joint",
        ),
        (["toy", "--method", "map"], "name one variant to search on"),
        (["retina", "--method", "map"], "''. Known: country, severity, country_joint"),
        (["regression/cells", "--method", "map"], "states no ranges to search"),
        (["toy/plain", "--method", "map", "--trials", "0"], "trials must be at least"),
        (["toy/plain", "--method", "map", "--sampler", "tpa"], "Did you mean 'tpe'"),
    ],
)
def test_mistakes_end_in_a_sentence_and_code_2(arguments, said, capsys, monkeypatch):
    searched.on_shelf(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["qualms", "tune", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_trials_are_made_by_the_launcher_that_is_asked_for(tune, monkeypatch):
    engines = []

    def noted(specs, *, engine, workers, **rest):
        engines.append((engine.launcher, engine.address, engine.cpus, workers))
        raise ValueError("enough")  # before anything is made

    monkeypatch.setattr(_tuning, "run_all", noted)
    tune("--trials", "2")
    tune("--trials", "2", "--launcher", "ray", "--address", "head:6379", "--cpus", "2")
    tpe = ("--sampler", "tpe", "--launcher", "ray")
    tune("--trials", "9", *tpe)
    tune("--trials", "8", *tpe, "--workers", "3")
    assert engines[:2] == [("local", "", None, 1), ("ray", "head:6379", 2.0, None)]
    assert [workers for *_, workers in engines[2:]] == [1, 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--launcher", "rya"), "launcher must be local or ray, got 'rya'"),
        (("--address", "head:6379"), "are for the launcher ray"),
        (("--sampler", "nsga"), "no sampler 'nsga'. Did you mean 'nsga2'"),
    ],
)
def test_a_launcher_that_is_none_gets_a_sentence(tune, words, said):
    result = tune(*words)
    assert said in str(result.exception)
