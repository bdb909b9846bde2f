"""`qualms tune`: what it says, and how it ends."""

import re
import shlex
import sys

import pytest
from typer.testing import CliRunner

from launch import searched
from qualms.cli import _tuning, app, main
from qualms.launch import RunRequest, prepare_datasets, run_all
from qualms.launch.tune import search_of
from qualms.report.search_report import read_search


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    prepare_datasets([searched.DATASET], folder, workers=1)
    return folder


def by_one(work):
    """Make runs by one process, which is started faster than four."""
    return lambda specs, **how: run_all(specs, **{**how, "workers": 1}, work=work)


@pytest.fixture
def tune(tmp_path, data, monkeypatch):
    searched.on_shelf(monkeypatch)
    monkeypatch.setattr(_tuning, "run_all", by_one(searched.work))
    monkeypatch.setattr(_tuning, "default_workers", lambda _: 8)

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
    assert lines[2].endswith("results of those before: lr, momentum, final_factor")
    assert not (tmp_path / "runs").exists()


def test_the_best_is_printed_as_a_command_that_sets_exactly_its_options(tune, tmp_path):
    result = tune("--trials", "8", "--selection", "joint")
    assert result.exit_code == 0, result.output
    assert result.output.count("selection joint") == 3
    best = read_search(folder(tmp_path, "joint")).best
    (command,) = [s for s in result.output.splitlines() if s.startswith("  qualms run")]
    words = shlex.split(command)
    assert words[:3] == ["qualms", "run", "toy/plain_joint"]
    given = [words[i + 1] for i, word in enumerate(words) if word == "-o"]
    options = {text.partition("=")[0]: text.partition("=")[2] for text in given}
    assert options.pop("select_by") == "val_referral"
    assert {n: float(v) for n, v in options.items()} == {
        n: v for n, v in best.options.items() if n != "select_by"
    }
    ranked = [float(v) for v in re.findall(r"^ +\d+ +(0\.\d{4})", result.output, re.M)]
    assert ranked == sorted(ranked, reverse=True)
    assert ranked[0] == pytest.approx(best.values[0], abs=1e-4)

    lines = re.findall(r"^trial (\d+): val_referral ", result.output, re.M)
    assert sorted(map(int, lines)) == list(range(8))

    plan = tune("--trials", "9", "--selection", "joint", "--dry-run")
    lines = plan.output.splitlines()
    assert f"{9 - len(ranked)} of 9 lack a result in " in lines[1]
    assert [line.split()[0] for line in lines[3:-1]] == [str(n) for n in range(8)]
    assert sum(line.endswith("  done") for line in lines) == len(ranked)


def test_trials_that_are_pruned_are_listed_and_do_not_count_as_failed(
    tune, tmp_path, monkeypatch
):
    monkeypatch.setattr(_tuning, "run_all", by_one(searched.work_by_epochs))
    given = ("--pruner", "median", "--trials", "12", "-o", "epochs=4")
    result = tune(*given)
    assert result.exit_code == 0, result.output
    assert ", pruner median: 12 trials by AUROC" in result.output.splitlines()[0]
    pruned = re.findall(r"^trial (\d+): pruned with ", result.output, re.M)
    assert pruned
    reason = r"^trial (\d+): the pruner median stopped it after epoch \d of 4, with"
    assert sorted(re.findall(reason, result.output, re.M)) == sorted(pruned)
    assert " of 12 trials have a value of val_auroc" in result.output
    failed = re.findall(r"without a value: trial (\d+)", result.stderr)
    assert not set(pruned) & set(failed)


def test_the_values_of_two_objectives_are_listed(tune):
    result = tune("--objective", "ece", "--trials", "4")
    assert result.exit_code == 0, result.output
    assert ", objective ece: 4 trials" in result.output.splitlines()[0]
    (head,) = [s for s in result.output.splitlines() if s.startswith("  trial  value")]
    assert head.split()[:3] == ["trial", "value", "ece"]


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
    assert "interrupted after 0 new trials of 2; finished work is kept" in result.stderr


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
        (["toy/plain", "--method", "map", "--pruner", "medan"], "mean 'median'"),
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
    tune("--trials", "8", "--launcher", "ray", "--workers", "3")
    assert engines == [
        ("local", "", None, 4),
        ("ray", "head:6379", 2.0, 4),
        ("ray", "", None, 3),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--launcher", "rya"), "launcher must be local or ray, got 'rya'"),
        (("--address", "head:6379"), "are for the launcher ray"),
    ],
)
def test_a_launcher_that_is_none_gets_a_sentence(tune, words, said):
    result = tune(*words)
    assert said in str(result.exception)
