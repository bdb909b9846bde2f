"""What a search leaves for pages: its trials, what matters, and its front."""

from dataclasses import replace

import numpy as np
import pytest

from launch import searched
from launch.test_tpe import carry_out
from qualms.launch import RunRequest
from qualms.launch import tune as tuning
from qualms.launch._importance import FEWEST, importance_of
from qualms.launch.tune import config_path, front_of, search_of
from qualms.report.search_report import read_search


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(*objectives, **options):
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, objectives=objectives)


def judged_by(monkeypatch, values_of):
    """Judge trials by a function of their options."""

    def values(found, trial, folder):
        return values_of(trial.options)

    monkeypatch.setattr(tuning, "_values", values)


def test_pages_get_every_trial_as_it_ended(tmp_path):
    found = search("ece")
    tried = carry_out(found, 12, tmp_path)
    report = read_search(found.folder(tmp_path))
    assert [trial.number for trial in report.trials] == list(range(12))
    for trial, one in zip(report.trials, tried, strict=True):
        assert trial.state == ("done" if one.values else "failed")
        assert trial.values == one.values
        assert trial.options == dict(one.trial.options)
        assert (trial.error, trial.run) == (one.error, one.trial.spec.hash)
    assert {trial.state for trial in report.trials} == {"done", "failed"}
    on_front = {one.trial.number for one in front_of(found, tried)}
    assert set(report.front) == on_front
    best = max((one for one in tried if one.values), key=lambda one: one.value)
    assert report.best == best.trial.number
    assert str(config_path(found.folder(tmp_path))) in report.command
    assert [each.better for each in report.objectives] == ["higher", "lower"]
    assert report.objectives[1].label == "ECE"
    assert "lr =" in report.config


@pytest.mark.parametrize("matters", ["lr", "momentum"])
def test_the_option_that_decides_is_the_important_one(tmp_path, monkeypatch, matters):
    judged_by(monkeypatch, lambda options: (float(np.log(options[matters])),))
    found = search()
    tried = carry_out(found, 24, tmp_path)
    shares, reason = importance_of(found, tried)
    assert shares[0].option == ("lr" if matters == "lr" else "1 - momentum")
    assert shares[0].share > 0.7
    assert sum(each.share for each in shares) == pytest.approx(1.0)
    assert reason == ""
    assert importance_of(found, tried) == (shares, "")


def test_too_few_or_equal_trials_say_so(tmp_path, monkeypatch):
    judged_by(monkeypatch, lambda options: (0.5, options["lr"]))
    found = search("nll", final_factor=0.1)
    tried = carry_out(found, FEWEST + 10, tmp_path)
    assert importance_of(found, []) == (
        [],
        "Importance needs at least 10 trials with a value, and this search has 0.",
    )
    assert importance_of(found, tried[:3])[0] == []
    shares, reason = importance_of(found, tried)
    assert shares == []
    assert reason == "All trials have the same val_auroc, so that no option matters."
    other = [replace(one, value=one.others[0]) for one in tried if one.values]
    assert {each.objective for each in importance_of(found, other)[0]} == {
        "val_auroc",
        "nll",
    }


def test_a_search_without_a_value_has_a_page_too(tmp_path):
    found = search(lr=0.4)
    carry_out(found, 3, tmp_path)
    report = read_search(found.folder(tmp_path))
    assert report.best is None
    assert report.front == ()
    assert {trial.state for trial in report.trials} == {"failed"}
    assert report.config == ""
