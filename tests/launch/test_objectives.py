"""A search by two objectives: its values, its best trial, and its edges."""

import numpy as np
import optuna
import pytest

from launch import searched
from launch.test_tpe import carry_out
from qualms.launch import RunRequest
from qualms.launch import tune as tuning
from qualms.launch._config_file import read_config
from qualms.launch.tune import config_path, search_of
from qualms.predictions import read
from qualms.report.search_report import read_search
from qualms.runs import run_folder
from qualms.scores import auroc, ece


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(objective, **options):
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, objective=objective)


def test_objectives_are_scores_of_the_items_that_trials_are_judged_on(tmp_path):
    found = search("ece", momentum=0.9)
    tried = [one for one in carry_out(found, 7, tmp_path) if one.values]
    assert len(tried) > 3
    for one in tried:
        path = run_folder(tmp_path, one.trial.spec) / "predictions" / "val.safetensors"
        arrays = read(path).arrays
        mean, target = arrays["probs"].astype(float).mean(0), arrays["target"]
        scores = auroc(score=mean[:, 1], positive=target == 1), ece(mean, target)
        assert one.values == pytest.approx(scores)
    best = max(tried, key=lambda one: one.values[0])
    folder = found.folder(tmp_path)
    assert read_search(folder).best.values == best.values
    options = {"momentum": 0.9, **best.trial.options}
    assert read_config(config_path(folder)).options == options
    opened = f"sqlite:///{folder}/study.db"
    study = optuna.load_study(study_name=found.title, storage=opened)
    assert [way.name for way in study.directions] == ["MAXIMIZE", "MINIMIZE"]


def test_a_trial_with_an_objective_that_is_nan_has_no_value(tmp_path, monkeypatch):
    def values(found, trial, folder):
        lr = trial.spec.training["lr"]
        return 0.5, np.nan if lr < 0.02 else lr

    monkeypatch.setattr(tuning, "_values", values)
    found = search("nll", momentum=0.9, final_factor=0.1)
    tried = carry_out(found, 8, tmp_path)
    low = [one for one in tried if one.trial.options["lr"] < 0.02]
    assert low
    assert {one.error for one in low} == {"nll is not defined for it"}
    assert not any(one.values for one in low)


def test_mistakes_are_answered():
    with pytest.raises(LookupError, match=r"no objective 'nl'\. Did you mean 'nll'"):
        search("nl")
    wish = RunRequest(methods=("mcinfonce",), seeds=(0,))
    with pytest.raises(ValueError, match="scores of predicted classes, and trials of"):
        search_of("url/species", wish, objective="nll")
