"""A search: repeatable, resumable, and judged by the rule of its selection."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import optuna
import pytest

from launch import searched
from launch.fakes import working_on
from launch.searched import trials_of
from qualms.launch import (
    RunRequest,
    _study,
    parse_options,
    plans_of,
    prepare_datasets,
    run_all,
)
from qualms.launch._config_file import read_config
from qualms.launch.tune import config_path, search_of, tune
from qualms.predictions import read
from qualms.report.search_report import read_search
from qualms.runs import run_folder
from qualms.shelf import find
from qualms.training.options import training
from qualms.training.selection import PredictedSplit, selection_score

TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    prepare_datasets([searched.DATASET], folder, workers=1)
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "runs"


def search(target="toy/plain", method="map", selection="", seed=0, **options):
    return search_of(
        target, RunRequest(methods=(method,), seeds=(seed,), options=options), selection
    )


def started(found, count, out, data, **how):
    launch = partial(run_all, out=out, data=data, device="cpu", work=searched.work)
    return tune(found, count, launch=launch, out=out, **{"at_once": count, **how})


def carry_out(found, count, out, data, **how):
    return list(started(found, count, out, data, **how))


def study_of(found, out):
    opened = f"sqlite:///{found.folder(out)}/study.db"
    return optuna.load_study(study_name=found.title, storage=opened)


def runs_begun(study, out):
    """How often each run of a study began, without those that failed."""
    return {
        (out / "toy" / trial.user_attrs["run"] / "begun").read_text()
        for trial in study.trials
        if trial.user_attrs["options"]["lr"] <= searched.TOO_FAST
    }


def test_points_follow_from_the_seed_and_a_longer_search_begins_alike():
    def points(seed, count):
        return [trial.options for trial in trials_of(search(seed=seed), count)]

    assert points(0, 8) == points(0, 8) == points(0, 32)[:8]
    assert points(0, 8) != points(1, 8)


def test_a_trial_is_an_ordinary_run_that_sees_no_test_item():
    base = search("toy/plain_joint", "mc_dropout", seed=5, epochs=7)
    trial = trials_of(base, 3)[2]
    spec = trial.spec
    assert spec.splits == ("val", "val/shifted")
    assert spec.seed == 5
    assert spec.training == {
        "epochs": 7,
        "schedule": "linear",
        "select_by": "val_referral",
        **{n: trial.options[n] for n in ("lr", "momentum", "final_factor")},
    }
    assert spec.method.name == "mc_dropout"
    assert spec.method.options == {"rate": trial.options["method.rate"]}
    assert search().selection.splits == ("val",)


def test_a_selection_without_splits_looks_at_those_of_further_datasets():
    matches = search("url/species", "mcinfonce")
    assert matches.selection.splits == ()
    (trial,) = trials_of(matches, 1)
    assert trial.spec.splits == ("birds:val", "cars:val", "products:val")
    assert trial.spec.training["select_by"] == "val_r_auroc"


@pytest.mark.parametrize("method", ["map", "mc_dropout"])
def test_the_command_of_a_trial_trains_what_the_trial_trained(method):
    matches = search("toy/plain_joint", method, epochs=7)
    for trial in trials_of(matches, 4):
        words = matches.command(trial.options)
        given = [words[i + 1] for i, word in enumerate(words) if word == "-o"]
        wish = RunRequest(methods=(method,), seeds=(0,), options=parse_options(given))
        (choice,) = plans_of(words[2], wish)
        (run,) = choice.runs
        assert replace(run, splits=trial.spec.splits) == trial.spec


def test_what_is_given_is_not_searched():
    trial = trials_of(search(lr=0.02, epochs=1), 1)[0]
    assert trial.spec.training["lr"] == 0.02
    assert "lr" not in trial.options


@pytest.mark.parametrize(
    ("selection", "variant", "splits"),
    [
        ("in_domain", "plain", ["val"]),
        ("joint", "plain_joint", ["val", "val/shifted"]),
    ],
)
def test_the_best_trial_is_the_one_its_selection_asks_for(
    out, data, selection, variant, splits
):
    matches = search(selection=selection)
    assert matches.variant == variant
    tried = carry_out(matches, 16, out, data, at_once=4)
    for each in tried:
        assert (not each.values) == (each.trial.options["lr"] > searched.TOO_FAST)
        if not each.values:
            assert each.error.startswith("the loss became nan with lr")
            continue
        files = [f"{split.replace('/', '~')}.safetensors" for split in splits]
        folder = run_folder(out, each.trial.spec) / "predictions"
        arrays = [read(folder / name).arrays for name in files]
        judged = [PredictedSplit(a["probs"], a["target"]) for a in arrays]
        assert each.values == (selection_score(matches.selection.rule, judged),)
    report = read_search(matches.folder(out))
    best = max((each for each in tried if each.values), key=lambda each: each.values)
    assert report.best.number == best.trial.number
    wanted = 0.01 if selection == "in_domain" else np.sqrt(0.01 * 0.1)
    off = abs(np.log([t.trial.options["lr"] / wanted for t in tried]))
    assert off[tried.index(best)] <= np.sort(off)[2]

    told = read_config(config_path(matches.folder(out)))
    assert told.selection == selection
    assert told.options == best.trial.options
    assert f"qualms run toy/{variant} --preset demo" in report.command

    study = study_of(matches, out)
    assert study.user_attrs["search"]["selection"] == selection
    assert study.best_trial.user_attrs["run"] == best.trial.spec.hash
    assert study.best_value == best.values[0]
    failed = sum(not each.values for each in tried)
    states = [trial.state.name for trial in study.trials]
    assert (states.count("COMPLETE"), states.count("RUNNING")) == (16 - failed, failed)


def test_a_search_that_was_stopped_goes_on_without_repeating_trials(out, data):
    matches = search(lr=0.02)
    coming = started(matches, 4, out, data)
    first = [next(coming), next(coming)]
    coming.close()
    ended = [t for t in study_of(matches, out).trials if t.values]
    assert len(ended) == 2
    again = carry_out(matches, 8, out, data)
    assert sorted(each.trial.number for each in again) == list(range(2, 8))
    study = study_of(matches, out)
    assert [t.number for t in study.trials] == list(range(8))
    assert [tuple(t.values) for t in study.trials[:2]] == [e.values for e in first]
    assert {
        (out / "toy" / t.user_attrs["run"] / "begun").read_text() for t in ended
    } == {"begun\n"}


def test_a_trial_of_another_process_is_left_to_it(out, data):
    matches = search(lr=0.02)
    held = trials_of(matches, 2)[1]
    with working_on(out, held.spec):
        tried = carry_out(matches, 4, out, data)
    busy = next(each for each in tried if each.trial == held)
    assert busy.values == ()
    assert busy.error == "another process makes it; run again to see it"
    states = [trial.state.name for trial in study_of(matches, out).trials]
    assert (len(states), states[1]) == (4, "RUNNING")
    (again,) = [e for e in carry_out(matches, 4, out, data) if e.trial == held]
    assert again.values


@pytest.mark.slow
def test_two_processes_share_a_search(out, data):
    code = (
        "from pathlib import Path\n"
        "import pytest\n"
        "from launch import searched, test_tune\n"
        "if __name__ == '__main__':\n"
        "    with pytest.MonkeyPatch.context() as patch:\n"
        "        searched.on_shelf(patch)\n"
        f"        out, data = Path({str(out)!r}), Path({str(data)!r})\n"
        "        test_tune.carry_out(test_tune.search(), 3, out, data)\n"
    )
    script = out.parent / "other.py"
    script.write_text(code)
    other = subprocess.Popen(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    matches = search()
    carry_out(matches, 3, out, data)
    assert other.wait(timeout=300) == 0
    study = study_of(matches, out)
    assert len(study.trials) == 3
    assert runs_begun(study, out) == {"begun\n"}


def test_trials_that_come_out_alike_share_their_run(out, data):
    matches = search(lr=0.02, momentum=0.9)  # three values are left to choose from
    tried = carry_out(matches, 6, out, data)
    assert len(tried) == 6
    assert len({each.trial.spec.hash for each in tried}) == 3
    assert len({each.trial.number for each in tried}) == 6


def test_a_file_that_is_no_study_is_answered_with_a_sentence(out, data):
    matches = search()
    path = matches.folder(out) / "study.db"
    path.parent.mkdir(parents=True)
    path.write_text("not a database" * 100)
    with pytest.raises(ValueError, match=r"study.db cannot be read .*delete it"):
        carry_out(matches, 1, out, data)


def test_a_storage_that_is_locked_is_answered_with_a_sentence(out, data, monkeypatch):
    matches = search(lr=0.02, momentum=0.9)
    carry_out(matches, 1, out, data)
    monkeypatch.setattr(_study, "SECONDS", 0.05)
    with closing(sqlite3.connect(matches.folder(out) / "study.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match=r"study.db cannot be read \(.*locked"):
            carry_out(matches, 2, out, data)


def test_a_search_of_one_trial_has_a_best_one(out, data):
    matches = search(lr=0.02, momentum=0.9)
    (result,) = carry_out(matches, 1, out, data)
    assert read_config(config_path(matches.folder(out))).options == {
        **matches.request.options,
        **result.trial.options,
    }


def test_a_search_whose_trials_all_failed_writes_no_config(out, data):
    matches = search(lr=0.4, momentum=0.9)
    results = carry_out(matches, 3, out, data)
    assert [result.values for result in results] == [()] * 3
    assert {t.state for t in read_search(matches.folder(out)).trials} == {"failed"}
    assert not config_path(matches.folder(out)).exists()


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on(out, data):
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "import pytest\n"
        "from launch import searched, test_tune\n"
        "if __name__ == '__main__':\n"
        "    with pytest.MonkeyPatch.context() as patch:\n"
        "        searched.on_shelf(patch)\n"
        f"        out, data = Path({str(out)!r}), Path({str(data)!r})\n"
        "        trials = test_tune.started(test_tune.search(), 6, out, data)\n"
        "        next(trials), next(trials)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    script = out.parent / "killed.py"
    script.write_text(code)
    killed = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        check=False,
    )
    assert killed.returncode == -9
    matches = search()
    assert len(study_of(matches, out).trials) >= 1
    carry_out(matches, 6, out, data)
    study = study_of(matches, out)
    assert len(study.trials) == 6
    assert runs_begun(study, out) == {"begun\n"}


def test_another_space_is_another_search(out):
    folders = {
        search().folder(out),
        search(seed=1).folder(out),
        search(epochs=3).folder(out),
        search(lr=0.1).folder(out),
        search(selection="joint").folder(out),
        search(method="mc_dropout").folder(out),
    }
    assert len(folders) == 6
    assert all(folder.parent == out / "toy" / "tune" for folder in folders)


@pytest.mark.parametrize(
    ("target", "changes", "said"),
    [
        ("regression/cells", {}, "regression states no ranges to search"),
        ("toy", {}, "name one variant to search on, as in toy/VARIANT, got ''"),
        ("toy/plain,lone", {}, "name one variant"),
        ("toy/plan", {}, "Did you mean 'plain'"),
        ("toy/plain", {"method": "maps"}, "Did you mean 'map'"),
        ("toy/plain", {"method": "quantile"}, "states no ranges for 'quantile'"),
        (
            "toy/plain",
            {"selection": "jont"},
            "'jont' in toy. Did you mean 'joint'",
        ),
        ("toy/lone", {"selection": "joint"}, "'lone' of toy does not have; search by"),
        ("toy/plain", {"epochz": 3}, "Did you mean 'epochs'"),
        ("toy/plain", {"select_by": "last"}, "chooses epochs by val_auroc, as it does"),
        (
            "toy/plain",
            {"lr": 0.1, "momentum": 0.9, "final_factor": 0.1},
            "here all are given",
        ),
        # What may take one value only is not searched either.
        (
            "retina/country",
            {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "final_factor": 0.1},
            "here all are given",
        ),
    ],
)
def test_what_cannot_be_searched_is_answered(target, changes, said):
    with pytest.raises((ValueError, LookupError), match=said):
        search(target, **changes)


def test_a_selection_is_searched_on_the_variant_that_has_it():
    assert search("toy/lone").selection.name == "in_domain"
    assert search("toy/lone", selection="in_domain").variant == "lone"
    assert search("toy/plain_joint").selection.name == "joint"
    assert search("toy/plain_joint", selection="in_domain").variant == "plain"


def test_a_selection_that_no_variant_of_the_data_has_is_not_searched():
    wish = RunRequest(preset="paper", methods=("map",), seeds=(0,))
    with pytest.raises(
        ValueError, match="the data of 'country_blur5' and selection 'j"
    ):
        search_of("retina/country_blur5", wish, "joint")
    assert search_of("retina/country_blur5", wish).selection.name == "in_domain"


def test_a_search_in_a_selection_takes_a_config_of_that_selection():
    wish = RunRequest(methods=("map",), seeds=(0,), config="map_country_joint")
    assert search_of("retina/country", wish, "joint").variant == "country_joint"
    with pytest.raises(ValueError, match="to selection 'joint', and retina/country to"):
        search_of("retina/country", wish)


@pytest.mark.parametrize("preset", ["demo", "small", "paper"])
@pytest.mark.parametrize(
    "method", ["map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi"]
)
def test_every_trial_of_retina_trains_with_the_optimiser_of_its_ranges(preset, method):
    for variant in ("country", "severity", "country_joint", "severity_joint"):
        wish = RunRequest(preset=preset, methods=(method,), seeds=(0,))
        found = search_of(f"retina/{variant}", wish)
        for trial in trials_of(found, 2):
            assert training(trial.spec.training).optimisation.optimiser == "sgd"
            # The command that is printed for the best must train the same.
            assert "optimiser=sgd" in found.command(trial.options)


@pytest.mark.parametrize("selection", ["in_domain", "joint"])
@pytest.mark.parametrize(
    "method", ["map", "mc_dropout", "mfvi", "radial", "rank1", "fsvi"]
)
@pytest.mark.parametrize("variant", ["country", "severity"])
def test_every_method_of_retina_can_be_searched(variant, method, selection):
    matches = search(f"retina/{variant}", method, selection)
    assert matches.variant == variant + ("_joint" if selection == "joint" else "")
    for trial in trials_of(matches, 2):
        options = training(trial.spec.training)
        assert options.selection.select_by == matches.selection.rule
        assert 0.9 <= options.optimisation.momentum < 1
        find("methods", method)(**trial.spec.method.options)


def test_without_optuna_it_is_asked_for(out, data, monkeypatch):
    monkeypatch.setattr(_study, "find_spec", lambda _: None)
    with pytest.raises(LookupError, match=r"install 'qualms-bench\[tune\]'"):
        carry_out(search(), 2, out, data)
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        carry_out(search(), 0, out, data)
