"""What a search leaves for pages: its study, read without Optuna."""

import sqlite3
from contextlib import closing

import pytest

from launch import searched
from launch.test_tpe import carry_out
from qualms.launch import RunRequest
from qualms.launch.tune import config_path, search_of
from qualms.report.search_report import read_search


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(objective="", **options):
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, objective=objective)


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
    assert str(config_path(found.folder(tmp_path))) in report.command
    assert [each.better for each in report.objectives] == ["higher", "lower"]
    assert report.objectives[1].label == "ECE"
    assert "lr =" in report.config
    assert report.title == found.title
    assert "qualms" in report.versions


def test_a_search_without_a_value_has_a_page_too(tmp_path):
    found = search(lr=0.4)
    carry_out(found, 3, tmp_path)
    report = read_search(found.folder(tmp_path))
    assert report.best is None
    assert {trial.state for trial in report.trials} == {"failed"}
    assert report.config == ""


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE trials",
        "DELETE FROM study_user_attributes",
        "UPDATE study_user_attributes SET value_json = '[3'",
        "UPDATE study_user_attributes SET value_json = '{\"unknown\": 1}'",
        "UPDATE trial_values SET value = 'inf'",
        "UPDATE trial_values SET value = NULL",
        "UPDATE trial_user_attributes SET value_json = '3'",
        "INSERT INTO trial_values VALUES (99, 1, 1, 0.5, 'FINITE')",
    ],
)
def test_a_damaged_study_gets_a_sentence(tmp_path, change):
    found = search(lr=0.02)
    carry_out(found, 1, tmp_path)
    folder = found.folder(tmp_path)
    with closing(sqlite3.connect(folder / "study.db")) as study, study:
        study.execute(change)
    with pytest.raises(ValueError, match=r"study\.db cannot be read .*delete it"):
        read_search(folder)
